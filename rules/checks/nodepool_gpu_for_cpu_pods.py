"""A NodePool started GPU nodes for pods that want no GPU.

What:
    A NodePool of Karpenter neither asks for GPUs nor excludes them and has no taint, and one of its nodes has a GPU
    that no pod asks for, while pods without a GPU run there; its NodeClaim, where it was read, asked for none either.

Why:
    Karpenter takes the cheapest type that fits, and a spot GPU machine sometimes is. The GPU is then paid for nothing,
    and the next price change makes it dear.

Fix:
    Exclude GPU types in the requirements of the pool for general work.

Source:
    seeds S23, S24; https://github.com/aws/karpenter-provider-aws/issues/2833; aws/karpenter-provider-aws pkg/apis/v1
    labels.go.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import pool_nodes, wants_gpus
from rules.checks._kit import found, holders, names
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.resources import gpu_name
from rules.facts.scale_down import movable
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per NodePool."""
    for pool in facts.scaling.pools.values():
        yield pool.ref
        if pool.taints or wants_gpus(pool):
            continue
        nodes = [node for node in pool_nodes(facts, pool) if _for_cpu_pods(facts, node)]
        if not nodes:
            continue
        yield found(
            Severity.MEDIUM,
            pool.ref,
            *refs(nodes),
            identity=str(pool.ref),
            pool=pool.ref.name,
            nodes=names(refs(nodes)),
            types=sorted({node.instance_type or "?" for node in nodes}),
            pods=names(pod.ref for node in nodes for pod in movable(node)),
            provider=nodes[0].provider,
        )


def _for_cpu_pods(facts: ClusterFacts, node: NodeFacts) -> bool:
    claim = facts.scaling.claims.get(node.name)
    asked = (((claim.spec or {}).get("resources") or {}).get("requests") or {}) if claim else {}
    return not holders(node) and bool(movable(node)) and not any(gpu_name(name) for name in asked)


RULE = Rule(
    id="nodepool-gpu-for-cpu-pods",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "NodePool"),
    check=check,
    doc=__doc__ or "",
)
