"""What several rules about nodes and pools ask.

Who carries the money of an empty node: ``idle-gpu-node`` while the node offers GPUs that nobody holds (it is the one
that people hear of), the rule that names the broken layer (``allocatable-zero-driver`` and its kin) while it offers
none. Rules that say why such a node stays (``cpu-pods-block-scale-down``, ``cordoned-idle-gpu``,
``karpenter-empty-node-kept``, ``ca-min-size-gpu`` ...) carry no cost, so that one node's money is told once. Rules on
partly used nodes carry the unused share.
"""

from collections.abc import Iterable, Iterator

from rules.checks._kit import age, holders, latest
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.scale_down import scale_down_blockers
from rules.findings import ObjectRef
from rules.policy import Policy

_OWN_TAINTS = "node.kubernetes.io/"
_NOT_A_REASON = ("gpu_pods", "cpu_pods")


def taint_keys(node: NodeFacts) -> tuple[str, ...]:
    """Keys of taints that keep pods off, but for those that Kubernetes sets itself."""
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return tuple(
        taint.key
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute") and not taint.key.startswith(_OWN_TAINTS)
    )


def has_room_elsewhere(facts: ClusterFacts) -> bool:
    """Whether a node without a GPU takes any pod, so that GPU nodes need not carry what asks for none."""
    return any(
        node.ready is True and not node.is_gpu_node and not node.unschedulable and not taint_keys(node)
        for node in facts.nodes
    )


def empty_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    """Seconds since a pod held a GPU of the node, at most; None while one does or when it is unknown."""
    if holders(node) or any(item.requested for item in node.resources) or node.since is None:
        return None
    return age(facts, latest(node.since, node.last_gpu_release))


def idle(facts: ClusterFacts, node: NodeFacts, policy: Policy) -> bool:
    """Whether the node is ready, offers GPUs and has had no pod that holds one for longer than the grace period."""
    empty = empty_for(facts, node)
    offers = any(item.allocatable for item in node.resources)
    return node.ready is True and offers and empty is not None and empty >= policy.idle_grace_seconds


def kept_by(facts: ClusterFacts, node: NodeFacts) -> list[str]:
    """Reasons, apart from the pods themselves, why the node's autoscaler leaves it; words are in ``_shared.yaml``."""
    found = [item.reason for item in scale_down_blockers(facts, node) if item.reason not in _NOT_A_REASON]
    return list(dict.fromkeys(found))


def by_pool(nodes: Iterable[NodeFacts]) -> dict[str, list[NodeFacts]]:
    """Nodes by the name of their pool; those without one together under the empty name."""
    found: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        found.setdefault(node.pool or "", []).append(node)
    return found


def targets(nodes: Iterable[NodeFacts]) -> str:
    """Nodes as ``kubectl`` takes them: by the label of their pool, else by name."""
    group = list(nodes)
    pool = group[0].pool
    keys = [key for key, value in group[0].labels.items() if pool is not None and value == pool]
    key = next((key for key in sorted(keys) if all(node.labels.get(key) == pool for node in group)), None)
    return f"-l {key}={pool}" if key and pool else " ".join(node.name for node in group)


def refs(nodes: Iterable[NodeFacts]) -> Iterator[ObjectRef]:
    """References to the nodes."""
    return (node.ref for node in nodes)
