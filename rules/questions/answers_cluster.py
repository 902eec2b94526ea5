"""Answers about one's own clusters: every intent, from the facts and findings of the latest reading."""

from collections.abc import Mapping, Sequence

from rules import words
from rules.answers import Source, Verdict
from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence
from rules.questions import state
from rules.questions.composers import Asked, Piece
from rules.questions.intents import nodes, pods, whole
from rules.questions.intents.shown import MOST, Intent, Shown, by_rules, view_of
from rules.questions.words import say

MOST_CLUSTERS = 4

INTENTS: Mapping[str, Intent] = {
    "audit": whole.audit,
    "component_status": whole.components,
    "cost": nodes.cost,
    "cpu_pods_on_gpu_nodes": pods.cpu_pods,
    "cuda_mismatch": by_rules(
        "driver-cuda-mismatch", "driver-pool-mismatch", "capability-mismatch", "gpu-of-another-vendor"
    ),
    "drain_impact": nodes.drain,
    "driver_version": nodes.driver_version,
    "free_gpus": nodes.free,
    "gpu_inventory": nodes.inventory,
    "gpu_pods": pods.gpu_pods,
    "idle_cost": nodes.idle_cost,
    "idle_nodes": nodes.idle,
    "idle_pods": pods.idle_pods,
    "namespace_usage": pods.namespaces,
    "node_health": nodes.health,
    "pending_reason": pods.pending,
    "recent_crashes": pods.crashes,
    "right_sizing": by_rules(
        "right-size-inference", "whole-node-for-small-request", "mostly-idle-partitioned-node", "mig-idle-slices",
        "timeslice-everywhere", "gpu-daemonset-requests", "init-container-gpu",
    ),
    "scale_down_blockers": nodes.blockers,
    "sharing_config": nodes.sharing_config,
    "spot_nodes": nodes.spot,
    "unrequested_gpu_use": pods.unrequested,
}  # fmt: skip

_WITHOUT_GPU_NODES = frozenset({"audit", "component_status", "pending_reason", "drain_impact"})
"""Intents that say something also of a cluster without a GPU node."""


def compose(asked: Asked) -> Piece | None:
    """What the clusters show; None for an intent that nobody wrote."""
    intent = INTENTS.get(asked.part.label)
    if intent is None:
        return None
    language, clusters = asked.language, asked.known.clusters
    fields = {"intent": asked.part.label}
    title = say("cluster.title", language)
    if not clusters:
        return Piece(title=title, blocks=(say("cluster.none", language),), verdict="unknown", fields=fields)
    blocks: list[str] = []
    verdicts: list[Verdict] = []
    named = asked.part.entities.get("cluster")
    if named is not None and named not in {facts.name for facts in clusters}:
        names = words.format_list([f"`{facts.name}`" for facts in clusters], language)
        blocks.append(say("cluster.unknown_name", language, name=named, names=names))
    found, evidence = show(intent, asked, verdicts)
    blocks += found
    return Piece(
        title=title,
        blocks=tuple(blocks),
        verdict=_verdict(verdicts),
        evidence=tuple(evidence),
        sources=tuple(
            Source(label=facts.name, as_of=facts.observed_at.date().isoformat()) for facts in clusters[:MOST_CLUSTERS]
        ),
        fields=fields,
    )


def show(intent: Intent, asked: Asked, verdicts: list[Verdict] | None = None) -> tuple[list[str], list[Evidence]]:
    """What every cluster shows, one block each, and the evidence; verdicts are added to ``verdicts``."""
    blocks: list[str] = []
    evidence: list[Evidence] = []
    clusters = asked.known.clusters
    for facts in clusters[:MOST_CLUSTERS]:
        shown = _of(intent, facts, asked)
        when = words.format_value(facts.observed_at.isoformat(), "date", asked.language)
        heading = say("heading.state", asked.language, cluster=facts.name, when=when)
        blocks.append(f"**{heading}**\n{_text(shown, asked)}")
        evidence += shown.evidence
        if verdicts is not None and shown.verdict is not None:
            verdicts.append(shown.verdict)
    if len(clusters) > MOST_CLUSTERS:
        more = ", ".join(facts.name for facts in clusters[MOST_CLUSTERS : MOST_CLUSTERS + 10])
        blocks.append(say("state.more_clusters", asked.language, names=more))
    return blocks, evidence


def _of(intent: Intent, facts: ClusterFacts, asked: Asked) -> Shown:
    if asked.part.label not in _WITHOUT_GPU_NODES:
        nothing = state.common(facts, asked.language)
        if nothing:
            return Shown(nothing[0].text, (), nothing[0].evidence, "unknown" if not facts.knows("Node") else None)
    return intent(view_of(facts, asked))


def _text(shown: Shown, asked: Asked) -> str:
    kept: Sequence[str] = shown.lines if len(shown.lines) <= MOST + 1 else shown.lines[:MOST]
    lines = [f"- {line}" for line in kept]
    if len(kept) < len(shown.lines):
        lines.append(f"- {say('cluster.more', asked.language, count=len(shown.lines) - len(kept))}")
    return "\n".join(filter(None, [shown.lead, *lines, shown.after]))


def _verdict(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Yes where one cluster says so; unknown where one could not tell and none says yes."""
    for verdict in ("yes", "depends", "unknown", "no"):
        if verdict in verdicts:
            return verdict
    return None
