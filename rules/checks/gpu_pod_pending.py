"""A pod that asks for a GPU has waited too long for a node.

What:
    The pod is Pending without a node, asks for a GPU (by resource or DRA claim) and is older than the grace period.
    The reasons are worked out from the objects the way the scheduler filters nodes (cordon, taints, selector, required
    affinity, GPUs, CPU and memory against what unfinished pods request), because the scheduler's own message names only
    the first obstacle of each node: all obstacles are told, and which nodes nearly fit. What objects cannot show
    (volumes, claims, gangs) is taken from that message. Nodes that the pod's selector admits come first: they are what
    its owner means. Pods of one owner with the same demands are one finding. Gated pods (Kueue) and pods for which a
    node is on its way are told apart. Where another rule names the cause of exactly these pods, or the fault of the
    node that they wait for, that finding names them and this one is not raised.

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

from collections.abc import Callable, Iterator
from typing import Any

from rules.checks._kit import found, holders, names, note, of, tolerations
from rules.checks._pending import Diagnosis, Waiting, about, waiting
from rules.checks._scheduling import Obstacle, free, resource_of, selector_of
from rules.checks._stack import OFFERS_NONE, UNHEALTHY
from rules.checks._views import View
from rules.engine import Root, Rule, Symptom, Yielded
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Note, Severity
from rules.policy import Policy

_SEVERITY = {
    "gated": Severity.INFO,
    "scale_up": Severity.INFO,
    "in_use": Severity.LOW,
    "mixed": Severity.MEDIUM,
    "unclear": Severity.MEDIUM,
}
_SHOWN_NODES = 5
_PODS_EXPLAINED_BY = (
    "ca-scale-up-backoff",
    "claim-pending",
    "cpu-starved-gpu",
    "extended-resource-in-dra-cluster",
    "fragmentation",
    "gang-min-member-rollout",
    "gang-min-wrong",
    "gang-operator-conflict",
    "kueue-admits-without-capacity",
    "kueue-never-admits",
    "mig-resource-mismatch",
    "partial-gang",
    "rollout-deadlock",
    "scale-from-zero-unknown-gpu",
    "selector-matches-nothing",
    "shared-rename-zero-key",
    "untolerated-gpu-taint-pod",
)
_NODES_EXPLAINED_BY = {
    "broken": (*OFFERS_NONE, UNHEALTHY, "karpenter-never-initialized", "plugin-not-tolerating-taint"),
    "unhealthy": ("allocatable-below-capacity",),
    "sick": ("accelerated-hw-not-ready",),
    "cordoned": ("cordoned-idle-gpu", "driver-upgrade-stuck"),
    "not_ready": ("nodes-notready-gpu", "ghost-node"),
}
"""Rules that speak about the node whose single obstacle is the cause."""


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Yielded]:
    """Yield one finding per owner and demand, to be told unless a deeper one explains it."""
    for queue in waiting(facts, policy):
        first, diagnosis = queue.first, queue.diagnosis
        yield first.ref
        near = [node.ref for node in diagnosis.nearest.nodes[:_SHOWN_NODES]]
        spare = _spare(facts, first)
        held = _holders(facts, diagnosis)
        missing = {key for group in diagnosis.nearest.groups for key in group.tolerable}
        helpful: dict[str, Any] = {"tolerations": tolerations(missing)} if missing else {}
        finding = found(
            _SEVERITY.get(diagnosis.cause, Severity.HIGH),
            *queue.refs,
            *near,
            remedy=diagnosis.remedy,
            identity=queue.identity,
            notes=_notes(facts, first, diagnosis, held),
            **about(facts, queue),
            cause=diagnosis.cause,
            gpu_nodes=len(facts.gpu_nodes),
            free_total=of(None if spare is None else spare[0], "allocatable minus requests of unfinished pods"),
            most_free=None if spare is None else spare[1],
            holders=of(held),
            **helpful,
            scheduler_message=of(diagnosis.message, "condition PodScheduled or event FailedScheduling"),
        )
        yield Symptom(finding, tuple(_roots(queue)), queue.refs)


def _roots(queue: Waiting) -> Iterator[Root]:
    for ref in queue.refs:
        yield Root(ref, _PODS_EXPLAINED_BY)
    cause = queue.diagnosis.cause
    by_maker = queue.diagnosis.remedy == "other_maker"
    for node in queue.diagnosis.nearest.nodes if cause in _NODES_EXPLAINED_BY or by_maker else ():
        if cause in _NODES_EXPLAINED_BY and (cause != Obstacle.UNHEALTHY or _fits_when_healed(queue, node)):
            yield Root(node.ref, _NODES_EXPLAINED_BY[cause])
        if by_maker:
            yield Root(node.ref, ("gpu-of-another-vendor",))


def _fits_when_healed(queue: Waiting, node: NodeFacts) -> bool:
    """Whether the pod would start once all devices of the node are healthy, whatever other pods hold there."""
    wanted = queue.first.gpu_requests.items()
    resources = {name: resource_of(node, name) for name, _ in wanted}
    return all((item := resources[name]) and amount <= (item.capacity or 0) - item.requested for name, amount in wanted)


def _spare(facts: ClusterFacts, pod: PodFacts) -> tuple[int, int] | None:
    """Free units of the first resource that the pod asks for, or free devices of DRA, on nodes in service: in all, and
    the most on one node; None where that cannot be counted."""
    wanted = next(iter(pod.gpu_requests), None)
    if wanted is None and (pod.other_gpu_claim != "dra-claim" or not facts.knows("ResourceSlice")):
        return None

    def count() -> tuple[int, int]:
        in_service = [node for node in facts.nodes if node.ready and not node.unschedulable]
        spare = [free(node, wanted) if wanted else _free_devices(node) for node in in_service]
        return sum(spare), max(spare, default=0)

    return facts.remember(f"free {wanted or 'devices of DRA'}", count)


def _free_devices(node: NodeFacts) -> int:
    return sum(item.free or 0 for item in node.resources if item.origin == "dra")


def _notes(facts: ClusterFacts, pod: PodFacts, diagnosis: Diagnosis, held: list[str]) -> Iterator[Note]:
    judged, nearest = diagnosis.judged, diagnosis.nearest
    if diagnosis.opening is not None:
        yield diagnosis.opening
    if diagnosis.enumerate_nodes:
        for obstacle in Obstacle:
            if obstacle in judged.kinds:
                yield _obstacle_note(facts, obstacle, judged, pod)
        if nearest.kinds and len(nearest) < len(judged):
            yield note("nearest", at=_places(facts, nearest), obstacles=sorted(map(str, nearest.kinds)))
    if held:
        yield note("held_by", held=held)
    yield from diagnosis.closing


def _obstacle_note(facts: ClusterFacts, obstacle: Obstacle, judged: View, pod: PodFacts) -> Note:
    seen = judged.where(lambda group: obstacle in group.obstacles)
    at = _places(facts, seen)
    match obstacle:
        case Obstacle.TAINT | Obstacle.SICK:
            sick = obstacle == Obstacle.SICK
            keys = {key for group in seen.groups for key in (group.sick if sick else group.tolerable)}
            return note(f"node_{obstacle}", at=at, taints=sorted(keys))
        case Obstacle.SELECTOR:
            return note("node_selector", at=at, selector=selector_of(pod))
        case Obstacle.OTHER_RESOURCE:
            lacking = sorted({name for group in seen.groups for name in group.lacking})
            return note("node_other_resource", at=at, lacking=lacking)
        case Obstacle.TOO_SMALL:
            return note("node_too_small", at=at, asked_count=sum(pod.gpu_requests.values()), most=_most(pod, seen))
    return note(f"node_{obstacle}", at=at)


def _most(pod: PodFacts, seen: View) -> int:
    """The largest amount of a requested GPU resource that one of the nodes can ever give."""
    resources = [resource_of(node, name) for node in seen.nodes for name in pod.gpu_requests]
    return max((item.capacity or item.allocatable or 0 for item in resources if item), default=0)


def _holders(facts: ClusterFacts, diagnosis: Diagnosis) -> list[str]:
    busy = diagnosis.nearest.where(lambda group: group.obstacles & {Obstacle.IN_USE, Obstacle.UNHEALTHY})
    return _told(facts, "holders", busy, lambda nodes: names(pod.ref for node in nodes for pod in holders(node)))


def _places(facts: ClusterFacts, seen: View) -> list[str]:
    """The nodes by name; where they are many, pools with the number of their nodes among them."""
    return _told(facts, "places", seen, _pools)


def _told(facts: ClusterFacts, what: str, seen: View, tell: Callable[[tuple[NodeFacts, ...]], list[str]]) -> list[str]:
    """What is to be told of nodes, worked out once for all pods that see the same ones."""
    told = facts.remember(f"{what} of GPU nodes", dict[tuple[int, ...], list[str]])
    if seen.places not in told:
        told[seen.places] = tell(seen.nodes)
    return told[seen.places]


def _pools(nodes: tuple[NodeFacts, ...]) -> list[str]:
    if len(nodes) <= _SHOWN_NODES:
        return names(node.ref for node in nodes)
    pools: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        pools.setdefault(node.pool or node.name, []).append(node)
    shown = [f"{pool} ×{len(group)}" if len(group) > 1 else group[0].name for pool, group in sorted(pools.items())]
    return shown if len(shown) <= _SHOWN_NODES else [*shown[:_SHOWN_NODES], f"+{len(shown) - _SHOWN_NODES}"]


RULE = Rule(
    id="gpu-pod-pending",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S14", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
