"""Nodes that do not report any more: which of them are machines that are billed, and which are likely gone."""

import re
from datetime import datetime

from rules.facts.cluster import ClusterFacts, NodeFacts

from ._kit import age, ready_since

NOT_READY_SECONDS = 1800
GHOST_SECONDS = 86400
_SELF_MANAGED = re.compile(r"(?:k3s|rke2|kind|minikube|generic|none)://", re.IGNORECASE)


def not_ready_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    """Seconds since the node stopped being ready; None when it is ready, or since when is unknown."""
    return age(facts, ready_since(node)) if node.ready is False else None


def heartbeat(node: NodeFacts) -> datetime | None:
    """When the kubelet last reported, by the condition Ready."""
    conditions = (node.node.status.conditions or []) if node.node.status else []
    return next((item.lastHeartbeatTime for item in conditions if item.type == "Ready"), None)


def silent(node: NodeFacts) -> bool:
    """Whether the kubelet does not report at all (Ready is Unknown), which is more than reporting a fault."""
    conditions = (node.node.status.conditions or []) if node.node.status else []
    return any(item.type == "Ready" and item.status == "Unknown" for item in conditions)


def self_managed(node: NodeFacts) -> bool:
    """Whether no cloud controller removes the Node object when its machine is gone: no provider id, or one of a
    distribution that makes it up (k3s, RKE2, kind)."""
    provider_id = node.node.spec.providerID if node.node.spec else None
    return not provider_id or bool(_SELF_MANAGED.match(provider_id))


def is_ghost(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether the node is likely an entry without a machine."""
    lasts = not_ready_for(facts, node)
    return lasts is not None and lasts >= GHOST_SECONDS and silent(node) and self_managed(node)
