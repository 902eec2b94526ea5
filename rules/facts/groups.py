"""Pods that belong together: multi-node jobs, pod groups of gang schedulers, Deployments; and who queues them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rules.facts.kinds import group_of
from rules.facts.model import PodFacts
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

GROUP_LABELS: dict[str, str] = {
    "jobset.sigs.k8s.io/jobset-name": "JobSet",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
    "ray.io/cluster": "RayCluster",
}
"""Labels by which operators mark the pods of one multi-node workload, and its kind (kubernetes-sigs/jobset, lws,
ray-project/kuberay; read 2026-08)."""

TRAINING_KINDS = frozenset({"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob"})
"""Kinds whose pods name them as controller (kubeflow trainer v1, mpi-operator, KubeDL)."""

_JOB_NAME = "training.kubeflow.org/job-name"
_LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
_LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
_POD_GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "pod-group-name")
_POD_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_DEFAULT_SCHEDULERS = frozenset({"", "default-scheduler"})
GROUP_MARKS = frozenset({*GROUP_LABELS, _JOB_NAME})
"""Labels of pods of multi-node workloads; others have a controller of :data:`TRAINING_KINDS` or a Volcano Job."""
VOLCANO_JOBS = "batch.volcano.sh"


class WorkloadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one multi-node workload, which wait for each other.

    Attributes:
        ref: the workload (``PyTorchJob/train/pretrain``).
        part: the replica of a LeaderWorkerSet, each of which is a group of its own; empty elsewhere.
        pods: those that are not finished.
        finished: number of pods that are.
        expected: number of members that the workload wants in all; None when its object was not read.
        gang: what starts all of them or none: a scheduler, ``kueue``, or the name of a PodGroup; None where nothing
            does.
    """

    ref: ObjectRef
    part: str
    pods: tuple[PodFacts, ...]
    finished: int
    expected: int | None
    gang: str | None


class PodGroupFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A PodGroup of Volcano, the coscheduling plugin or KAI.

    Attributes:
        members: its pods that are not finished.
        min_member: how many of them must be there at once; None when it does not say.
        phase: as the scheduler writes it; None when it does not.
    """

    ref: ObjectRef
    group: OtherObject
    members: tuple[PodFacts, ...]
    min_member: int | None
    phase: str | None


def pod_group_of(pod: PodFacts) -> str | None:
    """Name of the pod's PodGroup, by the annotations and labels of the gang schedulers."""
    annotations, labels = pod.pod.metadata.annotations or {}, pod.pod.metadata.labels or {}
    for marks, keys in ((annotations, _POD_GROUP_ANNOTATIONS), (labels, _POD_GROUP_LABELS)):
        for key in keys:
            if marks.get(key):
                return marks[key]
    return None


def pod_groups(groups: Iterable[OtherObject], pods: Iterable[PodFacts]) -> tuple[PodGroupFacts, ...]:
    """All PodGroups with their pods."""
    groups = tuple(groups)
    members: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in pods if groups else ():
        name = None if pod.terminal else pod_group_of(pod)
        if name is not None:
            members.setdefault((pod.ref.namespace, name), []).append(pod)
    return tuple(
        PodGroupFacts(
            ref=ObjectRef("PodGroup", item.metadata.namespace or "", item.metadata.name),
            group=item,
            members=tuple(members.get((item.metadata.namespace or "", item.metadata.name), ())),
            min_member=whole((item.spec or {}).get("minMember")),
            phase=text((item.status or {}).get("phase")),
        )
        for item in groups
    )


def workload_groups(pods: Iterable[PodFacts], others: Mapping[str, Iterable[OtherObject]]) -> tuple[WorkloadGroup, ...]:
    """Multi-node workloads that have pods, in order of their names."""
    found: dict[tuple[ObjectRef, str], list[PodFacts]] = {}
    for pod in pods:
        key = _group_key(pod)
        if key is not None:
            found.setdefault(key, []).append(pod)
    objects = {
        (kind, item.metadata.namespace or "", item.metadata.name): item
        for kind in {ref.kind for ref, _ in found}
        for item in _of_kind(others, kind)
    }
    return tuple(_group(ref, part, members, objects) for (ref, part), members in sorted(found.items()))


