"""A system pod lives on a GPU node.

What:
    A pod of kube-system that no DaemonSet owns (CoreDNS, metrics-server ...) runs on a GPU node, no disruption budget
    guards it, and the cluster has nodes without a GPU that it could use.

Why:
    cluster-autoscaler does not remove a node for the sake of such a pod, for its first hour in current versions and for
    ever in older ones; and a GPU machine is the wrong place for it.

Fix:
    Taint the GPU pool and let the pod start elsewhere.

Source:
    seeds S24; https://github.com/kubernetes/autoscaler/issues/64; kubernetes/autoscaler cluster-autoscaler-1.36.1
    simulator/drainability/rules/system/rule.go.

Seeds: S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, short
from rules.checks._nodes import has_room_elsewhere, refs
from rules.checks._workloads import by_workload, nodes_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import guarded, movable
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    if not has_room_elsewhere(facts):
        return
    pods = [
        pod
        for node in facts.gpu_nodes
        for pod in movable(node)
        if pod.ref.namespace == "kube-system" and not pod.holds_gpu and not guarded(facts, pod)
    ]
    for owner, members in by_workload(facts, pods).items():
        yield owner
        nodes = nodes_of(facts, members)
        yield found(
            Severity.LOW,
            *(pod.ref for pod in members),
            *refs(nodes),
            identity=str(owner),
            owner=short(owner),
            pods=names(pod.ref for pod in members),
            nodes=names(refs(nodes)),
            pod_namespace=members[0].ref.namespace,
            pod_list=" ".join(pod.ref.name for pod in members),
        )


RULE = Rule(
    id="system-pod-on-gpu",
    family="scheduling",
    severity=Severity.LOW,
    seeds=("S24",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
