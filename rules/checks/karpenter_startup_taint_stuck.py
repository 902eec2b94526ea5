"""A startup taint of Karpenter is still on a GPU node, and nobody takes it away.

What:
    A taint that the NodePool (or NodeClaim) lists under ``startupTaints`` is on a GPU node that is older than the time
    that drivers and agents need to start.

Why:
    Karpenter sets startup taints and waits for somebody else, a CNI, a driver, an agent, to remove them. Until then
    pods do not come and the node never counts as initialized, so it is also never consolidated.

Fix:
    Find out what should remove the taint and why it does not, or take the taint out of the NodePool.

Source:
    seeds S23, S24; https://github.com/kubernetes-sigs/karpenter/issues/2187; kubernetes-sigs/karpenter
    pkg/apis/v1/nodepool.go (startupTaints).

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import claim_ref, stuck_startup_taints
from rules.checks._kit import age, found, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scaling import karpenter_pool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        waited, stuck = age(facts, node.since), stuck_startup_taints(facts, node)
        if not stuck or waited is None or waited < policy.not_ready_grace_seconds:
            continue
        claim, pool = claim_ref(facts, node), facts.scaling.pool(node)
        yield found(
            Severity.HIGH,
            *(ref for ref in (node.ref, claim, pool.ref if pool else None) if ref),
            node=node.name,
            pool=karpenter_pool(node),
            taints=of(list(stuck), "spec.taints"),
            taint=stuck[0],
            waited=seconds(waited, "metadata.creationTimestamp"),
        )


RULE = Rule(
    id="karpenter-startup-taint-stuck",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
