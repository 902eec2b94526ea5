"""A pod that asks for a GPU has waited too long for a node.

What:
    The pod is Pending without a node, asks for a GPU (by resource or DRA claim) and is older than the grace period.
    The reason is worked out from the objects the way the scheduler filters nodes (cordon, taints, selector, required
    affinity, GPU resources against what unfinished pods request), because the scheduler's own message names only the
    first obstacle of each node; what objects cannot show (memory, volumes, claims, gangs) is taken from that message.
    Nodes that the pod's selector admits come first: they are what its owner means. Pods of one owner with the same
    demands are one finding. Gated pods (Kueue) and pods for which a node is on its way are told apart.

Why:
    A pod that can never fit waits for ever without an error. High where nothing will change by itself, medium where
    several things stand in the way, low where the GPUs are simply in use, info where somebody holds the pod back on
    purpose or a node is coming.

Fix:
    Remove the obstacle that is named; each has its own remedy.

Source:
    seeds S14, S18; Kubernetes v1.36.2 pkg/scheduler/framework (plugins and FitError), cluster-autoscaler 1.36.1
    processors/status/eventing_scale_up_processor.go; recorded answers of a 1.36.2 scheduler.

Seeds: S14, S18
"""

from collections.abc import Iterator
from typing import NamedTuple

from rules.checks._kit import age, found, holders, names, note, of, owner_of, seconds, short
from rules.checks._pending import Diagnosis, diagnose
from rules.checks._scheduling import Fit, Obstacle, demands, free, waiting
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_SEVERITY = {
    "gated": Severity.INFO,
    "scale_up": Severity.INFO,
    "in_use": Severity.LOW,
    "mixed": Severity.MEDIUM,
    "unclear": Severity.MEDIUM,
}
_SHOWN_NODES = 5


class Queue(NamedTuple):
    """Pods of one owner with the same demands; the one that has waited longest first."""

    identity: str
    pods: list[PodFacts]


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    for queue in _queues(facts, policy):
        first = queue.pods[0]
        yield first.ref
        diagnosis = diagnose(facts, first)
        refs = [pod.ref for pod in queue.pods]
        near = [item.node.ref for item in diagnosis.nearest[:_SHOWN_NODES]]
        wanted = next(iter(first.gpu_requests), None)
        spare = [free(node, wanted) for node in facts.nodes if node.ready and not node.unschedulable] if wanted else []
        yield found(
            _SEVERITY.get(diagnosis.cause, Severity.HIGH),
            *refs,
            *near,
            remedy=diagnosis.remedy,
            identity=queue.identity,
            notes=_notes(facts, first, diagnosis),
            pod=short(first.ref),
            pods=of(names(refs)),
            cause=diagnosis.cause,
            waited=seconds(age(facts, first.pod.metadata.creationTimestamp), "metadata.creationTimestamp"),
            asked=of(_asked(first), "spec.containers[].resources"),
            gpu_nodes=len(facts.gpu_nodes),
            free_total=of(sum(spare) if wanted else None, "allocatable minus requests of unfinished pods"),
            most_free=of(max(spare, default=0) if wanted else None),
            holders=of(_holders(diagnosis)),
            scheduler_message=of(diagnosis.message, "condition PodScheduled or event FailedScheduling"),
        )


def _queues(facts: ClusterFacts, policy: Policy) -> list[Queue]:
    queues: dict[str, list[PodFacts]] = {}
    for pod in waiting(facts):
        waited = age(facts, pod.pod.metadata.creationTimestamp)
        if waited is None or waited < policy.pending_grace_seconds or pod.pod.metadata.deletionTimestamp:
            continue
        queues.setdefault(f"{owner_of(pod)} {demands(pod)}", []).append(pod)
    return [
        Queue(identity, sorted(pods, key=lambda pod: (str(pod.pod.metadata.creationTimestamp), pod.ref)))
        for identity, pods in sorted(queues.items())
    ]


def _asked(pod: PodFacts) -> list[str]:
    asked = [f"{name}={amount}" for name, amount in sorted(pod.gpu_requests.items())]
    return asked or ["DRA claim"]


def _holders(diagnosis: Diagnosis) -> list[str]:
    busy = [item.node for item in diagnosis.nearest if item.obstacles & {Obstacle.IN_USE, Obstacle.UNHEALTHY}]
    return names(pod.ref for node in busy for pod in holders(node))


def _notes(facts: ClusterFacts, pod: PodFacts, diagnosis: Diagnosis) -> Iterator[Note]:
    if diagnosis.opening is not None:
        yield diagnosis.opening
    asked = sum(pod.gpu_requests.values())
    for obstacle in Obstacle:
        fits = [item for item in diagnosis.judged if obstacle in item.obstacles]
        if fits and diagnosis.enumerate_nodes:
            yield _obstacle_note(obstacle, fits, asked, pod)
    held = _holders(diagnosis)
    if held:
        yield note("held_by", held=held)
    yield from diagnosis.closing


def _obstacle_note(obstacle: Obstacle, fits: list[Fit], asked: int, pod: PodFacts) -> Note:
    at = names(item.node.ref for item in fits)
    if obstacle in (Obstacle.TAINT, Obstacle.SICK):
        return note(f"node_{obstacle}", at=at, taints=sorted({key for item in fits for key in item.taints}))
    if obstacle == Obstacle.SELECTOR:
        selector = (pod.pod.spec.nodeSelector if pod.pod.spec else None) or {}
        demanded = [f"{key}={value}" for key, value in sorted(selector.items())]
        return note("node_selector", at=at, selector=demanded or ["nodeAffinity"])
    return note(f"node_{obstacle}", at=at, asked_count=asked)


RULE = Rule(
    id="gpu-pod-pending",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S14", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
