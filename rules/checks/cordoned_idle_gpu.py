"""A GPU node is cordoned with nothing on it, and is still paid.

What:
    A GPU node is unschedulable for longer than a day (by the time on its taint; unknown where the taint carries none)
    and no pod holds a GPU there. What the cordon may be for is read from driver upgrade labels.

Why:
    New pods cannot come, and nobody removes a cordoned node by itself: it waits for whoever cordoned it, or for an
    upgrade that has failed. The money is told by ``idle-gpu-node``, or by the finding on its missing GPUs.

Fix:
    Finish the repair and uncordon it, or remove the node.

Source:
    seeds S23, S24; https://github.com/NVIDIA/gpu-operator/issues/2820; Kubernetes v1.36 pkg/controller/nodelifecycle
    (taint node.kubernetes.io/unschedulable and its timeAdded).

Seeds: S23, S24
"""

from collections.abc import Iterator
from datetime import datetime

from rules.checks._kit import age, found, moment, note, of, seconds
from rules.checks._nodes import empty_for
from rules.checks._scheduling import CORDON_TAINT
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LONG_SECONDS = 24 * 3600
_UPGRADE = ("nvidia.com/gpu-driver-upgrade-state", "operator.amd.com/gpu-driver-upgrade-state")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        since = _since(node)
        cordoned = age(facts, since)
        known = cordoned if cordoned is not None else age(facts, node.since)
        if not _is_cordoned(node) or empty_for(facts, node) is None or (known or 0) < LONG_SECONDS:
            continue
        upgrade = next((node.labels[key] for key in _UPGRADE if node.labels.get(key)), None)
        yield found(
            Severity.MEDIUM if since else Severity.LOW,
            node.ref,
            notes=[*([] if since else [note("since_unknown")]), *([note("upgrade")] if upgrade else [])],
            node=node.name,
            cordoned=seconds(cordoned, "spec.taints[].timeAdded"),
            cordoned_since=moment(since),
            upgrade=of(upgrade, "label of the driver upgrade"),
        )


def _is_cordoned(node: NodeFacts) -> bool:
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return node.unschedulable or any(taint.key == CORDON_TAINT for taint in taints)


def _since(node: NodeFacts) -> datetime | None:
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return next((taint.timeAdded for taint in taints if taint.key == CORDON_TAINT and taint.timeAdded), None)


RULE = Rule(
    id="cordoned-idle-gpu",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
