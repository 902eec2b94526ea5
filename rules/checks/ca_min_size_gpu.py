"""A GPU node group has a minimum above 0, and nothing asks for its GPUs.

What:
    The status of cluster-autoscaler shows a minimum of one or more for a group of GPU nodes, no pod has requested a GPU
    of the group for longer than the grace period, and the group stands at its minimum.

Why:
    The minimum is a permanent bill: the autoscaler never goes below it. What the nodes cost is told by
    ``idle-gpu-node``, node by node.

Fix:
    Set the minimum to 0; on AWS also tag the group so that it can grow from 0.

Source:
    seeds S23, S24; kubernetes/autoscaler cluster-autoscaler-1.36.1 clusterstate/api/types.go, FAQ.md.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of
from rules.checks._nodes import idle, refs
from rules.engine import Rule
from rules.facts.autoscaler import NodeGroup
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per group."""
    members: dict[NodeGroup, list[NodeFacts]] = {}
    for node in facts.gpu_nodes:
        own = facts.scaling.group(node)
        if own is not None:
            members.setdefault(own, []).append(node)
    for group in facts.autoscaler_groups or ():
        yield group.source
        nodes = members.get(group, [])
        if not group.minimum or not nodes or (group.target or 0) > group.minimum:
            continue
        if not all(idle(facts, node, policy) for node in nodes):
            continue
        yield found(
            Severity.MEDIUM,
            group.source,
            *refs(nodes),
            identity=f"group {group.name}",
            group=group.name,
            minimum=of(group.minimum, "ConfigMap cluster-autoscaler-status"),
            nodes=names(refs(nodes)),
            pool=nodes[0].pool,
        )


RULE = Rule(
    id="ca-min-size-gpu",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "ConfigMap"),
    check=check,
    doc=__doc__ or "",
)
