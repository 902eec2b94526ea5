"""A Karpenter NodePool of GPU nodes cannot shrink.

What:
    A NodePool that has GPU nodes forbids their removal: ``consolidateAfter: Never``, a disruption budget of 0 nodes
    without a schedule, or ``WhenEmpty`` while small pods have lived for more than a day on nodes of whose GPUs half or
    more are free. ``WhenEmpty`` alone is a choice, not a trouble.

Why:
    Idle and nearly empty GPU nodes live until they expire; with ``expireAfter: Never`` for ever.

Fix:
    Allow consolidation of the pool; protect single workloads by annotation instead of the whole pool by a setting.

Source:
    seeds S23, S24; kubernetes-sigs/karpenter pkg/apis/v1/nodepool.go, pkg/controllers/disruption/consolidation.go.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._karpenter import pool_nodes
from rules.checks._kit import age, found, names, note, of
from rules.checks._nodes import refs
from rules.checks._running import running_since
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.scale_down import gpu_share, movable
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LONG_SECONDS = 24 * 3600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per NodePool."""
    for pool in facts.scaling.pools.values():
        yield pool.ref
        nodes = pool_nodes(facts, pool)
        if not nodes or pool.static:
            continue
        held = [node for node in nodes if pool.policy == "WhenEmpty" and _held_by_little(facts, node)]
        causes = ["never"] if pool.consolidate_after == "Never" else []
        causes += ["budget"] if pool.zero_budget else []
        causes += ["when_empty"] if held else []
        if not causes:
            continue
        pods = [pod.ref for node in held for pod in movable(node)]
        never_expires = pool.expire_after is None
        yield found(
            Severity.MEDIUM,
            pool.ref,
            *refs(held),
            *pods,
            identity=str(pool.ref),
            remedy=causes[0] if len(causes) == 1 else "default",
            notes=[*(note(cause) for cause in causes), *([note("never_expires")] if never_expires else [])],
            pool=pool.ref.name,
            causes=of(causes, "spec.disruption"),
            nodes=names(refs(held or nodes)),
            pods=names(pods),
        )


def _held_by_little(facts: ClusterFacts, node: NodeFacts) -> bool:
    share, pods = gpu_share(node), movable(node)
    ages = [age(facts, running_since(pod)) or 0 for pod in pods]
    return share is not None and share <= 0.5 and any(lives > LONG_SECONDS for lives in ages)


RULE = Rule(
    id="consolidation-disabled",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "NodePool"),
    check=check,
    doc=__doc__ or "",
)
