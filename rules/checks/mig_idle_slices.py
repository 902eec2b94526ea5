"""MIG devices stand free while pods wait for GPUs of another shape.

What:
    Nodes under MIG strategy mixed have free devices, and GPU pods of the same maker have waited longer than the grace
    period for a resource that is none of them: a whole GPU or another profile. The pods themselves are told by
    ``mig-resource-mismatch`` or ``gpu-pod-pending``.

Why:
    Capacity is paid and there, in the wrong shape. Medium.

Fix:
    Give an unused node another layout, or let the pods ask for what is free.

Source:
    seeds S16, S18; https://github.com/NVIDIA/gpu-operator/issues/1287.

Seeds: S16, S18
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of
from rules.checks._pending import Waiting, by_nodes
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, GpuResource
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    spare = [
        (node, item)
        for node in facts.gpu_nodes
        if node.ready and not node.unschedulable
        for item in node.resources
        if item.form == "mig" and item.origin == "kubelet" and item.free
    ]
    waits = [queue for queue in by_nodes(facts, policy) if _other_shape(queue, [item for _, item in spare])]
    if not spare or not waits:
        return
    yield spare[0][0].ref
    free: dict[str, int] = {}
    for _, item in spare:
        free[item.name] = free.get(item.name, 0) + (item.free or 0)
    nodes = list({node.name: node for node, _ in spare}.values())
    unused = [node for node in nodes if not node.gpu_pods]
    yield found(
        Severity.MEDIUM,
        *(node.ref for node in nodes),
        remedy="unused" if unused else "default",
        identity="mig slices",
        notes=[note("unused", unused=names(node.ref for node in unused))] if unused else [],
        nodes=of(names(node.ref for node in nodes)),
        node=(unused or nodes)[0].name,
        free=of([f"{name} ×{amount}" for name, amount in sorted(free.items())], "allocatable minus requests"),
        free_total=sum(free.values()),
        pods=of(names(ref for queue in waits for ref in queue.refs)),
        wanted=of(sorted({queue.resource or "" for queue in waits})),
    )


def _other_shape(queue: Waiting, spare: list[GpuResource]) -> bool:
    """Whether the pods ask for a GPU of the same maker that is none of the free devices."""
    wanted = queue.resource
    return wanted is not None and wanted.startswith("nvidia.com/") and all(item.name != wanted for item in spare)


RULE = Rule(
    id="mig-idle-slices",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S16", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
