"""A Karpenter GPU node never became initialized, so Karpenter leaves it alone for good.

What:
    A GPU node of Karpenter is ready and registered, and not initialized, longer than the time that drivers and device
    plugins need: by its NodeClaim, or where claims were not read by the label ``karpenter.sh/initialized``. The usual
    reason is ``ResourceNotRegistered``: the GPUs that it was started for never showed up. A startup taint that nobody
    takes away is told by ``karpenter-startup-taint-stuck``.

Why:
    Karpenter has no time limit for this. The node is paid, pods stay nominated to it, and neither consolidation nor the
    removal of empty nodes looks at it before it expires. The layer that is missing has a finding of its own,
    which carries the money.

Fix:
    Repair what keeps the GPUs from being registered, most often the device plugin; then Karpenter initializes the node
    itself. Until then delete the node by hand.

Source:
    seeds S23, S24; https://github.com/Azure/karpenter-provider-azure/issues/1790; kubernetes-sigs/karpenter
    pkg/controllers/nodeclaim/lifecycle/initialization.go.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import claim_ref, condition, stuck_startup_taints
from rules.checks._kit import age, found, note, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.events import event_message
from rules.facts.scale_down import initialized
from rules.facts.scaling import karpenter_pool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        waited = age(facts, node.since)
        if karpenter_pool(node) is None or node.ready is not True or initialized(facts, node):
            continue
        if waited is None or waited < policy.not_ready_grace_seconds or stuck_startup_taints(facts, node):
            continue
        told = condition(facts, node, "Initialized")
        claim = claim_ref(facts, node)
        reason = told.get("reason") if told else None
        said = _said(facts, node)
        source = "NodeClaim status.conditions" if told else "label karpenter.sh/initialized"
        yield found(
            Severity.MEDIUM,
            *(ref for ref in (node.ref, claim) if ref),
            notes=[*([note("reason")] if reason else []), *([note("said")] if said else [])],
            node=node.name,
            pool=karpenter_pool(node),
            waited=seconds(waited, "metadata.creationTimestamp"),
            reason=of(reason, source),
            said=of(said, "events of Karpenter"),
            claim=claim.name if claim else None,
        )


def _said(facts: ClusterFacts, node: NodeFacts) -> str | None:
    """What Karpenter's own check of the node found last."""
    claim = claim_ref(facts, node)
    events = [event for ref in (node.ref, claim) if ref for event in facts.events_of(ref)]
    checks = [event for event in events if event.reason in ("FailedInflightCheck", "FailedConsistencyCheck")]
    return event_message(checks[-1]) if checks else None


RULE = Rule(
    id="karpenter-never-initialized",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
