"""A GPU NodePool has no limit.

What:
    A NodePool of Karpenter that is meant for GPU nodes, or has some, sets no limit on GPUs, CPU, memory or nodes.

Why:
    Karpenter starts as many nodes as pods ask for. A loop that makes pods, or one wrong replica count, then rents GPU
    machines without end.

Fix:
    Set ``spec.limits`` for the GPU resource.

Source:
    seeds S23, S24; kubernetes-sigs/karpenter pkg/apis/v1/nodepool.go (limits).

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import pool_nodes, wants_gpus
from rules.checks._kit import found, gpus, names
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_BOUNDS = ("cpu", "memory", "nodes")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per NodePool."""
    for pool in facts.scaling.pools.values():
        yield pool.ref
        nodes = pool_nodes(facts, pool)
        limits = (pool.item.spec or {}).get("limits") or {}
        bounded = any(name in _BOUNDS or gpu_name(name) for name in limits)
        if bounded or pool.static or not (nodes or wants_gpus(pool)):
            continue
        yield found(
            Severity.MEDIUM,
            pool.ref,
            identity=str(pool.ref),
            pool=pool.ref.name,
            gpus=gpus(sum(node.physical_gpus or 0 for node in nodes)),
            nodes=names(refs(nodes)),
            resource=next((name for name in pool.taints if gpu_name(name)), "nvidia.com/gpu"),
        )


RULE = Rule(
    id="nodepool-without-limits",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "NodePool"),
    check=check,
    doc=__doc__ or "",
)
