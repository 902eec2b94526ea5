"""Nodes advertise more GPUs than they have, because each is shared or partitioned.

What:
    A node's allocatable units of a resource that sounds like whole GPUs (the plain name, or ``.shared``) are more than
    its physical GPUs, as labels or the instance type tell. MIG devices under names of their own mislead nobody.

Why:
    Nothing is wrong with it. But dashboards and bills that sum ``allocatable`` are wrong by that factor, and a free
    share is no free GPU. gpu-advisor counts physical GPUs. Info.

Fix:
    Divide by the replicas, or count ``nvidia.com/gpu.count``.

Source:
    seeds S15, S16, S23; NVIDIA/k8s-device-plugin internal/lm/resource.go; ROCm/k8s-device-plugin
    docs/user-guide/configuration.md.

Seeds: S15, S16, S23
"""

from collections.abc import Iterator

from rules.checks._kit import found, gpus, names, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    more = [node for node in facts.gpu_nodes if node.physical_gpus and _units(node) > node.physical_gpus]
    if not more:
        return
    yield more[0].ref
    physical = sum(node.physical_gpus or 0 for node in more)
    yield found(
        Severity.INFO,
        *(node.ref for node in more),
        identity="units",
        nodes=of(names(node.ref for node in more)),
        units=of(sum(_units(node) for node in more), "status.allocatable"),
        gpus=gpus(physical, "nvidia.com/gpu.count, labels of partitions or the instance type"),
        modes=of(sorted({node.sharing.mode or "unknown" for node in more})),
        factor=round(sum(_units(node) for node in more) / physical, 1),
    )


def _units(node: NodeFacts) -> int:
    plain = [item for item in node.resources if item.form in ("device", "shared") and item.origin == "kubelet"]
    return sum(item.allocatable or 0 for item in plain if "/mig-" not in item.name)


RULE = Rule(
    id="shared-gpu-counted-as-physical",
    family="sharing",
    severity=Severity.INFO,
    seeds=("S15", "S16", "S23"),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
