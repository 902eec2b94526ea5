"""A driver upgrade does not go on: a node has failed, or has waited for more than a day.

What:
    The label that the operator keeps on each node says that the upgrade failed (NVIDIA ``upgrade-failed``; AMD
    ``Upgrade-Failed``, ``Upgrade-Timed-Out``, ``Drain-Failed`` and the like), or that it is still to be done although a
    failed node blocks the queue or the operator has not been ready for more than a day. Nodes that an administrator
    exempted are left out. One finding per operator: it is one roll-out.

Why:
    A failed node stays cordoned and is paid. NVIDIA upgrades one node at a time by default, so that one failure stops
    all the others, and the pool runs on two drivers.

Fix:
    Find out why the first node failed, mend it, and set its label back; then the rest follows.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/2509; NVIDIA/k8s-operator-libs pkg/upgrade/consts.go;
    ROCm/gpu-operator internal/controllers/upgrademgr.go.

Seeds: S2, S4
"""

from collections.abc import Iterator

from rules.checks._components import Layer, pods_of, trouble
from rules.checks._kit import found, names, note, of, seconds, short
from rules.checks._operator import NVIDIA_STATE, Upgrade, upgrade_of, upgrade_running_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_DAY = 86400


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per operator whose upgrade is stuck."""
    by_label: dict[str, list[tuple[NodeFacts, Upgrade]]] = {}
    for node in facts.nodes:
        upgrade = upgrade_of(node)
        if upgrade is not None and upgrade.phase != "done":
            by_label.setdefault(upgrade.label, []).append((node, upgrade))
    for label, states in sorted(by_label.items()):
        yield states[0][0].ref
        failed = [node for node, upgrade in states if upgrade.phase == "failed"]
        long = {node.name: upgrade_running_for(facts, node) for node, _ in states}
        waiting = [
            node for node, upgrade in states if upgrade.phase == "open" and (failed or (long[node.name] or 0) > _DAY)
        ]
        if failed or waiting:
            yield _finding(label, {node.name: upgrade.state for node, upgrade in states}, failed, waiting, long)


def _finding(
    label: str,
    states: dict[str, str],
    failed: list[NodeFacts],
    waiting: list[NodeFacts],
    long: dict[str, float | None],
) -> Finding:
    nodes = [*failed, *waiting]
    known = [seconds_ for node in nodes if (seconds_ := long[node.name]) is not None]
    maker = "nvidia" if label == NVIDIA_STATE else "amd"
    return found(
        Severity.HIGH if failed else Severity.MEDIUM,
        *(node.ref for node in nodes),
        remedy=f"{maker}_failed" if failed else f"{maker}_waiting",
        identity=label,
        notes=[*_notes(failed, waiting), *([note("since")] if known else [])],
        label=label,
        states=of(sorted({states[node.name] for node in nodes}), f"metadata.labels[{label}]"),
        failed=of(names(node.ref for node in failed)),
        still_waiting=of(names(node.ref for node in waiting)),
        node=nodes[0].name,
        nodes=of(names(node.ref for node in nodes)),
        lasts=seconds(max(known, default=None), "conditions of the operator, age of the driver pod"),
    )


def _notes(failed: list[NodeFacts], waiting: list[NodeFacts]) -> Iterator[Note]:
    if failed:
        yield note("failed")
    if waiting:
        yield note("behind" if failed else "waiting_long")
    crashing = [short(pod.ref) for node in failed for pod in pods_of(node, Layer.DRIVER) if trouble(pod)]
    if crashing:
        yield note("driver_pod", failing_pod=crashing[0])
    cordoned = [node.ref for node in failed if node.unschedulable]
    if cordoned:
        yield note("failed_cordoned", cordoned=names(cordoned))


RULE = Rule(
    id="driver-upgrade-stuck",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
