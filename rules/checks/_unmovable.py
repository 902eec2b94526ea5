"""Pods that keep under-used GPU nodes of cluster-autoscaler, by the reason for which it will not move them."""

from collections.abc import Callable

from rules.checks._workloads import by_workload, nodes_of
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.scale_down import Reason, movable, pod_blockers, under_used
from rules.findings import ObjectRef, Severity

Group = tuple[ObjectRef, list[PodFacts], list[NodeFacts]]


def candidates(facts: ClusterFacts) -> list[NodeFacts]:
    """Ready GPU nodes that cluster-autoscaler owns and that would go if their pods could be moved: those of whose GPUs
    less is requested than its threshold."""
    return [
        node
        for node in facts.gpu_nodes
        if node.ready is True and facts.scaling.manager(node) == "cluster-autoscaler" and under_used(facts, node)
    ]


def kept_for(facts: ClusterFacts, reason: Reason) -> list[Group]:
    """Workloads whose pods are not moved for ``reason``, with these pods and their nodes."""
    autoscaler = facts.scaling.cluster_autoscaler
    if autoscaler is None:
        return []
    return grouped(facts, lambda pod: reason in set(pod_blockers(facts, autoscaler, pod)))


def grouped(facts: ClusterFacts, keeps: Callable[[PodFacts], object]) -> list[Group]:
    """Workloads with pods on candidate nodes for which ``keeps`` is true."""
    pods = [pod for node in candidates(facts) for pod in movable(node) if keeps(pod)]
    return [(owner, members, nodes_of(facts, members)) for owner, members in by_workload(facts, pods).items()]


def weight(pods: list[PodFacts], nodes: list[NodeFacts]) -> Severity:
    """Medium where it is a partly used node that stays for it. Low where the node is empty of GPU work, of which
    ``idle-gpu-node`` tells, or where the pods themselves hold GPUs and may be at work."""
    partly = any(node.gpu_pods for node in nodes)
    return Severity.MEDIUM if partly and not any(pod.holds_gpu for pod in pods) else Severity.LOW
