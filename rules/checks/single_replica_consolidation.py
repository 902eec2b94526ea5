"""A GPU service with one replica may be moved by consolidation at any time.

What:
    A Deployment with one replica holds a GPU on a node of a NodePool with ``WhenEmptyOrUnderutilized``, no budget
    guards its pod, and neither pod nor node is marked ``karpenter.sh/do-not-disrupt``. Pools that consolidate nothing
    (budget of 0 nodes, ``consolidateAfter: Never``) are left out.

Why:
    To save money Karpenter may evict the only replica; the new one has to start, pull its image and load the model
    before it answers, which takes minutes.

Fix:
    Run two replicas with a budget of one, mark the pod, or allow consolidation at night only.

Source:
    seeds S9; https://github.com/aws/karpenter-provider-aws/issues/4849; karpenter.sh/docs/concepts/disruption.

Seeds: S9
"""

from collections.abc import Iterator

from rules.checks._karpenter import pool_nodes
from rules.checks._kit import found, names, note, short
from rules.checks._workloads import by_workload, find
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import node_do_not_disrupt, protected_by_do_not_disrupt
from rules.facts.scaling import KarpenterPool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per Deployment."""
    for pool in facts.scaling.pools.values():
        yield pool.ref
        if not _moves(pool):
            continue
        pods = [
            pod
            for node in pool_nodes(facts, pool)
            if not node_do_not_disrupt(facts, node)
            for pod in node.gpu_pods
            if pod.ref not in facts.budgets_by_pod and not protected_by_do_not_disrupt(facts, pod)
        ]
        for owner, members in by_workload(facts, pods).items():
            item = find(facts, owner) if owner.kind == "Deployment" else None
            if item is None or (item.spec or {}).get("replicas", 1) != 1:
                continue
            yield found(
                Severity.LOW,
                owner,
                *(pod.ref for pod in members),
                identity=str(owner),
                notes=[] if facts.knows("PodDisruptionBudget") else [note("budgets_unknown")],
                owner=short(owner),
                pool=pool.ref.name,
                pods=names(pod.ref for pod in members),
                namespace=owner.namespace,
                name=owner.name,
            )


def _moves(pool: KarpenterPool) -> bool:
    policy = pool.policy or "WhenEmptyOrUnderutilized"
    stopped = pool.zero_budget or pool.consolidate_after == "Never" or pool.static
    return policy == "WhenEmptyOrUnderutilized" and not stopped


RULE = Rule(
    id="single-replica-consolidation",
    family="inference",
    severity=Severity.LOW,
    seeds=("S9",),
    needs=("Node", "Pod", "NodePool", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
