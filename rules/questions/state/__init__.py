"""What the connected clusters show on a topic: short lines for the answer, each with its evidence.

Unknown is said to be unknown: a cluster whose pods were not read has no "free" number, and a node without
feature-discovery labels has no sharing mode.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC

from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state import drivers, multinode, sharing, single
from rules.questions.state.lines import Line
from rules.questions.words import say

MAX_CLUSTERS = 3
MAX_LINES = 6

_TOPICS: Mapping[str, Callable[[ClusterFacts, Language], list[Line]]] = {
    "drivers_preinstalled": drivers.lines,
    "multiple_workloads_per_gpu": sharing.lines,
    "single_gpu_worth_it": single.lines,
    "multinode_checklist": multinode.lines,
}


def describe(topic: str, clusters: Sequence[ClusterFacts], language: Language) -> tuple[str, tuple[Evidence, ...]]:
    """Markdown on what ``clusters`` show about ``topic`` (empty without clusters), and the evidence for it."""
    look = _TOPICS.get(topic)
    if look is None or not clusters:
        return "", ()
    blocks: list[str] = []
    evidence: list[Evidence] = []
    for facts in clusters[:MAX_CLUSTERS]:
        found = common(facts, language) or look(facts, language)
        shown = found[:MAX_LINES] if len(found) > MAX_LINES + 1 else found
        lines = [f"- {line.text}" for line in shown]
        if len(shown) < len(found):
            lines.append(f"- {say('state.more', language, count=len(found) - len(shown))}")
        blocks.append(
            "\n".join([f"**{say('heading.state', language, cluster=facts.name, when=_moment(facts))}**", *lines])
        )
        evidence += [item for line in found for item in line.evidence]
    if len(clusters) > MAX_CLUSTERS:
        names = ", ".join(facts.name for facts in clusters[MAX_CLUSTERS : MAX_CLUSTERS + 10])
        blocks.append(say("state.more_clusters", language, names=names))
    return "\n\n".join(blocks), tuple(evidence)


def _moment(facts: ClusterFacts) -> str:
    return facts.observed_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def common(facts: ClusterFacts, language: Language) -> list[Line]:
    """The one line that says why there is nothing else to say."""
    if not facts.knows("Node") and not facts.nodes:
        reason = next((item.reason for item in facts.unreadable if item.kind == "Node"), None)
        return [
            Line(say("state.nodes_unread", language), (Evidence("gpu_nodes", None, source=f"{facts.name}: {reason}"),))
        ]
    if not facts.gpu_nodes:
        return [Line(say("state.no_gpu_nodes", language), (Evidence("gpu_nodes", 0, source=f"{facts.name}: Node"),))]
    return []
