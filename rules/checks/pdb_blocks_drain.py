"""A PodDisruptionBudget never lets a pod of a GPU node go.

What:
    A budget that selects pods on GPU nodes allows no disruption although all its pods are healthy: ``maxUnavailable``
    0, ``minAvailable`` 100 %, or as many as there are replicas. One that allows nothing only because pods are sick now
    is not meant. Spot nodes are told by ``spot-pdb-zero``, pods of Jobs by ``pdb-on-jobs``.

Why:
    Drains, node upgrades, repairs and the removal of under-used nodes wait for it for ever, and the node is paid on.

Fix:
    Allow one pod to go, or run one replica more than must be there.

Source:
    seeds S22, S24; https://github.com/kubernetes-sigs/karpenter/issues/2802; kubernetes/autoscaler FAQ.md;
    kubernetes/api policy/v1 types.go.

Seeds: S22, S24
"""

from collections.abc import Iterator

from rules.checks._budgets import on_gpu_nodes, on_spot, uncountable
from rules.checks._kit import found, names, of
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
        if not pods or not budget.blocks or on_spot(nodes) or uncountable(facts, budget):
            continue
        yield found(
            Severity.MEDIUM,
            budget.ref,
            *(pod.ref for pod in pods),
            identity=str(budget.ref),
            budget=f"{budget.ref.namespace}/{budget.ref.name}",
            demand=of(budget.rule, "spec"),
            pods=names(pod.ref for pod in pods),
            nodes=names(refs(nodes)),
            budget_namespace=budget.ref.namespace,
            budget_name=budget.ref.name,
        )


RULE = Rule(
    id="pdb-blocks-drain",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S22", "S24"),
    needs=("Node", "Pod", "PodDisruptionBudget"),
    check=check,
    doc=__doc__ or "",
)
