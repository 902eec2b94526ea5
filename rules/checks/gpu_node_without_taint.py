"""A GPU node takes any pod, because it has no taint.

What:
    A ready GPU node has no NoSchedule or NoExecute taint (any key counts; those that Kubernetes sets itself do not),
    although the cluster has nodes without a GPU for pods that need none. Pods without a GPU that already sit there are
    named. Not said of clusters in which every node that takes pods has a GPU.

Why:
    CPU pods land on the most expensive machine of the cluster, take the CPU and memory that GPU pods need, and keep the
    node up when no GPU pod is left. Low; medium once such pods are there.

Fix:
    Taint the pool, after the DaemonSets of the GPU software and the GPU pods tolerate the taint.

Source:
    seeds S23, S24; https://github.com/2i2c-org/infrastructure/issues/4209; GKE and DOKS taint GPU pools themselves
    (cloud.google.com/kubernetes-engine/docs/how-to/gpus), EKS and AKS do not (awsdocs/amazon-eks-user-guide,
    MicrosoftDocs/azure-aks-docs articles/aks/use-nvidia-gpu.md).

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note
from rules.checks._nodes import by_pool, has_room_elsewhere, refs, taint_keys, targets
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.scale_down import movable
from rules.facts.scaling import karpenter_pool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_TAINT = {"amd": "amd.com/gpu", "intel": "gpu.intel.com/xe", "habana": "habana.ai/gaudi"}
_REMEDY = {"aws": "eks", "gcp": "gke", "azure": "aks"}
_UNCOUNTED = (None, "visible-devices", "device-mount")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pool of unprotected nodes."""
    if not has_room_elsewhere(facts):
        return
    open_nodes = []
    for node in facts.gpu_nodes:
        yield node.ref
        if node.ready is True and not node.unschedulable and not taint_keys(node):
            open_nodes.append(node)
    for pool, nodes in by_pool(open_nodes).items():
        landed = [pod for node in nodes for pod in movable(node) if _without_gpu(pod)]
        yield found(
            Severity.MEDIUM if landed else Severity.LOW,
            *refs(nodes),
            *(pod.ref for pod in landed),
            remedy=_remedy(nodes[0]),
            notes=[note("landed")] if landed else [],
            identity=f"pool {pool}",
            nodes=names(refs(nodes)),
            pool=pool or None,
            landed=names(pod.ref for pod in landed),
            taint=_TAINT.get(nodes[0].vendor or "", "nvidia.com/gpu"),
            targets=targets(nodes),
        )


def _without_gpu(pod: PodFacts) -> bool:
    return not pod.gpu_requests and pod.other_gpu_claim in _UNCOUNTED


def _remedy(node: NodeFacts) -> str:
    if karpenter_pool(node) is not None:
        return "karpenter"
    return _REMEDY.get(node.provider or "", "default") if node.pool else "default"


RULE = Rule(
    id="gpu-node-without-taint",
    family="scheduling",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
