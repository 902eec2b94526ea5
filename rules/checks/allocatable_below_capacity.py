"""A GPU node hands out fewer GPUs than it has, because some are marked unhealthy.

What:
    A GPU resource of the node has ``0 < allocatable < capacity`` and the node is older than the grace period. Kubelet
    subtracts devices that the device plugin reports as unhealthy from allocatable and leaves capacity as it is. Free
    is then allocatable minus what unfinished pods request. Left to other rules: allocatable 0 (the layer below is
    broken) and leftover zero keys beside ``.shared`` or MIG resources.

Why:
    The missing device is paid for, and a pod that wants the whole node can never be placed. The NVIDIA plugin marks a
    GPU after an Xid error and does not take it back by itself, even when the error was passing.

Fix:
    Read the Xid in the plugin's log or in dmesg first. An error that only ends the application (such as 94, contained
    memory error) needs a restart of the plugin pod; faults of hardware, firmware or link (48, 63, 64, 74, 79, 95, 119,
    120, 140) need a drain and a reset or exchange. The plugin itself ignores 13, 31, 43, 45, 68 and 109.

Source:
    seeds S2; Kubernetes v1.36.2 pkg/kubelet/cm/devicemanager/manager.go (GetCapacity); NVIDIA/k8s-device-plugin
    internal/rm/health.go and internal/plugin/server.go; https://github.com/NVIDIA/gpu-operator/issues/1065; fatal
    Xids: aws/eks-node-monitoring-agent monitors/nvidia/dcgm/dcgm_policies.go.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import age, bad_conditions, cost_of, found, holders, names, note, of, seconds
from rules.checks._stack import Fault, broken_nodes
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, GpuResource, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node and GPU resource that is short of devices."""
    lost = {node.name for node, cause in broken_nodes(facts, policy) if cause.fault == Fault.UNHEALTHY}
    for node in facts.gpu_nodes:
        yield node.ref
        old = age(facts, node.since)
        if node.ready is False or old is None or old < policy.not_ready_grace_seconds:
            continue
        for resource in node.resources:
            capacity, allocatable = resource.capacity or 0, resource.allocatable or 0
            if resource.origin != "kubelet" or allocatable >= capacity or not (allocatable or node.name in lost):
                continue
            source = f"status.capacity, status.allocatable of {resource.name}"
            yield found(
                Severity.HIGH,
                node.ref,
                remedy=resource.vendor if resource.vendor in ("nvidia", "amd") else "default",
                cost=cost_of(node.price, None),
                identity=f"{node.ref} {resource.name}",
                notes=_notes(node, resource),
                node=node.name,
                resource=resource.name,
                capacity=of(capacity, source),
                allocatable=of(allocatable, source),
                unhealthy=of(capacity - allocatable, source),
                requested=of(resource.requested, "requests of the unfinished pods on the node"),
                free=of(max(0, allocatable - resource.requested)),
                gpu=of(node.product),
                node_age=seconds(old, "metadata.creationTimestamp"),
                holders=of(names(pod.ref for pod in holders(node))),
            )


def _notes(node: NodeFacts, resource: GpuResource) -> Iterator[Note]:
    if resource.requested > (resource.allocatable or 0):
        yield note("overdrawn")
    if node.sharing.replicas and node.sharing.replicas > 1:
        yield note("shared", replicas=node.sharing.replicas)
    bad = bad_conditions(node)
    if bad:
        yield note("condition", conditions=bad)


RULE = Rule(
    id="allocatable-below-capacity",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
