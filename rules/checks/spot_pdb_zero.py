"""A PodDisruptionBudget on spot nodes allows nothing, which spot nodes do not care about.

What:
    A budget that allows no disruption although its pods are healthy selects pods on spot GPU nodes.

Why:
    The provider takes a spot node back after 30 seconds to two minutes whatever a budget says. The budget only makes
    the drain before it fail, so that pods are killed without their shutdown instead of being moved in time; and it
    keeps autoscalers from removing the node when it is not needed.

Fix:
    Allow one pod to go, and save state on SIGTERM; what must not be interrupted belongs on on-demand nodes.

Source:
    seeds S22; aws/aws-node-termination-handler README.md; kubernetes/autoscaler FAQ.md.

Seeds: S22
"""

from collections.abc import Iterator

from rules.checks._budgets import on_gpu_nodes
from rules.checks._kit import found, names, of, short
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per budget."""
    for budget in facts.budgets:
        yield budget.ref
        pods, nodes = on_gpu_nodes(facts, budget)
        spot = [node for node in nodes if node.spot]
        if not spot or not budget.blocks:
            continue
        on_them = [pod for pod in pods if any(pod.node_name == node.name for node in spot)]
        yield found(
            Severity.MEDIUM,
            budget.ref,
            *(pod.ref for pod in on_them),
            *refs(spot),
            identity=str(budget.ref),
            budget=short(budget.ref),
            demand=of(budget.rule, "spec"),
            pods=names(pod.ref for pod in on_them),
            nodes=names(refs(spot)),
            budget_namespace=budget.ref.namespace,
            budget_name=budget.ref.name,
        )


RULE = Rule(
    id="spot-pdb-zero",
    family="spot",
    severity=Severity.MEDIUM,
    seeds=("S22",),
    needs=("Node", "Pod", "PodDisruptionBudget"),
    check=check,
    doc=__doc__ or "",
)
