"""A volume that lives on one node pins a pod to its GPU node.

What:
    A pod on an autoscaled GPU node mounts a claim whose volume has a node affinity to one host name (local volumes,
    local-path), and the node is under-used or holds no GPU work. Not said when it is known that nothing scales nodes.

Why:
    The pod can run nowhere else, so the autoscaler finds no place for it and keeps the node. No annotation helps.

Fix:
    Move the data to a volume that can follow the pod, or keep such pods off GPU nodes.

Source:
    seeds S21, S24; https://github.com/kubernetes/autoscaler/issues/6417; kubernetes/api core/v1 types.go
    (VolumeNodeAffinity).

Seeds: S21, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, short
from rules.checks._nodes import refs
from rules.checks._workloads import by_workload, nodes_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import movable, pinned_by_volume, under_used
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    if facts.scaling.absent:
        return
    open_nodes = [node for node in facts.gpu_nodes if node.ready is True and under_used(facts, node)]
    pinned = [
        pod
        for node in open_nodes
        if not facts.scaling.switched_off(node)
        for pod in movable(node)
        if pinned_by_volume(facts, pod)
    ]
    for owner, pods in by_workload(facts, pinned).items():
        yield owner
        claims = sorted({claim for pod in pods for claim in pinned_by_volume(facts, pod)})
        nodes = nodes_of(facts, pods)
        yield found(
            Severity.LOW,
            *(pod.ref for pod in pods),
            *claims,
            *refs(nodes),
            identity=str(owner),
            owner=short(owner),
            pods=names(pod.ref for pod in pods),
            claims=names(claims),
            nodes=names(refs(nodes)),
        )


RULE = Rule(
    id="local-pv-blocks",
    family="storage",
    severity=Severity.LOW,
    seeds=("S21", "S24"),
    needs=("Node", "Pod", "PersistentVolumeClaim", "PersistentVolume"),
    check=check,
    doc=__doc__ or "",
)
