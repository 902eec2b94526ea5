"""Parts of the GPU Operator stay paused on a node after a driver upgrade or a MIG change.

What:
    Labels ``nvidia.com/gpu.deploy.*`` say ``paused-for-driver-upgrade`` or ``paused-for-mig-change``, and the pause
    should be over: the MIG change or the upgrade has ended or failed, the driver pod is ready, or the operator has not
    been ready for more than 30 minutes. A pause of some minutes is part of every change and is not reported.

Why:
    While the labels say so, no device plugin, no metrics and no validator run on the node; its GPUs cannot be used.

Fix:
    Mend what failed; when nothing runs any more, set the labels back to ``true``.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/316; NVIDIA/k8s-driver-manager; NVIDIA/mig-parted
    pkg/mig/reconfigure/reconfigure.go.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import found, note, of, seconds
from rules.checks._operator import driver_ready_for, not_ready_for, paused_operands, upgrade_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_LONG_SECONDS = 1800


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node whose operands stay paused."""
    for node in facts.nodes:
        paused = paused_operands(node)
        if not paused:
            continue
        yield node.ref
        causes = sorted(set(paused.values()))
        why = _should_be_over(facts, node, causes)
        if why is None:
            continue
        labels = " ".join(f"nvidia.com/gpu.deploy.{name}=true" for name in sorted(paused))
        offered = any(item.allocatable for item in node.resources)
        yield found(
            Severity.MEDIUM if offered else Severity.HIGH,
            node.ref,
            remedy="mig" if causes == ["mig-change"] else "default",
            identity=str(node.ref),
            notes=[note(why)],
            node=node.name,
            operands=of(sorted(paused), "metadata.labels[nvidia.com/gpu.deploy.*]"),
            pause=of(causes),
            lasts=seconds(not_ready_for(facts), "conditions of the operator"),
            labels=labels,
            mig_state=of(node.labels.get("nvidia.com/mig.config.state")),
        )


def _should_be_over(facts: ClusterFacts, node: NodeFacts, causes: list[str]) -> str | None:
    if "mig-change" in causes and node.labels.get("nvidia.com/mig.config.state") in ("failed", "success"):
        return "mig_ended"
    upgrade = upgrade_of(node)
    if "driver-upgrade" in causes and upgrade is not None and upgrade.phase == "failed":
        return "upgrade_failed"
    if "driver-upgrade" in causes and (driver_ready_for(facts, node) or 0) > _LONG_SECONDS:
        return "driver_ready"
    return "operator_not_ready" if (not_ready_for(facts) or 0) > _LONG_SECONDS else None


RULE = Rule(
    id="operands-paused",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
