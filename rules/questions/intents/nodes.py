"""Intents about nodes: what there is, what is free or idle, what it costs, what keeps it, what a drain would do."""

from collections.abc import Iterator, Sequence

from rules import words
from rules.facts.model import NodeFacts
from rules.facts.scale_down import Blocker, movable, scale_down_blockers
from rules.findings import Evidence, Finding
from rules.questions.intents.shown import HOURS_PER_MONTH, Shown, View, findings_of, partly, told, unknown
from rules.questions.state import drivers, sharing
from rules.questions.state.lines import Line, group, node_names, say_slots, slots, takes_pods, who

_IDLE = ("idle-gpu-node", "cordoned-idle-gpu", "karpenter-empty-node-kept")
_UNUSABLE = (
    "device-plugin-missing", "allocatable-zero-driver", "node-image-without-driver", "karpenter-never-initialized",
    "ghost-node", "plugin-desired-zero", "plugin-not-tolerating-taint", "plugin-repelled-by-taint",
    "nodes-notready-gpu",
)  # fmt: skip
"""Rules that tell of nodes on which no GPU pod can run: paid for as idle ones are."""
_SICK = (
    "nodes-notready-gpu", "accelerated-hw-not-ready", "allocatable-below-capacity", "allocatable-zero-driver",
    "device-plugin-missing", "gpu-lost-whole-node", "ghost-node", "driver-kernel-mismatch", "driver-library-mismatch",
    "node-image-without-driver", "plugin-repelled-by-taint", "plugin-not-tolerating-taint", "dra-slice-missing",
    "dra-device-tainted", "mig-config-failed", "karpenter-never-initialized", "terminating-pod-on-dead-node",
)  # fmt: skip
_SPOT = ("spot-bare-pod", "spot-no-handler", "spot-pdb-zero")


def _model(node: NodeFacts) -> str | None:
    return node.product


def inventory(view: View) -> Shown:
    """GPUs by model, counted as cards."""
    blind = unknown(view, "Node")
    if blind is not None and not view.facts.nodes:
        return blind
    nodes = view.gpu_nodes
    lines, evidence = [], []
    for product in sorted({node.product or "" for node in nodes}):
        members = [node for node in nodes if (node.product or "") == product]
        counted = sum(node.physical_gpus or 0 for node in members)
        name = product or view.say("inventory.gpu_unknown")
        lines.append(
            view.say(
                "inventory.row", gpu=name, gpus=view.count("gpus", counted), nodes=view.count("nodes", len(members))
            )
        )
        evidence.append(Evidence("gpus", counted, "GPU", f"{view.facts.name}: {name}"))
    uncounted = [node.ref for node in nodes if node.physical_gpus is None]
    total = sum(node.physical_gpus or 0 for node in nodes)
    lead = view.say("inventory.total", gpus=view.count("gpus", total), nodes=view.count("nodes", len(nodes)))
    after = view.say("inventory.uncounted", nodes=view.names(uncounted)) if uncounted else ""
    return Shown(lead, tuple(lines) if len(lines) > 1 or total else (), tuple(evidence), after=after)


def free(view: View) -> Shown:
    """Units that a new pod could get, by GPU model."""
    blind = unknown(view, "Node", "Pod")
    if blind is not None:
        return blind
    nodes = view.gpu_nodes
    lines, evidence = [], []
    for product in sorted({node.product or "" for node in nodes}):
        members = [node for node in nodes if (node.product or "") == product]
        found = slots(view.facts, members)
        if found is None:
            continue
        name = product or view.say("inventory.gpu_unknown")
        lines.append(f"{name}: {say_slots(found, view.language)}")
        source = f"{view.facts.name}: status.allocatable minus requests of pods"
        evidence.append(Evidence("free_units", found.free, source=source))
    whole = slots(view.facts, nodes)
    lead = f"**{say_slots(whole, view.language)}**" if whole else view.say("state.none")
    most = max((item.free or 0 for node in nodes if takes_pods(node) for item in node.resources), default=0)
    after = [view.say("free.largest", count=most)] if most else []
    waiting = len(view.facts.pending_gpu_pods)
    if waiting:
        after.append(view.say("free.waiting", pods=view.count("pods", waiting)))
    free_now = bool(whole and whole.free)
    return Shown(
        lead, tuple(lines) if len(lines) > 1 else (), tuple(evidence), "yes" if free_now else "no", " ".join(after)
    )


def idle(view: View) -> Shown:
    """Nodes without a GPU pod, with how long at most and what they cost."""
    found, blind = findings_of(view, (*_IDLE, *_UNUSABLE))
    found = [finding for finding in found if _on_wanted(finding, view) and _empty(finding, view)]
    found.sort(key=lambda finding: finding.rule not in _IDLE)
    if not found:
        return Shown(partly(view, blind), verdict="unknown") if blind else Shown(view.say("idle.none"), verdict="no")
    return Shown(
        "",
        tuple(_idle_lines(view, found)),
        tuple(item for finding in found for item in finding.evidence[:4]),
        "yes",
        " ".join(filter(None, [view.say("idle.bound"), partly(view, blind)])),
    )