def _of_kind(others: Mapping[str, Iterable[OtherObject]], kind: str) -> Iterator[OtherObject]:
    # Volcano's Job is filed apart from Kubernetes' own.
    yield from others.get("Job.batch.volcano.sh" if kind == "Job" else kind, ())


def _group_key(pod: PodFacts) -> tuple[ObjectRef, str] | None:
    labels, owner = pod.pod.metadata.labels or {}, pod.controller
    namespace = pod.ref.namespace
    for label, kind in GROUP_LABELS.items():
        if labels.get(label):
            part = labels.get(_LWS_GROUP, "") if kind == "LeaderWorkerSet" else ""
            return ObjectRef(kind, namespace, labels[label]), part
    if owner is not None and owner.kind in TRAINING_KINDS:
        return ObjectRef(owner.kind, namespace, owner.name), ""
    if owner is not None and owner.kind == "Job" and group_of(owner.apiVersion) == VOLCANO_JOBS:
        return ObjectRef("Job", namespace, owner.name), ""
    if labels.get(_JOB_NAME) and owner is not None and owner.kind == "Job":
        # The launcher of an MPIJob is the pod of a Job; its workers belong to the MPIJob itself.
        return ObjectRef("MPIJob", namespace, labels[_JOB_NAME]), ""
    return None


def _group(
    ref: ObjectRef, part: str, pods: list[PodFacts], objects: Mapping[tuple[str, str, str], OtherObject]
) -> WorkloadGroup:
    item = objects.get((ref.kind, ref.namespace, ref.name))
    alive = tuple(sorted((pod for pod in pods if not pod.terminal), key=lambda pod: pod.ref))
    expected = members_wanted(item) if item is not None else None
    if expected is None and part:
        expected = whole((pods[0].pod.metadata.annotations or {}).get(_LWS_SIZE))
    return WorkloadGroup(
        ref=ref,
        part=part,
        pods=alive,
        finished=len(pods) - len(alive),
        expected=expected,
        gang=next(filter(None, (_gang_of(pod, item) for pod in pods)), None),
    )


def _gang_of(pod: PodFacts, item: OtherObject | None) -> str | None:
    labels = {**((item.metadata.labels or {}) if item else {}), **(pod.pod.metadata.labels or {})}
    if labels.get(KUEUE_QUEUE) or labels.get(_KUEUE_GROUP):
        return "kueue"
    group = pod_group_of(pod)
    if group is not None:
        return group
    scheduler = (pod.pod.spec.schedulerName if pod.pod.spec else None) or ""
    return None if scheduler in _DEFAULT_SCHEDULERS else scheduler


def members_wanted(item: OtherObject) -> int | None:
    """Number of pods that a multi-node workload wants; None when its spec does not say."""
    spec = item.spec or {}
    match item.kind:
        case "JobSet":
            return _sum(_jobset_part(part) for part in _dicts(spec.get("replicatedJobs")))
        case "LeaderWorkerSet":
            return whole(mapping(spec.get("leaderWorkerTemplate")).get("size", 1))
        case "RayCluster":
            return 1 + (_sum(_ray_part(part) for part in _dicts(spec.get("workerGroupSpecs"))) or 0)
        case "Job":
            return _sum(whole(part.get("replicas", 1)) for part in _dicts(spec.get("tasks")))
    for key, value in spec.items():
        if key.endswith("ReplicaSpecs") and isinstance(value, dict):
            return _sum(whole(part.get("replicas", 1)) for part in _dicts(list(value.values())))
    return None


def _jobset_part(part: Mapping[str, Any]) -> int | None:
    template = mapping(mapping(part.get("template")).get("spec"))
    replicas, pods = whole(part.get("replicas", 1)), whole(template.get("parallelism", 1))
    return None if replicas is None or pods is None else replicas * pods


def _ray_part(part: Mapping[str, Any]) -> int | None:
    replicas, hosts = whole(part.get("replicas", 1)), whole(part.get("numOfHosts", 1))
    return None if replicas is None or hosts is None else replicas * hosts


