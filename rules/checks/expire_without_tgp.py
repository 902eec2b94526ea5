"""A NodePool lets GPU nodes expire without an end to the wait, and pods on them refuse to go.

What:
    A NodePool of Karpenter has ``expireAfter`` and no ``terminationGracePeriod``, and on its GPU nodes are pods that
    block their eviction: by ``karpenter.sh/do-not-disrupt`` or by a disruption budget that allows nothing. Nodes of
    the pool that have been draining for more than an hour are named.

Why:
    An expired node is tainted and drained at once, whatever annotations say, but the drain waits for pods that may not
    be evicted without any limit. The node then takes no new pods and is paid on. Medium; high while a node hangs so.

Fix:
    Set ``terminationGracePeriod`` to the time that the longest job may take to save its work.

Source:
    seeds S23, S24; https://github.com/aws/karpenter-provider-aws/issues/7521; kubernetes-sigs/karpenter
    pkg/apis/v1/nodepool.go.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import claim_ref, pool_nodes
from rules.checks._kit import age, found, names, note, seconds
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.scale_down import movable, protected_by_do_not_disrupt
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

STUCK_SECONDS = 3600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per NodePool."""
    blocked_by_budget = {pod.ref: item.ref for item in facts.budgets if item.blocks for pod in item.pods}
    for pool in facts.scaling.pools.values():
        yield pool.ref
        if pool.expire_after is None or pool.grace is not None:
            continue
        nodes = pool_nodes(facts, pool)
        blocking = [
            pod.ref
            for node in nodes
            for pod in movable(node)
            if pod.ref in blocked_by_budget or protected_by_do_not_disrupt(facts, pod)
        ]
        if not blocking:
            continue
        stuck = [node for node in nodes if (_leaving_for(facts, node) or 0) > STUCK_SECONDS]
        yield found(
            Severity.HIGH if stuck else Severity.MEDIUM,
            pool.ref,
            *refs(stuck),
            *(claim for node in stuck if (claim := claim_ref(facts, node))),
            *blocking,
            identity=str(pool.ref),
            notes=[note("stuck", stuck=names(refs(stuck)))] if stuck else [],
            pool=pool.ref.name,
            expire_after=seconds(pool.expire_after, "spec.template.spec.expireAfter"),
            pods=names(blocking),
        )


def _leaving_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    claim = facts.scaling.claims.get(node.name)
    began = node.node.metadata.deletionTimestamp or (claim.metadata.deletionTimestamp if claim else None)
    return age(facts, began)


RULE = Rule(
    id="expire-without-tgp",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "NodePool"),
    check=check,
    doc=__doc__ or "",
)
