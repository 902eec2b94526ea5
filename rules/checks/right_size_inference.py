"""A service runs on a machine with many more GPUs than it asks for.

What:
    Only services (Deployments, StatefulSets, InferenceServices) hold GPUs of a node that is older than a day, and they
    ask for a quarter of its GPUs at most; the node's units are whole cards. Other work is told by
    ``whole-node-for-small-request``.

Why:
    A service stays, so its machine stays, and the GPUs that nobody asks for are paid month after month.

Fix:
    Run it on a type with as many GPUs as it needs, or put more replicas or models on the node.

Source:
    seeds S9, S18, S23; kubernetes-sigs/karpenter pkg/controllers/disruption/consolidation.go; sizes and prices:
    rules/data/offers.csv.

Seeds: S9, S18, S23
"""

from collections.abc import Iterator

from rules.checks._rightsize import finding, oversized
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for small in oversized(facts):
        yield small.node.ref
        if small.serving:
            yield finding(small)


RULE = Rule(
    id="right-size-inference",
    family="inference",
    severity=Severity.MEDIUM,
    seeds=("S9", "S18", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
