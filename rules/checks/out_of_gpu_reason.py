"""GPU pods failed with OutOf<resource>: the node had no GPU left when the pod arrived.

What:
    A GPU pod is Failed with a reason such as ``OutOfnvidia.com/gpu`` or ``OutOfcpu``: the kubelet refused it although
    it was bound to the node.

Why:
    Somebody else than the scheduler bound it (``spec.nodeName``, a static pod, a second scheduler), or the kubelet or
    device plugin had just restarted and knew of fewer GPUs. Such pods stay as Failed; a Job counts them against its
    ``backoffLimit``. Medium.

Fix:
    Let one scheduler place all GPU pods of a node; delete the failed ones.

Source:
    seeds S2, S14; https://github.com/NVIDIA/k8s-device-plugin/issues/61; kubernetes v1.36.2
    pkg/kubelet/lifecycle/predicate.go.

Seeds: S2, S14
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of, owner_of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and reason."""
    refused: dict[tuple[ObjectRef, str], list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        status = pod.pod.status
        reason = (status.reason if status else None) or ""
        if pod.phase == "Failed" and reason.startswith("OutOf") and pod.gpu_requests:
            refused.setdefault((owner_of(pod), reason), []).append(pod)
    for (owner, reason), pods in sorted(refused.items()):
        yield pods[0].ref
        nodes = list(dict.fromkeys(pod.node_name for pod in pods if pod.node_name))
        status = pods[0].pod.status
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in pods),
            *(node.ref for name in nodes if (node := facts.node(name))),
            identity=f"{owner} {reason}",
            pod=short(pods[0].ref),
            pods=of(names(pod.ref for pod in pods)),
            pod_namespace=pods[0].ref.namespace,
            reason=of(reason, "status.reason"),
            said=of((status.message or "")[:200] or None if status else None, "status.message"),
            nodes=of(nodes, "spec.nodeName"),
        )


RULE = Rule(
    id="out-of-gpu-reason",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S2", "S14"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
