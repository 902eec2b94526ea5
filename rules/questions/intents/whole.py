"""Intents about the whole cluster: the audit, and the software for GPUs."""

from rules.findings import Evidence
from rules.questions.intents.shown import Shown, View, partly, told, unknown

_ROLES = (
    "gpu-operator", "driver", "container-toolkit", "device-plugin", "feature-discovery", "dra-driver", "gpu-metrics",
    "sharing", "network", "gang-scheduler", "training-operator", "node-autoscaler", "node-health", "serving",
    "termination-handler",
)  # fmt: skip
_EXPECTED = ("gpu-operator", "device-plugin", "feature-discovery", "gpu-metrics", "node-autoscaler")
"""Roles whose absence is worth a word."""


def audit(view: View) -> Shown:
    """What the rules find."""
    report = view.report()
    blind = {kind for skipped in report.skipped_rules for kind in skipped.missing}
    found = report.findings
    if not found:
        unread = unknown(view, "Node", "Pod")
        return unread or Shown(view.say("audit.none"), verdict="no", after=partly(view, blind))
    lines = [f"{finding.severity}: {line}" for finding, line in zip(found, told(view, found), strict=True)]
    evidence = (Evidence("findings", len(found), source=f"{view.facts.name}: audit"),)
    return Shown(view.say("audit.found", count=len(found)), tuple(lines), evidence, "yes", partly(view, blind))


def components(view: View) -> Shown:
    """Software for GPUs that is there, and whether it works."""
    known = view.facts.components
    lines: list[str] = []
    absent: list[str] = []
    unclear: list[str] = []
    evidence = []
    makers = {node.vendor for node in view.facts.gpu_nodes}
    for role in _ROLES:
        for item in known.of_role(role):
            if item.present:
                evidence.append(Evidence("healthy", item.healthy, source=f"{view.facts.name}: {item.name}"))
                if item.healthy is False:
                    state = view.say("components.troubled", names=view.names(item.troubled))
                else:
                    state = view.say("components.healthy" if item.healthy else "components.unjudged")
                lines.append(view.say("components.row", name=item.name, state=state))
        if role in _EXPECTED and not known.present(role):
            names = [item.name for item in known.of_role(role) if "amd" in makers or not item.name.startswith("AMD")]
            (absent if known.has(role) is False else unclear).extend(names)
    after = []
    if absent:
        after.append(view.say("components.absent", names=", ".join(absent)))
    if unclear:
        after.append(view.say("components.unclear", names=", ".join(unclear)))
    return Shown("", tuple(lines), tuple(evidence), None, " ".join(after))
