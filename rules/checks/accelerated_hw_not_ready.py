"""A health agent says that a GPU of the node, or its links, are bad.

What:
    A node condition tells it: AcceleratedHardwareReady is False (EKS), XIDErrors, GPUMissing, NVLinkStatusInactive or
    IBLinkFlapping is True (AKS), a problem of AMD's detector, NVSentinel's, or one of your own whose name says GPU and
    fault.

Why:
    Kubernetes does nothing with such a condition: pods keep landing on the node unless a taint or a cordon holds them
    off, and healthy GPUs of the node are paid for nothing when one does. High; medium where only a link flaps.

Fix:
    Read the Xid or the agent's message, drain, reset or replace.

Source:
    aws/eks-node-monitoring-agent pkg/conditions; MicrosoftDocs/azure-aks-docs articles/aks/gpu-health-monitoring.md;
    ROCm/gpu-operator documents on node problem detection.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import age, bad_conditions, cost_note, cost_of, found, holders, names, note, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import Condition
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node with a bad condition."""
    for node in facts.gpu_nodes:
        yield node.ref
        bad = bad_conditions(node)
        if not bad:
            continue
        told = [item for item in _conditions(node) if item.type in bad]
        since = [item.lastTransitionTime for item in told if item.lastTransitionTime]
        held = names(pod.ref for pod in holders(node))
        cost = cost_of(node.price, None)
        yield found(
            Severity.MEDIUM if all("Flapping" in name for name in bad) else Severity.HIGH,
            node.ref,
            remedy=node.vendor if node.vendor == "amd" else "default",
            cost=cost,
            identity=str(node.ref),
            notes=[*_notes(node, held, told), cost_note(cost)],
            node=node.name,
            conditions=of(bad, "status.conditions"),
            lasts=seconds(age(facts, min(since, default=None)), "status.conditions[].lastTransitionTime"),
            gpu=of(node.product),
            resources=of([f"{item.name}={item.allocatable or 0}/{item.capacity or 0}" for item in node.resources]),
            holders=of(held),
        )


def _conditions(node: NodeFacts) -> list[Condition]:
    return (node.node.status.conditions or []) if node.node.status else []


def _notes(node: NodeFacts, held: list[str], told: list[Condition]) -> Iterator[Note]:
    said = next((item.message or item.reason for item in told if item.message or item.reason), None)
    if said:
        yield note("says", said=said[:200])
    taints = (node.node.spec.taints if node.node.spec else None) or []
    fences = [item.key for item in taints if item.effect in ("NoSchedule", "NoExecute") and _fence(item.key)]
    if node.unschedulable or fences:
        yield note("fenced", fences=fences or ["cordon"])
    else:
        yield note("open")
    if held:
        yield note("held")


def _fence(key: str) -> bool:
    return any(word in key.lower() for word in ("unhealthy", "xid", "problem", "health", "repair", "quarantine"))


RULE = Rule(
    id="accelerated-hw-not-ready",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
