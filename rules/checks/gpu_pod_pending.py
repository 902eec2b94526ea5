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
from typing import Any, NamedTuple

from rules.checks._kit import age, found, holders, names, note, of, owner_of, seconds, short, tolerations
from rules.checks._pending import Diagnosis, diagnose, fits_of
from rules.checks._scheduling import Fit, Obstacle, demands, free, selector_of
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
    seen: dict[str, tuple[Fit, ...]] = {}
    for queue in _queues(facts, policy):
        first = queue.pods[0]
        yield first.ref
        demand = demands(first)
        if demand not in seen:
            seen[demand] = fits_of(facts, first)
        diagnosis = diagnose(facts, first, seen[demand])
        refs = [pod.ref for pod in queue.pods]
        near = [item.node.ref for item in diagnosis.nearest[:_SHOWN_NODES]]
        spare = _spare(facts, first)
        missing = {key for item in diagnosis.nearest for key in item.tolerable}
        helpful: dict[str, Any] = {"tolerations": tolerations(missing)} if missing else {}
        yield found(
            _SEVERITY.get(diagnosis.cause, Severity.HIGH),
            *refs,
            *near,
            remedy=diagnosis.remedy,
            identity=queue.identity,
            notes=_notes(facts, first, diagnosis),
            pod=short(first.ref),
            pod_namespace=first.ref.namespace,
            pod_name=first.ref.name,
            pods=of(names(refs)),
            cause=diagnosis.cause,
            waited=seconds(age(facts, first.pod.metadata.creationTimestamp), "metadata.creationTimestamp"),
            asked=of(_asked(first), "spec.containers[].resources"),
            gpu_nodes=len(facts.gpu_nodes),
            free_total=of(None if spare is None else sum(spare), "allocatable minus requests of unfinished pods"),
            most_free=None if spare is None else max(spare, default=0),
            holders=of(_holders(diagnosis)),
            **helpful,
            scheduler_message=of(diagnosis.message, "condition PodScheduled or event FailedScheduling"),
        )


def _queues(facts: ClusterFacts, policy: Policy) -> list[Queue]:
    queues: dict[str, list[PodFacts]] = {}
    for pod in facts.pending_gpu_pods:
        waited = age(facts, pod.pod.metadata.creationTimestamp)
        if waited is None or waited < policy.pending_grace_seconds or pod.pod.metadata.deletionTimestamp:
            continue
        queues.setdefault(f"{owner_of(pod)} {demands(pod)}", []).append(pod)
    return [
        Queue(identity, sorted(pods, key=lambda pod: (str(pod.pod.metadata.creationTimestamp), pod.ref)))
        for identity, pods in sorted(queues.items())
    ]


def _spare(facts: ClusterFacts, pod: PodFacts) -> list[int] | None:
    """Free units of the first resource that the pod asks for, or free devices of DRA, per node in service; None where
    that cannot be counted."""
    in_service = [node for node in facts.nodes if node.ready and not node.unschedulable]
    wanted = next(iter(pod.gpu_requests), None)
    if wanted is not None:
        return [free(node, wanted) for node in in_service]
    if pod.other_gpu_claim != "dra-claim" or not facts.knows("ResourceSlice"):
        return None
    return [sum(item.free or 0 for item in node.resources if item.origin == "dra") for node in in_service]


def _asked(pod: PodFacts) -> list[str]:
    asked = [f"{name}={amount}" for name, amount in sorted(pod.gpu_requests.items())]
    return asked or ["ResourceClaim (DRA)" if pod.other_gpu_claim == "dra-claim" else pod.other_gpu_claim or "GPU"]


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
        sick = obstacle == Obstacle.SICK
        keys = {key for item in fits for key in (item.sick if sick else item.tolerable)}
        return note(f"node_{obstacle}", at=at, taints=sorted(keys))
    if obstacle == Obstacle.SELECTOR:
        return note("node_selector", at=at, selector=selector_of(pod))
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
