"""A reservation pod of KAI holds a GPU for which no pod with a fraction is left.

What:
    In the reservation namespace of KAI or Run:ai a pod older than the grace period carries a ``runai-gpu-group``, and
    no unfinished pod elsewhere belongs to that group.

Why:
    The reservation keeps the whole GPU for pods that share it. When the last of them is gone and it stays, nobody has
    the GPU. Medium.

Fix:
    Delete the reservation pod; KAI makes a new one when it needs it.

Source:
    seeds S14, S27; NVIDIA/KAI-Scheduler pkg/common/constants/constants.go.

Seeds: S14, S27
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, gpus, of, seconds, short
from rules.engine import Rule
from rules.facts import marks
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

NAMESPACES = marks.RESERVING_NAMESPACES
GROUP = "runai-gpu-group"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per reservation pod."""
    reserving = [pod for pod in facts.marked(marks.RESERVES) if not pod.terminal]
    used = {
        group
        for pod in facts.pods
        if reserving and not pod.terminal and pod.ref.namespace not in NAMESPACES
        for group in _groups(pod)
    }
    for pod in reserving:
        yield pod.ref
        groups = _groups(pod)
        held = age(facts, pod.pod.metadata.creationTimestamp)
        if not groups or groups & used or held is None or held < policy.pending_grace_seconds:
            continue
        node = facts.node(pod.node_name or "")
        yield found(
            Severity.MEDIUM,
            pod.ref,
            *([node.ref] if node else []),
            pod=short(pod.ref),
            pod_namespace=pod.ref.namespace,
            pod_name=pod.ref.name,
            node=of(pod.node_name),
            group=of(min(groups), GROUP),
            held=seconds(held, "metadata.creationTimestamp"),
            gpus=gpus(sum(pod.gpu_requests.values()) or None, "spec.containers[].resources"),
        )


def _groups(pod: PodFacts) -> set[str]:
    """GPU groups of a pod: one by the plain label, several by labels that carry the group in their key."""
    labels = pod.pod.metadata.labels or {}
    return {value for key, value in labels.items() if value and (key == GROUP or key.startswith(f"{GROUP}/"))}


RULE = Rule(
    id="kai-reservation-leak",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S14", "S27"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
