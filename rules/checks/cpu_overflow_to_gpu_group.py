"""The autoscaler grows a GPU group for pods that need no GPU.

What:
    cluster-autoscaler wrote TriggeredScaleUp for a pod without a GPU, the group that grew is one of GPU nodes, and
    these nodes carry no taint that keeps such pods off.

Why:
    The expander takes any group that fits, for example when the CPU groups are at their maximum: CPU pods are served by
    the most expensive machines, which they then keep alive. Medium.

Fix:
    Taint the GPU group, and let a CPU group grow.

Source:
    seeds S23, S24; https://github.com/kubernetes/autoscaler/issues/3767.

Seeds: S23, S24
"""

import re
from collections.abc import Iterator

from rules.checks._kit import cost_note, cost_of, found, names, note, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.events import event_message, event_object
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_GREW = re.compile(r"\{(\S+) (\d+)->(\d+)")
_HARD = ("NoSchedule", "NoExecute")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node group."""
    grown: dict[str, dict[ObjectRef, PodFacts]] = {}
    for event in facts.events:
        ref = event_object(event)
        if event.reason != "TriggeredScaleUp" or ref is None or ref.kind != "Pod":
            continue
        yield ref
        pod = facts.pod(ref.namespace, ref.name)
        if pod is None or pod.gpu_requests or pod.other_gpu_claim:
            continue
        for match in _GREW.finditer(event_message(event)):
            grown.setdefault(match[1], {})[ref] = pod
    for group, pods in sorted(grown.items()):
        nodes = _nodes(facts, group)
        if not nodes or not all(node.is_gpu_node for node in nodes) or any(_guarded(node) for node in nodes):
            continue
        full = [item.name for item in facts.autoscaler_groups or () if item.full and item.name != group]
        cost = cost_of(nodes[0].price, None)
        yield found(
            Severity.MEDIUM,
            *pods,
            *(node.ref for node in nodes),
            identity=group,
            notes=[*([note("full", full=full)] if full else []), cost_note(cost)],
            group=group,
            pods=of(names(pods)),
            nodes=of(names(node.ref for node in nodes)),
            node=nodes[0].name,
            gpu=of(nodes[0].product),
        )


def _nodes(facts: ClusterFacts, group: str) -> list[NodeFacts]:
    """Nodes of the group, by the autoscaler's status or by names alone."""
    known = [node for node in facts.nodes if (found_group := facts.scaling.group(node)) and found_group.name == group]
    return known or [node for node in facts.nodes if node.pool and f"-{node.pool}-" in f"-{group}-"]


def _guarded(node: NodeFacts) -> bool:
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return any(item.effect in _HARD and not item.key.startswith("node.kubernetes.io/") for item in taints)


RULE = Rule(
    id="cpu-overflow-to-gpu-group",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "Event"),
    check=check,
    doc=__doc__ or "",
)
