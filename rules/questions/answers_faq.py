"""Answers to frequent questions: the topic as it is told, and what the clusters show of it."""

from rules import knowledge
from rules.answers import Source
from rules.facts.cluster import ClusterFacts
from rules.questions import state
from rules.questions.composers import Asked, Piece
from rules.questions.words import say


def compose(asked: Asked) -> Piece | None:
    """The topic of the part; None for a topic that is not written."""
    name, language = asked.part.label, asked.language
    if name not in knowledge.topics():
        return None
    topic = knowledge.topic(name, language)
    shown, evidence = state.describe(name, asked.known.clusters, language)
    blocks = [topic.lead, shown, topic.why]
    if asked.alone:
        blocks.append(f"**{say('heading.verify', language)}**\n{topic.verify}")
    title = say(f"question.{name}", language)
    return Piece(
        title=title,
        blocks=tuple(filter(None, blocks)),
        verdict=topic.verdict,
        evidence=tuple(evidence),
        sources=(*topic.sources, *(map(_observed, asked.known.clusters) if shown else ())),
        follow_ups=tuple(item for item in topic.follow_ups if item != title),
    )


def _observed(facts: ClusterFacts) -> Source:
    return Source(label=facts.name, as_of=facts.observed_at.date().isoformat())
