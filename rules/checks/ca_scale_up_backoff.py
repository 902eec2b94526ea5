"""The cloud gives no more GPU nodes: the autoscaler holds a node group back after failed attempts.

What:
    cluster-autoscaler's status says ``Backoff`` of a group of GPU nodes (by its nodes or its name), or it refused a
    waiting GPU pod with "in backoff after failed scale-up"; or Karpenter wrote InsufficientCapacityError for GPU pods
    within the last hour.

Why:
    Pods wait for capacity or quota of the cloud; nothing in their manifests is wrong. High while GPU pods wait, else
    medium.

Fix:
    Raise the quota, or allow more zones, instance types or on-demand beside spot.

Source:
    seeds S22, S24, S25; kubernetes/autoscaler cluster-autoscaler-1.36.1 clusterstate/api/types.go and
    core/scaleup/orchestrator/skippedreasons.go; kubernetes-sigs/karpenter pkg/events/reason.go.

Seeds: S22, S24, S25
"""

import re
from collections.abc import Iterator
from datetime import timedelta

from rules.checks._kit import found, names, of
from rules.checks._pending import refusals, waiting
from rules.engine import Rule
from rules.facts.autoscaler import NodeGroup
from rules.facts.cluster import ClusterFacts
from rules.facts.events import event_message, event_object, event_reporter, event_time
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_GPU_NAME = re.compile(
    r"gpu|(?:^|[-_.])(?:g[4-6]\w*|p[2-6]\w*|n[cdv]\d\w*|t4|l4|l40s?|a10g?|a100|[hb][12]00|v100|mi[23]\d\dx?)(?:[-_.]|$)",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"quota|limit", re.IGNORECASE)
_FRESH = timedelta(hours=1)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node group of cluster-autoscaler, and one for Karpenter."""
    queues = waiting(facts, policy)
    pods = [
        ref
        for queue in queues
        if any("backoff" in reason.text.lower() for reason in refusals(facts, queue.first))
        for ref in queue.refs
    ]
    groups = [item for item in facts.autoscaler_groups or () if item.scale_up == "Backoff" and _of_gpus(facts, item)]
    for group in groups:
        yield group.source
        yield found(
            Severity.HIGH if pods else Severity.MEDIUM,
            group.source,
            *pods,
            remedy="quota" if _QUOTA.search(f"{group.error_code} {group.error_message}") else "default",
            identity=f"group {group.name}",
            group=group.name,
            target=of(group.target, "cloudProviderTarget"),
            maximum=of(group.maximum, "maxSize"),
            error=of(" ".join(filter(None, (group.error_code, group.error_message)))[:200] or None, "backoffInfo"),
            pods=of(names(pods)),
        )
    if pods and not groups:
        yield found(
            Severity.HIGH,
            *pods,
            identity="refusal",
            group=None,
            target=None,
            maximum=None,
            error=of("in backoff after failed scale-up", "event NotTriggerScaleUp"),
            pods=of(names(pods)),
        )
    yield from _karpenter(facts, [ref for queue in queues for ref in queue.refs])


def _of_gpus(facts: ClusterFacts, group: NodeGroup) -> bool:
    nodes = [node for node in facts.nodes if facts.scaling.group(node) == group]
    return any(node.is_gpu_node for node in nodes) if nodes else bool(_GPU_NAME.search(group.name))


def _karpenter(facts: ClusterFacts, pods: list[ObjectRef]) -> Iterator[Finding | ObjectRef]:
    said = [
        event
        for event in facts.events
        if event.reason == "InsufficientCapacityError" and event_reporter(event) == "karpenter"
        if (moment := event_time(event)) and facts.observed_at - moment < _FRESH
    ]
    if not said or not pods:
        return
    about = sorted({ref for event in said if (ref := event_object(event))})
    yield from about[:1]
    yield found(
        Severity.HIGH,
        *about,
        remedy="karpenter",
        identity="karpenter",
        group=of(about[0].name if about else None),
        target=None,
        maximum=None,
        error=of(event_message(said[-1])[:200], "event InsufficientCapacityError"),
        pods=of(names(pods)),
    )


RULE = Rule(
    id="ca-scale-up-backoff",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S22", "S24", "S25"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
