"""Serving pods wait behind batch work, and nothing says which goes first.

What:
    A GPU pod of a service has waited longer than the grace period because other pods hold the GPUs that it could use,
    batch or training pods are among the holders, and no GPU pod of the cluster names a PriorityClass. Pods that wait
    for another reason would not be helped by preemption and do not count.

Why:
    With equal priority the scheduler preempts nobody: a service waits for the end of a training run. Medium.

Fix:
    Two PriorityClasses, serving above batch; jobs that must not be killed keep their checkpoints.

Source:
    seeds S9, S11; kubernetes/api scheduling/v1.

Seeds: S9, S11
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of
from rules.checks._pending import Waiting, by_nodes
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import TRAINING_KINDS
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_SERVING = frozenset({"ReplicaSet", "StatefulSet", "InferenceService", "Revision"})
_BATCH = frozenset({"Job", *TRAINING_KINDS})


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    gpu_pods = [pod for pod in facts.gpu_pods if pod.gpu_requests and not pod.terminal and not pod.is_daemon]
    if any(pod.pod.spec and pod.pod.spec.priorityClassName for pod in gpu_pods):
        return
    served: list[ObjectRef] = []
    batch: dict[ObjectRef, PodFacts] = {}
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        holding = _batch_in_the_way(queue) if _is(queue.first, _SERVING) else []
        if holding:
            served += queue.refs
            batch.update({pod.ref: pod for pod in holding})
    if served:
        yield found(
            Severity.MEDIUM,
            *served,
            *batch,
            identity="priorities",
            pods=of(names(served)),
            batch=of(names(batch)),
            gpu_pods=len(gpu_pods),
        )


def _is(pod: PodFacts, kinds: frozenset[str]) -> bool:
    return pod.controller is not None and pod.controller.kind in kinds


def _batch_in_the_way(queue: Waiting) -> list[PodFacts]:
    """Batch pods on nodes that the waiting pod could use were they not there; none where a node is free."""
    if queue.fits.has_free:
        return []
    return [pod for node in queue.fits.full.nodes for pod in node.pods if pod.gpu_requests and _is(pod, _BATCH)]


RULE = Rule(
    id="no-priority-classes",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S9", "S11"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
