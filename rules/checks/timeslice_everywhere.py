"""Time-slicing is applied to every GPU node, those of training work included.

What:
    The cluster has at least two GPU nodes, all of them share their GPUs by time-slicing or MPS with more than one share
    per GPU, and pods run there that want whole GPUs: several at once, or training jobs.

Why:
    A default configuration of the device plugin covers all nodes. Multi-GPU and training pods get shares that others
    may use at the same time, without isolation of memory or time. Medium.

Fix:
    Make sharing a named configuration and label only the nodes that shall share.

Source:
    seeds S15, S27; https://github.com/NVIDIA/gpu-operator/issues/835; NVIDIA/k8s-device-plugin README.md
    (nvidia.com/device-plugin.config).

Seeds: S15, S27
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.groups import TRAINING_KINDS
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    nodes = facts.gpu_nodes
    if len(nodes) < 2 or not all(_shares(node) for node in nodes):
        return
    yield nodes[0].ref
    pods = [pod for node in nodes for pod in node.pods if _wants_whole(pod)]
    if not pods:
        return
    yield found(
        Severity.MEDIUM,
        *(node.ref for node in nodes),
        *(pod.ref for pod in pods),
        identity="all nodes",
        nodes=of(names(node.ref for node in nodes)),
        pods=of(names(pod.ref for pod in pods)),
        replicas=of(sorted({str(node.sharing.replicas) for node in nodes}), "nvidia.com/gpu.replicas"),
    )


def _shares(node: NodeFacts) -> bool:
    return node.sharing.mode in ("time-slicing", "mps") and (node.sharing.replicas or 0) > 1


def _wants_whole(pod: PodFacts) -> bool:
    kind = pod.controller.kind if pod.controller else ""
    several = max(pod.gpu_requests.values(), default=0) > 1
    return bool(pod.gpu_requests) and (several or kind in TRAINING_KINDS)


RULE = Rule(
    id="timeslice-everywhere",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S15", "S27"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
