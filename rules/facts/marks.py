"""Rare traits of pods, told when their facts are derived.

Most pods of a large cluster have none of them, and a rule that looks for one then passes over those instead of reading
every pod again (:meth:`~rules.facts.cluster.ClusterFacts.marked`). A mark says that a trait may be there, never what
follows from it, and it follows from the pod's own object alone.
"""

from rules.facts.groups import GROUP_MARKS, KUEUE_QUEUE, SCHEDULERS, TRAINING_KINDS, VOLCANO_JOBS
from rules.facts.kinds import group_of
from rules.facts.objects import ObjectMeta, OwnerReference, Pod, PodStatus

GROUPED = 1
"""A label or controller of multi-node workloads (:func:`~rules.facts.groups.workload_groups`)."""
QUEUED = 2
"""A trace of a queueing system: its label, its scheduler, or a name as its controller may have it
(:func:`~rules.facts.groups.queue_systems`)."""
AUTOSCALES = 4
"""A container that may be cluster-autoscaler."""
NOMINATED = 8
"""A node that the scheduler clears for it (``status.nominatedNodeName``)."""
EXEMPT = 16
"""An annotation that exempts it from rules (:mod:`rules.exemptions`)."""
SCHEDULED_ELSEWHERE = 32
"""A scheduler other than the default one."""
WAITS = 64
"""Phase Pending and no node."""

RESERVES = 128
"""A namespace in which schedulers that split GPUs reserve them."""

SPEAKS = 256
"""A message of its own, or a container that waits or ended and may have left one."""

RESERVING_NAMESPACES = ("kai-resource-reservation", "runai-reservation")
EXEMPT_ANNOTATION = "gpu-advisor.io/exempt"
AUTOSCALER = "cluster-autoscaler"
_DEFAULT_SCHEDULERS = (None, "", "default-scheduler")


def marks_of(pod: Pod, controller: OwnerReference | None, phase: str) -> int:
    """The marks of a pod, in one number."""
    spec, status = pod.spec, pod.status
    found = _of_metadata(pod.metadata)
    if controller is not None and (
        controller.kind in TRAINING_KINDS
        or (controller.kind == "Job" and group_of(controller.apiVersion) == VOLCANO_JOBS)
    ):
        found |= GROUPED
    if spec is not None:
        if spec.schedulerName not in _DEFAULT_SCHEDULERS:
            found |= SCHEDULED_ELSEWHERE | (QUEUED if spec.schedulerName in SCHEDULERS else 0)
        for container in spec.containers or ():
            words = container.command or container.args
            if (container.image and AUTOSCALER in container.image) or (words and AUTOSCALER in words[0]):
                found |= AUTOSCALES
    if status is not None:
        found |= _of_status(status)
    if phase == "Pending" and not (spec and spec.nodeName):
        found |= WAITS
    return found


def _of_status(status: PodStatus) -> int:
    found = NOMINATED if status.nominatedNodeName else 0
    if status.message:
        found |= SPEAKS
    for items in (status.containerStatuses, status.initContainerStatuses):
        for item in items or ():
            now, last = item.state, item.lastState
            # Few containers have more than this: they run, and have never ended.
            if (now is not None and now.running is None) or (last is not None and last.terminated is not None):
                found |= SPEAKS
    return found


def _of_metadata(metadata: ObjectMeta) -> int:
    labels, name = metadata.labels, metadata.name
    found = 0
    if labels:
        if not GROUP_MARKS.isdisjoint(labels):
            found |= GROUPED
        if labels.get(KUEUE_QUEUE):
            found |= QUEUED
    if metadata.annotations and EXEMPT_ANNOTATION in metadata.annotations:
        found |= EXEMPT
    if "scheduler" in name or "kueue" in name:
        found |= QUEUED
    if metadata.namespace in RESERVING_NAMESPACES:
        found |= RESERVES
    return found