def _idle_lines(view: View, found: Sequence[Finding]) -> Iterator[str]:
    """One line a node; what else is found of empty nodes in its own words."""
    for finding in found:
        values = {item.name: item for item in finding.evidence}
        if finding.rule != "idle-gpu-node" or "idle" not in values or "gpus" not in values:
            yield from told(view, [finding])
            continue
        gpus, since = (
            words.format_value(values[key].value, values[key].unit, view.language) for key in ("gpus", "idle")
        )
        line = view.say("idle.node", node=finding.objects[0].name, gpus=gpus, idle=since)
        if finding.cost is not None:
            hour = words.format_value(finding.cost.usd_hour, "USD/h", view.language)
            line += f" ({hour}, {_basis(view, finding.cost.basis)})"
        yield line


def _on_wanted(finding: Finding, view: View) -> bool:
    nodes = [view.facts.node(ref.name) for ref in finding.objects if ref.kind == "Node"]
    return not nodes or any(node is not None and view.wants(node) for node in nodes)


def _empty(finding: Finding, view: View) -> bool:
    """Whether no GPU pod runs on any node of the finding."""
    nodes = [view.facts.node(ref.name) for ref in finding.objects if ref.kind == "Node"]
    return bool(nodes) and all(node is not None and not node.gpu_pods for node in nodes)


def idle_cost(view: View) -> Shown:
    """Money of nodes without a GPU pod."""
    found, blind = findings_of(view, ("idle-gpu-node", *_UNUSABLE))
    found = [
        finding
        for finding in found
        if _on_wanted(finding, view) and _empty(finding, view) and (finding.cost or finding.rule == "idle-gpu-node")
    ]
    if not found:
        return Shown(partly(view, blind), verdict="unknown") if blind else Shown(view.say("idle.none"), verdict="no")
    priced = [finding for finding in found if finding.cost is not None]
    hour = sum(finding.cost.usd_hour for finding in priced if finding.cost)
    lead = _sum(view, "idle.cost", hour, len(priced)) if priced else ""
    unpriced = [finding.objects[0] for finding in found if finding.cost is None]
    after = [view.say("idle.no_price", names=view.names(unpriced))] if unpriced else []
    evidence = (
        Evidence("idle_usd_hour", round(hour, 2) if priced else None, "USD/h", f"{view.facts.name}: idle-gpu-node"),
    )
    return Shown(lead, tuple(_idle_lines(view, found)), evidence, None, " ".join([*after, view.say("idle.bound")]))


def _sum(view: View, key: str, hour: float, nodes: int) -> str:
    month = view.money(hour * HOURS_PER_MONTH)
    return view.say(key, hour=view.money(hour), month=month, nodes=view.count("nodes", nodes))


def cost(view: View) -> Shown:
    """What the GPU nodes cost now, by pool and price."""
    nodes = view.gpu_nodes
    priced = [node for node in nodes if node.price is not None]
    hour = sum(node.price.usd_hour for node in priced if node.price)
    lines = []
    for pool, (usd, basis, as_of, kind), members in group(priced, _price):
        age = words.format_value(as_of, "date", view.language) if as_of else ""
        said = ", ".join(filter(None, [_basis(view, basis), kind or "", age]))
        each = view.money(usd * len(members))
        lines.append(view.say("cost.row", who=who(pool, members, view.language), hour=each, basis=said))
    unpriced = [node.ref for node in nodes if node.price is None]
    after = [view.say("idle.no_price", names=view.names(unpriced))] if unpriced else []
    lead = _sum(view, "cost.total", hour, len(priced)) if priced else ""
    evidence = (
        Evidence("usd_hour", round(hour, 2) if priced else None, "USD/h", f"{view.facts.name}: prices of nodes"),
    )
    return Shown(lead, tuple(lines), evidence, None, " ".join([*after, view.say("cost.note")]))


def _price(node: NodeFacts) -> tuple[float, str, str | None, str | None]:
    price = node.price
    return (price.usd_hour, price.basis, price.as_of, node.instance_type) if price else (0.0, "", None, None)


def _basis(view: View, basis: str) -> str:
    known = words.shared_words().values.get("price_basis", {})
    return known[basis].in_(view.language) if basis in known else basis


def health(view: View) -> Shown:
    """Which GPU nodes are ready, and what is wrong with the others."""
    nodes = view.gpu_nodes
    ready = [node for node in nodes if node.ready is True]
    found, blind = findings_of(view, _SICK)
    lines = told(view, found)
    others = [node.ref for node in nodes if node.ready is not True]
    if others:
        lines.insert(0, view.say("health.not_ready", names=view.names(others)))
    cordoned = [node.ref for node in nodes if node.unschedulable]
    if cordoned:
        lines.append(view.say("health.cordoned", names=view.names(cordoned)))
    lead = view.say("health.ready", ready=len(ready), nodes=view.count("nodes", len(nodes)))
    source = f"{view.facts.name}: status.conditions"
    evidence = (Evidence("ready_nodes", len(ready), source=source), Evidence("gpu_nodes", len(nodes), source=source))
    return Shown(lead, tuple(lines), evidence, None, partly(view, blind))


