"""A node is cut into partitions of which hardly any is used, while pods wait for whole GPUs.

What:
    The GPUs of a node are partitioned under their plain resource name (AMD compute partitions, MIG strategy single, GKE
    partitions), less than a tenth of the partitions is requested, and a pod for GPUs of that maker has waited longer
    than the grace period, kept off this node by its selector or resource name alone. MIG under names of its own is
    ``mig-idle-slices``.

Why:
    The node's whole GPUs are paid and out of the reach of the pod that needs them. Medium.

Fix:
    Move the few pods away and set the partitioning back.

Source:
    seeds S16, S18; ROCm/k8s-device-plugin docs/user-guide/configuration.md.

Seeds: S16, S18
"""

from collections.abc import Iterator

from rules.checks._kit import found, gpus, holders, names, of
from rules.checks._pending import by_nodes
from rules.checks._scheduling import Obstacle, vendor_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_MODES = ("partitioned", "mig-single")
_SHAPE = frozenset({Obstacle.SELECTOR, Obstacle.NOT_OFFERED, Obstacle.TOO_SMALL})
_MOSTLY_IDLE = 0.1


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for place, node in enumerate(facts.gpu_nodes):
        yield node.ref
        units = [item for item in node.resources if item.origin == "kubelet" and item.allocatable]
        total, used = sum(item.allocatable or 0 for item in units), sum(item.requested for item in units)
        if node.sharing.mode not in _MODES or not node.ready or node.unschedulable or used >= total * _MOSTLY_IDLE:
            continue
        waits = [
            queue
            for queue in by_nodes(facts, policy)
            if vendor_of(queue.resource or "") == node.vendor
            for group in queue.fits.groups
            if place in group.places and group.obstacles and group.obstacles <= _SHAPE
        ]
        if not waits:
            continue
        yield found(
            Severity.MEDIUM,
            node.ref,
            remedy="amd" if node.vendor == "amd" else "default",
            node=node.name,
            partitioning=of(_partitioning(node), node.sharing.source),
            used=of(used, "requests of unfinished pods"),
            total=of(total, "status.allocatable"),
            gpus=gpus(node.physical_gpus),
            holders=of(names(pod.ref for pod in holders(node))),
            pods=of(names(ref for queue in waits for ref in queue.refs)),
        )


def _partitioning(node: NodeFacts) -> str:
    return ", ".join(sorted(node.sharing.profiles)) or str(node.sharing.mode)


RULE = Rule(
    id="mostly-idle-partitioned-node",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S16", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
