"""Answers to frequent questions: the topic as it is told, and what the clusters and the named provider show of it."""

from collections.abc import Mapping

from rules import knowledge
from rules.answers import Source
from rules.facts.cluster import ClusterFacts
from rules.facts.providers_shown import fact_rows
from rules.questions import state
from rules.questions.answers_cluster import show
from rules.questions.answers_provider import bundled_catalog, fact_lines, sources_of
from rules.questions.composers import Asked, Piece
from rules.questions.intents import nodes, whole
from rules.questions.intents.shown import Intent
from rules.questions.words import say

SHOWN: Mapping[str, Intent] = {
    "billing_idle": nodes.idle,
    "device_plugin": whole.components,
    "driver_cuda_alignment": nodes.driver_version,
    "gpu_operator": whole.components,
    "sharing_options": nodes.sharing_config,
    "spot": nodes.spot,
}
"""What of the clusters bears on a topic, besides what :mod:`rules.questions.state` knows."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "amd": ("amd",),
    "billing_idle": ("billing_unit", "control_plane_fee", "scale_to_zero"),
    "device_plugin": ("device_plugin",),
    "distributed_training": ("interconnect", "training"),
    "driver_cuda_alignment": ("drivers_preinstalled",),
    "drivers_preinstalled": ("drivers_preinstalled",),
    "gpu_operator": ("drivers_preinstalled", "device_plugin"),
    "managed_vs_own": ("managed", "control_plane_fee"),
    "multinode_checklist": ("interconnect", "training", "storage"),
    "multiple_workloads_per_gpu": ("sharing",),
    "networking": ("interconnect",),
    "sharing_options": ("sharing",),
    "spot": ("spot",),
    "storage": ("storage",),
    "what_k8s_support_means": ("managed",),
}
"""Facts of a provider that bear on a topic, where the question names one."""


def compose(asked: Asked) -> Piece | None:
    """The topic of the part; None for a topic that is not written."""
    name, language = asked.part.label, asked.language
    if name not in knowledge.topics():
        return None
    topic = knowledge.topic(name, language)
    if name in SHOWN and asked.known.clusters:
        seen, evidence = show(SHOWN[name], asked)
        shown = "\n\n".join(seen)
    else:
        shown, found = state.describe(name, asked.known.clusters, language)
        evidence = list(found)
    facts, fact_sources = _of_provider(name, asked)
    blocks = [topic.lead, facts, shown, topic.why]
    if asked.alone:
        blocks.append(f"**{say('heading.verify', language)}**\n{topic.verify}")
    title = say(f"question.{name}", language)
    return Piece(
        title=title,
        blocks=tuple(filter(None, blocks)),
        verdict=topic.verdict,
        evidence=tuple(evidence),
        sources=(*topic.sources, *fact_sources, *(map(_observed, asked.known.clusters) if shown else ())),
        follow_ups=tuple(item for item in topic.follow_ups if item != title),
    )


def _of_provider(topic: str, asked: Asked) -> tuple[str, tuple[Source, ...]]:
    """What is documented of the provider that the question names, on this topic."""
    catalog = asked.known.catalog or bundled_catalog()
    provider = catalog.providers.get(asked.part.provider) if asked.part.provider else None
    if provider is None or topic not in FIELDS:
        return "", ()
    rows = fact_rows(catalog, provider, asked.language, FIELDS[topic])
    lines = "\n".join(fact_lines(provider, rows, asked.language))
    return lines, tuple(dict.fromkeys(source for row in rows for source in sources_of(row, provider)))


def _observed(facts: ClusterFacts) -> Source:
    return Source(label=facts.name, as_of=facts.observed_at.date().isoformat())
