"""Nodes of one pool run different GPU driver versions.

What:
    GPU nodes that are meant to be equal (same pool; without pool labels the same instance type, else the same GPU
    model) report more than one driver version. Nodes that offer no GPU are left out: their labels tell of the past.

Why:
    An image that needs the newer driver fails on some nodes only, depending on where it lands, which looks like chance.
    It is also the sign of an upgrade that has stopped. Medium; low where the versions are of the same branch.

Fix:
    Finish the upgrade, or replace the nodes that are behind.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/2509; NVIDIA/k8s-device-plugin internal/lm/nvml.go (labels).

Seeds: S4, S19
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of
from rules.checks._operator import upgrade_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per group of nodes with more than one driver version."""
    groups: dict[tuple[str, str], list[NodeFacts]] = {}
    for node in facts.gpu_nodes:
        alike = alike_with(node)
        if alike is not None and node.driver_version and any(item.allocatable for item in node.resources):
            groups.setdefault(alike, []).append(node)
    for (form, name), nodes in sorted(groups.items()):
        yield nodes[0].ref
        versions = sorted({node.driver_version or "" for node in nodes}, key=_numbers)
        if len(versions) < 2:
            continue
        behind = [node.ref for node in nodes if node.driver_version != versions[-1]]
        same_branch = len({version.partition(".")[0] for version in versions}) == 1 and nodes[0].vendor == "nvidia"
        yield found(
            Severity.LOW if same_branch else Severity.MEDIUM,
            *(node.ref for node in nodes),
            identity=f"{form} {name}",
            notes=_notes(form, nodes),
            group=of(name, f"the {form} of the nodes"),
            driver=of(versions, nodes[0].driver_source),
            newest=versions[-1],
            behind=of(names(behind)),
            nodes=of(names(node.ref for node in nodes)),
        )


def alike_with(node: NodeFacts) -> tuple[str, str] | None:
    """What the node is meant to share with its like; None when nothing is known."""
    if node.pool:
        return "pool", node.pool
    if node.instance_type:
        return "instance_type", node.instance_type
    return ("model", node.product) if node.product else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _notes(form: str, nodes: list[NodeFacts]) -> Iterator[Note]:
    yield note("behind")
    if form != "pool":
        yield note("no_pool")
    upgrades = [upgrade for node in nodes if (upgrade := upgrade_of(node)) is not None]
    if any(upgrade.phase != "done" for upgrade in upgrades):
        yield note("upgrade_open")


RULE = Rule(
    id="driver-version-skew",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S4", "S19"),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
