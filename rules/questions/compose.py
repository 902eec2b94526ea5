"""From the reading of a message to the answer: which topic is told, what the clusters add, what is left open."""

import re
from collections.abc import Sequence
from typing import Any

from rules import knowledge
from rules.answers import Answer, Kind, Source, Verdict
from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions import state
from rules.questions.reading import SURE, Part, Reading, Score
from rules.questions.words import say, sentences

ELSEWHERE = "elsewhere"
"""Label of questions that only share words with the field."""

_FIELDS = {
    "drivers_preinstalled": "drivers_preinstalled",
    "multiple_workloads_per_gpu": "sharing",
    "multinode_checklist": "interconnect",
}
"""The field of a provider that a topic becomes when the question names one."""

_GREETING = re.compile(
    r"^(?:hi|hey|hello|hola|buenas|buenos dias|ciao|salve|buongiorno|help|ayuda|aiuto|thanks|thank you"
    r"|gracias|grazie)\b[\s!.?]*$",
    re.IGNORECASE,
)


def compose(reading: Reading, clusters: Sequence[ClusterFacts]) -> Answer:
    """The answer to a reading; see :func:`rules.questions.answer`."""
    language = reading.language.language
    if not reading.language.spoken:
        return _foreign(reading)
    told = [part.best.label for part in reading.parts if part.sure and part.best and _answerable(part.best)]
    if told:
        return _topics(reading, told, _named(reading.text, clusters), language)
    asked = [score.label for part in reading.parts for score in _candidates(part)]
    if asked and all(_unclear(part) for part in reading.parts):
        return _ask_back(reading, list(dict.fromkeys(asked)), language)
    return _abstain(reading, language)


def _answerable(score: Score) -> bool:
    return score.kind == "faq" and score.label in knowledge.topics()


def _unclear(part: Part) -> bool:
    return not part.sure and bool(_candidates(part))


def _candidates(part: Part) -> list[Score]:
    """Topics that a part may ask for, where nothing that cannot be answered is likelier."""
    if part.best is None or part.sure or not _answerable(part.best):
        return []
    return [score for score in (part.best, *part.rivals) if _answerable(score)]


def _named(text: str, clusters: Sequence[ClusterFacts]) -> Sequence[ClusterFacts]:
    """The clusters that the text names, else all."""
    lower = text.lower()
    named = [facts for facts in clusters if re.search(rf"(?<![\w-]){re.escape(facts.name.lower())}(?![\w-])", lower)]
    return named or clusters


def _topics(reading: Reading, told: list[str], clusters: Sequence[ClusterFacts], language: Language) -> Answer:
    topics = [knowledge.topic(name, language) for name in told]
    evidence: list[Evidence] = []
    blocks: list[str] = []
    for topic in topics:
        shown, found = state.describe(topic.topic, clusters, language)
        evidence += found
        lead = topic.lead if len(topics) == 1 else f"**{say(f'question.{topic.topic}', language)}**\n{topic.lead}"
        blocks += [lead, shown, topic.why]
        if len(topics) == 1:
            blocks.append(f"**{say('heading.verify', language)}**\n{topic.verify}")
    left = _left_open(reading.parts, language)
    if left:
        blocks.append(say("cannot.part", language, subjects="; ".join(left)))
    also = [name for part in reading.parts if part.sure for name in part.also if name not in told]
    used = [part for part in reading.parts if part.sure and part.best and part.best.label in told]
    follow_ups = [item for topic in topics for item in topic.follow_ups]
    asked = {say(f"question.{name}", language) for name in told}
    return _answer(
        reading,
        "faq",
        "\n\n".join(filter(None, blocks)),
        topic=told[0],
        also_topics=tuple(dict.fromkeys([*told[1:], *also])),
        verdict=topics[0].verdict,
        evidence=tuple(evidence),
        sources=(*dict.fromkeys(source for topic in topics for source in topic.sources), *map(_observed, clusters)),
        follow_ups=tuple(item for item in dict.fromkeys(follow_ups) if item not in asked),
        matched=tuple(match for part in used for match in part.matched),
    )


