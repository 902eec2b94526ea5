"""Pods of a custom controller keep cluster-autoscaler from removing an under-used GPU node.

What:
    cluster-autoscaler owns a GPU node of whose GPUs less is requested than its threshold, and the controller of a pod
    on it is none of Kubernetes' own kinds (a PyTorchJob, a RayCluster, Volcano's Job ...), without
    ``safe-to-evict: "true"``. Not said where no cluster-autoscaler runs: Karpenter does not mind.

Why:
    The autoscaler does not know whether such a controller would start the pod again, so by default
    (``--skip-nodes-with-custom-controller-pods``) the node stays. While the pod works on a GPU that is right; it is a
    trouble when it does not.

Fix:
    Mark the pods as safe to evict where their controller replaces them, or switch the flag off.

Source:
    seeds S24; kubernetes/autoscaler cluster-autoscaler-1.36.1 config/flags/flags.go.

Seeds: S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, short
from rules.checks._nodes import refs
from rules.checks._unmovable import kept_for, weight
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    for owner, pods, nodes in kept_for(facts, "custom_controller"):
        yield owner
        yield found(
            weight(pods, nodes),
            *(pod.ref for pod in pods),
            *refs(nodes),
            identity=str(owner),
            owner=short(owner),
            kind=owner.kind,
            pods=names(pod.ref for pod in pods),
            nodes=names(refs(nodes)),
        )


RULE = Rule(
    id="custom-controller-blocks",
    family="billing",
    severity=Severity.LOW,
    seeds=("S24",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
