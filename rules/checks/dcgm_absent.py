"""No exporter of GPU metrics runs in the cluster.

What:
    The cluster has GPU nodes that offer GPUs, and neither pods nor DaemonSets of a GPU exporter (dcgm-exporter, AMD's
    device-metrics-exporter, Intel's xpumd, a provider's). Nothing is said while labels of the GPU Operator say that its
    exporter is switched on, or where pods and DaemonSets were not read.

Why:
    Whether a GPU that is allocated does any work cannot be known. gpu-advisor says "unknown" there instead of guessing.
    Low: nothing is broken.

Fix:
    Install the exporter of the GPUs' maker and have Prometheus scrape it.

Source:
    NVIDIA/dcgm-exporter deployment; ROCm/device-metrics-exporter; MicrosoftDocs/azure-aks-docs
    articles/aks/aks-managed-gpu-nodes.md.

Seeds: S5, S23
"""

from collections.abc import Iterator

from rules.checks._exporters import exports_gpus
from rules.checks._kit import found, names, note, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_DEPLOYED = ("nvidia.com/gpu.deploy.dcgm-exporter", "nvidia.com/gpu.deploy.dcgm-exporter-dra")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield at most one finding about the cluster."""
    usable = [node for node in facts.gpu_nodes if node.ready and any(item.allocatable for item in node.resources)]
    if not usable or facts.components.has("gpu-metrics") is not False or exports_gpus(facts.pods):
        return
    if any(node.labels.get(label) == "true" for node in usable for label in _DEPLOYED):
        return
    makers = {node.vendor for node in usable}
    shared = [node.ref for node in usable if node.sharing.mode in ("time-slicing", "mps")]
    yield found(
        Severity.LOW,
        *(node.ref for node in usable),
        remedy="amd" if makers == {"amd"} else "default",
        identity="cluster",
        notes=[note("on_nodes"), *([note("shared", shared=names(shared))] if shared else [])],
        gpu_nodes=of(len(usable)),
        nodes=of(names(node.ref for node in usable)),
    )


RULE = Rule(
    id="dcgm-absent",
    family="health",
    severity=Severity.LOW,
    seeds=("S5", "S23"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
