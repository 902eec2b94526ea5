"""A node with many GPUs is kept for a few of them.

What:
    Of the GPUs of a node that is older than a day a quarter at most is requested, and at least one; the node's units
    are whole cards. Nodes on which only services run are told by ``right-size-inference``. A smaller type with the same
    GPU is named where the provider's price list has one; where it has none, that is said.

Why:
    The whole machine is billed. High from 10 USD per hour for the unused GPUs on, else medium. Machines without a
    price are left out.

Fix:
    Move the work to a smaller type, or use the free GPUs: pack other work on them.

Source:
    seeds S18, S23; kubernetes-sigs/karpenter pkg/controllers/disruption/consolidation.go (a pod keeps its whole node);
    sizes and prices: rules/data/offers.csv.

Seeds: S18, S23
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
        if not small.serving:
            yield finding(small)


RULE = Rule(
    id="whole-node-for-small-request",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S18", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
