"""An empty Karpenter GPU node is not removed.

What:
    A GPU node of Karpenter that is initialized and offers GPUs has had only DaemonSet pods for longer than the grace
    period and the pool's ``consolidateAfter``. What keeps it is read from the NodePool, the NodeClaim, annotations and
    the events of Karpenter.

Why:
    Karpenter removes empty nodes by itself; when it does not, a setting forbids it, and the node stays until it
    expires. The money is told by ``idle-gpu-node``; a node that never became initialized by
    ``karpenter-never-initialized``.

Fix:
    Change the setting that is named.

Source:
    seeds S23, S24; https://github.com/aws/karpenter-provider-aws/issues/1914; karpenter.sh/docs/concepts/disruption.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import claim_ref
from rules.checks._kit import found, names, note, of, seconds
from rules.checks._nodes import empty_for, idle, kept_by
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.events import event_message
from rules.facts.scale_down import initialized, movable
from rules.facts.scaling import karpenter_pool, seconds_of
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_LEAVING = ("karpenter.sh/disrupted", "karpenter.sh/disruption")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        if karpenter_pool(node) is None or movable(node) or not idle(facts, node, policy) or _leaving(node):
            continue
        pool = facts.scaling.pool(node)
        after = seconds_of(pool.consolidate_after) if pool else None
        empty = empty_for(facts, node) or 0
        if not initialized(facts, node) or empty < (after or 0) + policy.idle_grace_seconds:
            continue
        claim, reasons, said = claim_ref(facts, node), kept_by(facts, node), _said(facts, node)
        yield found(
            Severity.LOW,
            *(ref for ref in (node.ref, claim, pool.ref if pool else None) if ref),
            notes=[*([note("kept")] if reasons else [note("unknown")]), *([note("said")] if said else [])],
            node=node.name,
            pool=karpenter_pool(node),
            idle=seconds(empty, "pod status, metadata.creationTimestamp"),
            blockers=reasons,
            said=of(said, "events of Karpenter"),
            claims=names([claim] if claim else []),
        )


def _leaving(node: NodeFacts) -> bool:
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return node.node.metadata.deletionTimestamp is not None or any(taint.key in _LEAVING for taint in taints)


def _said(facts: ClusterFacts, node: NodeFacts) -> str | None:
    """What Karpenter said last of why it does not touch the node."""
    claim = claim_ref(facts, node)
    events = [event for ref in (node.ref, claim) if ref for event in facts.events_of(ref)]
    blocked = [event for event in events if event.reason in ("DisruptionBlocked", "Unconsolidatable")]
    return event_message(blocked[-1]) if blocked else None


RULE = Rule(
    id="karpenter-empty-node-kept",
    family="billing",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
