"""Which disruption budgets block GPU nodes, and which rule speaks about each.

A budget that allows nothing on spot nodes is told by ``spot-pdb-zero``; one that cannot count its pods, because a Job
or a custom resource owns them, by ``pdb-on-jobs``; every other one by ``pdb-blocks-drain``.
"""

from rules.checks._workloads import nodes_of
from rules.facts.budgets import Budget
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.scale_down import custom_controller


def on_gpu_nodes(facts: ClusterFacts, budget: Budget) -> tuple[list[PodFacts], list[NodeFacts]]:
    """Pods of the budget that are bound to GPU nodes, and these nodes."""
    nodes = nodes_of(facts, budget.pods)
    on_them = {node.name for node in nodes}
    return [pod for pod in budget.pods if pod.node_name in on_them], nodes


def owner_has_no_scale(pod: PodFacts) -> bool:
    """Whether the pod's owner has no number of replicas by which a budget could count: a Job or a custom resource."""
    return pod.controller is not None and (pod.controller.kind == "Job" or custom_controller(pod))


def uncountable(facts: ClusterFacts, budget: Budget) -> bool:
    """Whether the budget blocks for good because it cannot count the pods of Jobs or custom resources."""
    pods, _ = on_gpu_nodes(facts, budget)
    return budget.cannot_count and any(owner_has_no_scale(pod) for pod in pods)


def on_spot(nodes: list[NodeFacts]) -> bool:
    """Whether one of the nodes may be taken back at any time."""
    return any(node.spot for node in nodes)
