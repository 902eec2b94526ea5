"""A PodDisruptionBudget cannot count the pods of a Job or a custom resource, and so blocks them for good.

What:
    A budget with ``maxUnavailable`` or a percentage selects pods on GPU nodes that a Job or a custom resource owns; its
    status expects 0 pods and allows 0 disruptions.

Why:
    To work out a percentage, the controller asks the pods' owner how many there should be. Jobs and most custom
    resources have no such number, so the budget allows nothing, ever, and keeps the node.

Fix:
    Use ``minAvailable`` with a plain number, or delete the budget: a batch job needs checkpoints, not a budget.

Source:
    seeds S11, S24; https://github.com/aws/karpenter-provider-aws/issues/3594; kubernetes v1.36
    pkg/controller/disruption (CalculateExpectedPodCountFailed).

Seeds: S11, S24
"""

from collections.abc import Iterator

from rules.checks._budgets import on_gpu_nodes, uncountable
from rules.checks._kit import found, names, of, short
from rules.checks._workloads import workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per budget."""
    for budget in facts.budgets:
        yield budget.ref
        if not uncountable(facts, budget):
            continue
        pods, _ = on_gpu_nodes(facts, budget)
        yield found(
            Severity.MEDIUM,
            budget.ref,
            *(pod.ref for pod in pods),
            identity=str(budget.ref),
            budget=short(budget.ref),
            demand=of(budget.rule, "spec"),
            pods=names(pod.ref for pod in pods),
            owners=names({workload(facts, pod) for pod in pods}),
            budget_namespace=budget.ref.namespace,
            budget_name=budget.ref.name,
        )


RULE = Rule(
    id="pdb-on-jobs",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S11", "S24"),
    needs=("Node", "Pod", "PodDisruptionBudget"),
    check=check,
    doc=__doc__ or "",
)