def _sum(parts: Iterable[int | None]) -> int | None:
    numbers = list(parts)
    known = [number for number in numbers if number is not None]
    return sum(known) if numbers and len(known) == len(numbers) else None


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """A mapping out of plain data; empty for anything else."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str | None:
    """A word out of plain data; None for anything else and for the empty word."""
    return value if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """A number of things, written as a number or (in annotations) as digits; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_QUEUE_KINDS = {
    "kueue.x-k8s.io": "kueue",
    "scheduling.volcano.sh": "volcano",
    "scheduling.run.ai": "kai",
    "kai.scheduler": "kai",
    "scheduling.x-k8s.io": "coscheduling",
}
SCHEDULERS = {"volcano": "volcano", "kai-scheduler": "kai", "runai-scheduler": "kai", "yunikorn": "yunikorn"}
CONTROLLERS = (
    ("kueue-controller-manager", "kueue"),
    ("volcano-scheduler", "volcano"),
    ("kai-scheduler", "kai"),
    ("yunikorn-scheduler", "yunikorn"),
    ("scheduler-plugins", "coscheduling"),
)


def queue_systems(pods: Iterable[PodFacts], others: Mapping[str, Iterable[OtherObject]]) -> frozenset[str]:
    """Systems that share GPUs out between teams or start gangs: ``kueue``, ``volcano``, ``kai``, ``yunikorn``,
    ``coscheduling``; by their objects, their controllers' pods, and the pods that name their scheduler."""
    found = {
        system
        for items in others.values()
        for item in items
        if (system := _QUEUE_KINDS.get(group_of(item.apiVersion))) is not None
    }
    every = tuple(pods)
    schedulers = {pod.pod.spec.schedulerName for pod in every if pod.pod.spec}
    found.update(system for name, system in SCHEDULERS.items() if name in schedulers)
    if any(pod.pod.metadata.labels and pod.pod.metadata.labels.get(KUEUE_QUEUE) for pod in every):
        found.add("kueue")
    names = "\n".join([pod.ref.name for pod in every])
    found.update(system for name, system in CONTROLLERS if name in names)
    return frozenset(found)


def deployments_by_replica_set(replica_sets: Iterable[OtherObject]) -> dict[tuple[str, str], str]:
    """Name of the Deployment that owns each ReplicaSet, by namespace and name of the ReplicaSet."""
    return {
        (item.metadata.namespace or "", item.metadata.name): owner.name
        for item in replica_sets
        for owner in item.metadata.ownerReferences or ()
        if owner.controller and owner.kind == "Deployment"
    }


_TEMPLATE_LABEL = "pod-template-hash"
_ROLLOUT_HASH = "rollouts-pod-template-hash"
_TEMPLATE_HASH = re.compile(r"(?<=.)-[4-9bcdf]{6,10}\Z")
"""How the Deployment controller ends the name of a ReplicaSet: a 32-bit number in these ten signs (Kubernetes v1.36.2
pkg/controller/controller_utils.go ComputeHash, apimachinery pkg/util/rand SafeEncodeString)."""


def rollout_marks(labels: Mapping[str, str] | None) -> tuple[str | None, bool]:
    """What of a pod's labels :func:`deployment_of` looks at."""
    return (labels.get(_TEMPLATE_LABEL), _ROLLOUT_HASH in labels) if labels else (None, False)


def deployment_of(pod: PodFacts, owners: Mapping[tuple[str, str], str]) -> ObjectRef | None:
    """The Deployment behind a pod. Where ReplicaSets were not read, their name tells: it is the Deployment's name and
    the pod's template hash, which a label of the pod repeats."""
    if pod.controller is None or pod.controller.kind != "ReplicaSet":
        return None
    name = owners.get((pod.ref.namespace, pod.controller.name))
    if name is None:
        labels = pod.pod.metadata.labels or {}
        template = labels.get(_TEMPLATE_LABEL)
        if template and pod.controller.name.endswith(f"-{template}"):
            name = pod.controller.name.removesuffix(f"-{template}")
        elif not template and _ROLLOUT_HASH not in labels and (tail := _TEMPLATE_HASH.search(pod.controller.name)):
            name = pod.controller.name[: tail.start()]
        else:
            return None
    return ObjectRef("Deployment", pod.ref.namespace, name)
