"""Pods ask for ``nvidia.com/gpu`` while the node offers its GPUs as ``nvidia.com/gpu.shared``.

What:
    A node lists ``nvidia.com/gpu`` with 0 beside allocatable ``nvidia.com/gpu.shared``, and a pod that asks for the
    plain name waits. The 0 is what is left of the key after time-slicing or MPS renamed the resource
    (``renameByDefault``): the driver is fine. Without a waiting pod there is nothing to tell.

Why:
    Simple tools report a broken driver; the real trouble is the pod, which asks for a name that is gone. High where no
    node that the pod may use offers the plain name, else low.

Fix:
    Ask for ``nvidia.com/gpu.shared``, or keep whole GPUs on some nodes.

Source:
    seeds S15, S18; https://github.com/NVIDIA/dcgm-exporter/issues/151; NVIDIA/k8s-device-plugin README.md
    (renameByDefault).

Seeds: S15, S18
"""

from collections.abc import Iterator

from rules.checks._kit import found, gpus, names, of
from rules.checks._pending import offers, waiting
from rules.checks._scheduling import resource_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

PLAIN, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    nodes = [node for node in facts.gpu_nodes if _renamed(node)]
    waits = [queue for queue in waiting(facts, policy) if queue.resource == PLAIN]
    if not nodes or not waits:
        return
    yield nodes[0].ref
    shut_out = [
        ref for queue in waits if not any(offers(node, PLAIN) for node in queue.admitted.nodes) for ref in queue.refs
    ]
    replicas = {node.sharing.replicas for node in nodes}
    yield found(
        Severity.HIGH if shut_out else Severity.LOW,
        *(node.ref for node in nodes),
        *shut_out,
        identity=PLAIN,
        nodes=of(names(node.ref for node in nodes), "status.allocatable"),
        pods=of(names(ref for queue in waits for ref in queue.refs)),
        shared=sum(item.allocatable or 0 for node in nodes if (item := resource_of(node, SHARED))),
        replicas=of(next(iter(replicas)) if len(replicas) == 1 else None, "nvidia.com/gpu.replicas"),
        gpus=gpus(sum(node.physical_gpus or 0 for node in nodes) or None, "nvidia.com/gpu.count"),
    )


def _renamed(node: NodeFacts) -> bool:
    plain, shared = resource_of(node, PLAIN), resource_of(node, SHARED)
    return plain is not None and not plain.allocatable and shared is not None and bool(shared.allocatable)


RULE = Rule(
    id="shared-rename-zero-key",
    family="sharing",
    severity=Severity.HIGH,
    seeds=("S15", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
