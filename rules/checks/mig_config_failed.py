"""The MIG layout that is asked for was not applied on a node.

What:
    The label ``nvidia.com/mig.config.state`` says ``failed``; or ``pending`` or ``rebooting`` while the operator has
    not been ready for more than 30 minutes; or the product label ends in ``MIG-INVALID``: under the strategy ``single``
    the GPUs do not all have the same layout.

Why:
    The device plugin is paused during the change and stays so: the node offers no GPU, or the old one.

Fix:
    Ask for a layout that the ConfigMap knows and the card supports, when no pod holds the GPU.

Source:
    NVIDIA/mig-parted pkg/mig/reconfigure/reconfigure.go; NVIDIA/k8s-device-plugin internal/lm/mig-strategy.go.

Seeds: S16, S18
"""

from collections.abc import Iterator

from rules.checks._kit import cost_note, cost_of, found, holders, names, note, of, seconds
from rules.checks._operator import not_ready_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_LONG_SECONDS = 1800
_STATE = "nvidia.com/mig.config.state"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node whose layout was not applied."""
    for node in facts.nodes:
        form = _form(facts, node)
        if form is None:
            continue
        yield node.ref
        offered = any(item.allocatable for item in node.resources)
        cost = None if offered else cost_of(node.price, None)
        held = names(pod.ref for pod in holders(node))
        yield found(
            Severity.MEDIUM if offered else Severity.HIGH,
            node.ref,
            remedy="held" if held and form != "invalid" else form,
            cost=cost,
            identity=str(node.ref),
            notes=[*_notes(form, offered, held), *([] if offered else [cost_note(cost)])],
            node=node.name,
            mig_config=of(node.labels.get("nvidia.com/mig.config"), "metadata.labels[nvidia.com/mig.config]"),
            mig_state=of(node.labels.get(_STATE), f"metadata.labels[{_STATE}]"),
            resources=of([f"{item.name}={item.allocatable or 0}" for item in node.resources], "status.allocatable"),
            gpu=of(node.product),
            lasts=seconds(not_ready_for(facts), "conditions of the operator"),
            holders=of(held),
        )


def _form(facts: ClusterFacts, node: NodeFacts) -> str | None:
    state = node.labels.get(_STATE)
    if state == "failed":
        return "default"
    if state in ("pending", "rebooting") and (not_ready_for(facts) or 0) > _LONG_SECONDS:
        return "pending"
    return "invalid" if node.labels.get("nvidia.com/gpu.product", "").endswith("MIG-INVALID") else None


def _notes(form: str, offered: bool, held: list[str]) -> Iterator[Note]:
    yield note("invalid" if form == "invalid" else "old_layout" if offered else "offers_none")
    if held:
        yield note("held")


RULE = Rule(
    id="mig-config-failed",
    family="sharing",
    severity=Severity.HIGH,
    seeds=("S16", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
