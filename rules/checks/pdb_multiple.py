"""A GPU pod is selected by more than one PodDisruptionBudget.

What:
    The labels of a pod that holds a GPU match the selectors of two or more budgets of its namespace.

Why:
    The eviction API does not support this and refuses every eviction of such a pod, whatever the budgets allow. Drains
    and autoscalers then never get the node free.

Fix:
    Keep one budget per pod: narrow or delete the others.

Source:
    seeds S22, S24; https://github.com/aws/karpenter-provider-aws/pull/7858; kubernetes v1.36
    pkg/registry/core/pod/storage/eviction.go.

Seeds: S22, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    guards: dict[ObjectRef, list[ObjectRef]] = {}
    pods: dict[ObjectRef, PodFacts] = {}
    for budget in facts.budgets:
        for pod in budget.pods:
            if pod.holds_gpu:
                guards.setdefault(pod.ref, []).append(budget.ref)
                pods[pod.ref] = pod
    several = [pods[ref] for ref, found_by in guards.items() if len(found_by) > 1]
    for owner, members in by_workload(facts, several).items():
        yield owner
        budgets = sorted({ref for pod in members for ref in guards[pod.ref]})
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in members),
            *budgets,
            identity=str(owner),
            owner=short(owner),
            pods=names(pod.ref for pod in members),
            budgets=names(budgets),
            budget_namespace=budgets[0].namespace,
            budget_name=budgets[-1].name,
        )


RULE = Rule(
    id="pdb-multiple",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S22", "S24"),
    needs=("Node", "Pod", "PodDisruptionBudget"),
    check=check,
    doc=__doc__ or "",
)
