"""A pod asks for ``nvidia.com/gpu`` in a cluster that gives out its GPUs through DRA claims only.

What:
    The pod has waited longer than the grace period, no node has its resource allocatable, DRA drivers publish GPUs in
    ResourceSlices, and no DeviceClass serves the resource name (``spec.extendedResourceName``).

Why:
    No device plugin will ever offer the name, so it waits for ever while GPUs are free. High.

Fix:
    Ask through a ResourceClaim, or map the name to the DeviceClass (the feature gate DRAExtendedResource, on by default
    from Kubernetes 1.36).

Source:
    seeds S2, S14; kubernetes v1.36.2 pkg/features/kube_features.go; kubernetes/api resource/v1 types.go.

Seeds: S2, S14
"""

from collections.abc import Iterator

from rules.checks._kit import found, note, of
from rules.checks._pending import about, by_nodes, offers
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    published = [item for node in facts.nodes for item in node.resources if item.origin == "dra" and item.allocatable]
    served = {(item.spec or {}).get("extendedResourceName"): item for item in facts.of_kind("DeviceClass")}
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        wanted = queue.resource
        known = gpu_name(wanted) if wanted else None
        if wanted is None or known is None or wanted in served or any(offers(node, wanted) for node in facts.nodes):
            continue
        fitting = [item for item in published if item.vendor == known.vendor]
        if not fitting:
            continue
        versions = sorted({_kubelet(facts, node.name) for node in facts.nodes} - {""})
        yield found(
            Severity.HIGH,
            *queue.refs,
            identity=queue.identity,
            notes=[note("gate", kubelets=versions)] if versions else [],
            **about(facts, queue),
            resource=wanted,
            device_class=fitting[0].name.partition("/")[0],
            free=of(sum(item.free or 0 for item in fitting), "ResourceSlices minus allocated claims"),
        )


def _kubelet(facts: ClusterFacts, name: str) -> str:
    node = facts.node(name)
    info = node.node.status.nodeInfo if node and node.node.status else None
    return (info.kubeletVersion if info else None) or ""


RULE = Rule(
    id="extended-resource-in-dra-cluster",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S2", "S14"),
    needs=("Node", "Pod", "ResourceSlice", "DeviceClass"),
    check=check,
    doc=__doc__ or "",
)