def _observed(facts: ClusterFacts) -> Source:
    return Source(label=facts.name, as_of=facts.observed_at.date().isoformat())


def _left_open(parts: Sequence[Part], language: Language) -> list[str]:
    """Subjects of the parts that stay without an answer."""
    open_parts = [part.best for part in parts if part.best and not (part.sure and _answerable(part.best))]
    return list(dict.fromkeys(subject(score.label, language) for score in open_parts))


def subject(label: str, language: Language) -> str:
    """What a label is about, in words: of the topic's own question where it can be answered."""
    key = f"subject.{label}"
    return say(key, language) if key in sentences() else say(f"question.{label}", language)


def _abilities(language: Language, first: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    names = list(dict.fromkeys([*first, *knowledge.topics()]))
    questions = tuple(say(f"question.{name}", language) for name in names)
    listed = "\n".join(f"- {question}" for question in questions)
    return f"{say('can', language)}\n{listed}\n\n{say('can.clusters', language)}", questions


def _foreign(reading: Reading) -> Answer:
    key = f"language.{reading.language.name}"
    name = say(key if key in sentences() else "language.und", "en")
    listed, questions = _abilities("en")
    text = f"{say('cannot.language', 'en', name=name)}\n\n{listed}"
    return _answer(reading, "out_of_scope", text, abstain=True, verdict="unknown", follow_ups=questions)


def _ask_back(reading: Reading, names: list[str], language: Language) -> Answer:
    questions = tuple(say(f"question.{name}", language) for name in names)
    lead = say("clarify.one" if len(questions) == 1 else "clarify.many", language)
    text = "\n".join([lead, *(f"- {question}" for question in questions)])
    matched = tuple(match for part in reading.parts for match in part.matched)
    return _answer(reading, "faq", text, clarify=True, verdict="unknown", follow_ups=questions, matched=matched)


def _abstain(reading: Reading, language: Language) -> Answer:
    parts = [part for part in reading.parts if part.best]
    general = [score.label for part in parts for score in part.scores if _answerable(score) and score.score >= SURE]
    listed, questions = _abilities(language, general)
    matched = tuple(match for part in parts for match in part.matched)
    first = parts[0] if parts else None
    extra: dict[str, Any] = {}
    kind: Kind = "out_of_scope"
    if first is None or first.best is None or (first.sure and first.best.label == ELSEWHERE):
        lead = say("hello" if _GREETING.match(reading.text) or not reading.text else "cannot.nothing", language)
    elif not first.sure:
        lead = say("cannot.unsure", language)
    else:
        kind = first.best.kind
        subjects = list(dict.fromkeys(subject(part.best.label, language) for part in parts if part.best and part.sure))
        lead = say("cannot.kind", language, subject="; ".join(subjects))
        extra["topic"] = first.best.topic
        if kind == "provider":
            extra |= _provider(reading, general)
        if general:
            lead += " " + say("in_general", language, question=say(f"question.{general[0]}", language))
    return _answer(
        reading,
        kind,
        f"{lead}\n\n{listed}",
        abstain=True,
        verdict="unknown",
        follow_ups=questions,
        matched=matched,
        **extra,
    )


def _provider(reading: Reading, general: Sequence[str]) -> dict[str, Any]:
    named = reading.entities.get("provider") or []
    if len(named) != 1:
        return {}
    field = next((_FIELDS[name] for name in general if name in _FIELDS), None)
    return {"provider": named[0], "field": field}


def _answer(reading: Reading, kind: Kind, text: str, *, verdict: Verdict, **more: Any) -> Answer:
    return Answer(
        language=reading.language.language, kind=kind, text=text, verdict=verdict, entities=reading.entities, **more
    )
