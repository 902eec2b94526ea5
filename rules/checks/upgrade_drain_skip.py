"""A pod opts out of the drain that the driver upgrade of its node needs.

What:
    The pod carries the label ``nvidia.com/gpu-driver-upgrade-drain.skip=true`` and holds a GPU on a node whose driver
    upgrade is required, under way or failed.

Why:
    The GPU stays in use, so the old module cannot be unloaded: the upgrade of this node cannot end, and with the
    default of one node at a time nobody else's either.

Fix:
    Take the label off and let the pod restart, or exempt the node from the upgrade on purpose.

Source:
    NVIDIA/k8s-operator-libs pkg/upgrade/consts.go (as vendored in NVIDIA/gpu-operator).

Seeds: S2, S4
"""

from collections.abc import Iterator

from rules.checks._kit import found, of, owner_of, short
from rules.checks._operator import NVIDIA_STATE, upgrade_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_SKIP = "nvidia.com/gpu-driver-upgrade-drain.skip"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pod that keeps its node from being upgraded."""
    for node in facts.nodes:
        upgrade = upgrade_of(node)
        if upgrade is None or upgrade.phase == "done" or upgrade.label != NVIDIA_STATE:
            continue
        for pod in node.gpu_pods:
            yield pod.ref
            if (pod.pod.metadata.labels or {}).get(_SKIP) != "true":
                continue
            owner = owner_of(pod)
            yield found(
                Severity.MEDIUM,
                pod.ref,
                node.ref,
                pod=short(pod.ref),
                pod_namespace=pod.ref.namespace,
                pod_name=pod.ref.name,
                workload=str(owner),
                node=node.name,
                upgrade_state=of(upgrade.state, f"metadata.labels[{upgrade.label}]"),
            )


RULE = Rule(
    id="upgrade-drain-skip",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