def spot(view: View) -> Shown:
    """Which GPU nodes may be taken away."""
    lines, evidence = [], []
    for pool, kind, members in group(view.gpu_nodes, lambda node: node.spot):
        said = view.say("spot.yes" if kind else "spot.unknown" if kind is None else "spot.no")
        lines.append(view.say("spot.row", who=who(pool, members, view.language), kind=said))
        evidence.append(Evidence("spot", kind, source=f"{view.facts.name}: {', '.join(node_names(members)[:5])}"))
    found, blind = findings_of(view, _SPOT)
    return Shown("", (*lines, *told(view, found)), tuple(evidence), None, partly(view, blind))


def _of_state(lines: Sequence[Line]) -> Shown:
    return Shown("", tuple(line.text for line in lines), tuple(item for line in lines for item in line.evidence))


def driver_version(view: View) -> Shown:
    """Driver by pool."""
    return _of_state(drivers.lines(view.facts, view.language))


def sharing_config(view: View) -> Shown:
    """Sharing by pool."""
    return _of_state(sharing.lines(view.facts, view.language))


def blockers(view: View) -> Shown:
    """What keeps nodes up: those named, else those without a GPU pod."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    named = view.gpu_nodes if view.node is not None else ()
    nodes = named or tuple(node for node in view.gpu_nodes if not node.gpu_pods)
    if view.node is not None and not named:
        return Shown(view.say("cluster.no_object", kind=view.say("kind.node"), name=view.node), verdict="unknown")
    if not nodes:
        return Shown(view.say("idle.none"))
    lines, evidence = [], []
    for node in nodes:
        found = scale_down_blockers(view.facts, node)
        evidence.append(Evidence("blockers", [item.reason for item in found], source=f"{view.facts.name}: {node.name}"))
        if not found:
            lines.append(view.say("blockers.free", node=node.name))
            continue
        lines.append(
            view.say("blockers.row", node=node.name, reasons="; ".join(_blocker(view, item) for item in found))
        )
    return Shown("", tuple(lines), tuple(evidence))


def _blocker(view: View, blocker: Blocker) -> str:
    if blocker.reason in ("gpu_pods", "cpu_pods"):
        key = "blockers.pods" if blocker.reason == "gpu_pods" else "blockers.cpu"
        return view.say(key, names=view.names(blocker.objects))
    known = words.shared_words().values["blockers"]
    said = known[blocker.reason].in_(view.language) if blocker.reason in known else blocker.reason
    return f"{said} ({view.names(blocker.objects)})" if blocker.objects else said


def drain(view: View) -> Shown:
    """What draining a node would move, free and lose."""
    blind = unknown(view, "Pod")
    if blind is not None:
        return blind
    if view.node is None:
        example = min((node.name for node in view.facts.gpu_nodes), default="gpu-1")
        return Shown(view.say("drain.which", example=example), verdict="unknown")
    node = next((node for node in view.facts.nodes if node.name == view.node), None)
    if node is None:
        return Shown(view.say("cluster.no_object", kind=view.say("kind.node"), name=view.node), verdict="unknown")
    pods = movable(node)
    if not pods:
        return Shown(view.say("drain.nothing", node=node.name))
    held = sum(item.requested for item in node.resources)
    lead = view.say("drain.lead", node=node.name, gpus=view.count("gpus", held), pods=view.count("pods", len(pods)))
    lines = []
    bare = [pod.ref for pod in pods if pod.controller is None]
    working = [pod.ref for pod in pods if pod.holds_gpu and pod.controller is not None]
    kept = {pod.ref for budget in view.facts.budgets for pod in budget.pods}
    guarded = [pod.ref for pod in pods if pod.ref in kept]
    for key, refs in (("drain.gpu", working), ("drain.bare", bare), ("drain.guarded", guarded)):
        if refs:
            lines.append(view.say(key, names=view.names(refs)))
    wanted = {name for pod in pods for name in pod.gpu_requests}
    if wanted:
        elsewhere = sum(
            item.free or 0
            for other in view.facts.gpu_nodes
            if other.name != node.name and takes_pods(other)
            for item in other.resources
            if item.name in wanted
        )
        lines.append(view.say("drain.room", free=elsewhere, needed=held))
    source = f"{view.facts.name}: {node.name}"
    evidence = (
        Evidence("pods_to_move", len(pods), source=source),
        Evidence("gpus_held", held, source=source),
        Evidence("bare_pods", [ref.name for ref in bare], source=source),
    )
    return Shown(lead, tuple(lines), evidence, "depends")
