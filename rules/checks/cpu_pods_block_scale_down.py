"""Only pods without a GPU keep an idle GPU node up.

What:
    A ready GPU node has had no pod that holds a GPU for longer than the grace period, and pods other than those of
    DaemonSets run on it. What else keeps it (the pool's minimum, a disruption budget, local storage, an annotation) is
    listed, since all of it has to go.

Why:
    An autoscaler has to move these pods before it can take the node; the names are the list of what to fix. The money
    is told by ``idle-gpu-node``, which speaks of the same node; this one is evidence, so it is low and has no cost.

Fix:
    Move the pods to nodes without a GPU, and taint the GPU pool so that they stay away.

Source:
    seeds S23, S24; https://github.com/kubernetes/autoscaler/issues/2689; blockers: see
    :mod:`rules.facts.scale_down`.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, seconds
from rules.checks._nodes import empty_for, idle, kept_by, taint_keys
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import movable
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        pods = movable(node)
        if not pods or not idle(facts, node, policy):
            continue
        also = kept_by(facts, node)
        yield found(
            Severity.LOW,
            node.ref,
            *(pod.ref for pod in pods),
            notes=[note("also")] if also else [],
            remedy="default" if taint_keys(node) else "taint",
            node=node.name,
            cpu_pods=names(pod.ref for pod in pods),
            idle=seconds(empty_for(facts, node), "pod status, metadata.creationTimestamp"),
            blockers=also,
        )


RULE = Rule(
    id="cpu-pods-block-scale-down",
    family="billing",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
