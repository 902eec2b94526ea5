"""From the reading of a message to the answer: what is told, what is left open, when it asks back or abstains."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from rules import knowledge
from rules.answers import Answer, Kind, Verdict
from rules.facts.cluster import ClusterFacts
from rules.language import Language
from rules.questions.composers import MODULES, Asked, Known, Piece, composer
from rules.questions.reading import Part, Reading, Score
from rules.questions.topics import TOPIC_OF_FIELD
from rules.questions.words import say, sentences

_GREETING = re.compile(
    r"^(?:hi|hey|hello|hola|buenas|buenos dias|ciao|salve|buongiorno|help|ayuda|aiuto|thanks|thank you"
    r"|gracias|grazie)\b[\s!.?]*$",
    re.IGNORECASE,
)


def compose(reading: Reading, known: Known) -> Answer:
    """The answer to a reading; see :func:`rules.questions.answer`."""
    language = reading.language.language
    if not reading.language.spoken:
        return _foreign(reading)
    known = msgspec.structs.replace(known, clusters=_named(reading.text, known.clusters))
    alone = len(reading.parts) == 1
    pieces = [
        (part, piece)
        for part in reading.parts
        if (piece := _piece(Asked(part=part, language=language, known=known, text=reading.text, alone=alone)))
    ]
    if pieces:
        return _told(reading, pieces, language)
    if reading.main.clarify:
        return _ask_for_more(reading, language)
    asked = [score for part in reading.parts for score in _candidates(part)]
    if asked and not any(part.sure for part in reading.parts):
        return _ask_back(reading, asked, language)
    return _abstain(reading, language)


def _piece(asked: Asked) -> Piece | None:
    make = composer(asked.part.kind) if asked.part.sure else None
    return make(asked) if make else None


def _candidates(part: Part) -> list[Score]:
    """Topics that an unsure part may ask for, where nothing that cannot be answered is likelier."""
    best = Score(part.kind, part.label, part.confidence)
    if part.sure or not _answerable(best):
        return []
    return [score for score in (best, *part.rivals) if _answerable(score)]


def _answerable(score: Score) -> bool:
    return score.kind == "faq" and score.label in knowledge.topics()


def _named(text: str, clusters: Sequence[ClusterFacts]) -> Sequence[ClusterFacts]:
    """The clusters that the text names, else all."""
    lower = text.lower()
    named = [facts for facts in clusters if re.search(rf"(?<![\w-]){re.escape(facts.name.lower())}(?![\w-])", lower)]
    return named or clusters


def _told(reading: Reading, pieces: Sequence[tuple[Part, Piece]], language: Language) -> Answer:
    several = len(pieces) > 1
    blocks: list[str] = []
    for _, piece in pieces:
        first, *rest = piece.blocks
        blocks += [f"**{piece.title}**\n{first}" if several else first, *rest]
    left = _left_open(reading.parts, [part for part, _ in pieces], language)
    if left:
        blocks.append(say("cannot.part", language, subjects="; ".join(left)))
    main, piece = pieces[0]
    titles = {piece.title for _, piece in pieces}
    told = [part.label for part, _ in pieces if part.kind == "faq"]
    touched = [name for part, _ in pieces for name in part.also]
    own = {"also_topics": tuple(name for name in dict.fromkeys([*told, *touched]) if name != main.topic)}
    return _answer(
        reading,
        main,
        "\n\n".join(filter(None, blocks)),
        clarify=piece.clarify,
        verdict=piece.verdict,
        evidence=tuple(item for _, piece in pieces for item in piece.evidence),
        sources=tuple(dict.fromkeys(source for _, piece in pieces for source in piece.sources)),
        follow_ups=tuple(
            item
            for item in dict.fromkeys(item for _, piece in pieces for item in piece.follow_ups)
            if item not in titles
        ),
        **(own | piece.fields),
    )


def _left_open(parts: Sequence[Part], told: Sequence[Part], language: Language) -> list[str]:
    """Subjects of the parts that stay without an answer."""
    return list(dict.fromkeys(subject(part.kind, part.label, language) for part in parts if part not in told))


def subject(kind: Kind, label: str, language: Language) -> str:
    """What a reading is about, in words: of the topic's own question where it can be answered."""
    for key in (f"question.{label}", f"subject.{label}", f"subject.{kind}"):
        if key in sentences():
            return say(key, language)
    return say("subject.elsewhere", language)


_TOPICS_SHOWN = ("drivers_preinstalled", "multiple_workloads_per_gpu")
_KINDS_SHOWN: tuple[Kind, ...] = ("provider", "compat", "sizing", "cluster", "error")


def _abilities(language: Language, first: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    names = list(dict.fromkeys([*first, *_TOPICS_SHOWN]))
    examples = [f"question.{name}" for name in names] + [f"example.{kind}" for kind in _KINDS_SHOWN]
    questions = tuple(say(key, language) for key in examples)
    listed = "\n".join(f"- {question}" for question in questions)
    return f"{say('can', language)}\n{listed}\n\n{say('can.clusters', language)}", questions


def _foreign(reading: Reading) -> Answer:
    key = f"language.{reading.language.name}"
    name = say(key if key in sentences() else "language.und", "en")
    listed, questions = _abilities("en")
    text = f"{say('cannot.language', 'en', name=name)}\n\n{listed}"
    return Answer(
        language="en", kind="out_of_scope", text=text, abstain=True, verdict="unknown", follow_ups=questions,
        entities=reading.entities,
    )  # fmt: skip


def _ask_back(reading: Reading, asked: Sequence[Score], language: Language) -> Answer:
    questions = tuple(dict.fromkeys(say(f"question.{score.label}", language) for score in asked))
    lead = say("clarify.one" if len(questions) == 1 else "clarify.many", language)
    text = "\n".join([lead, *(f"- {question}" for question in questions)])
    return _answer(reading, reading.main, text, clarify=True, verdict="unknown", follow_ups=questions, topic=None)


def _ask_for_more(reading: Reading, language: Language) -> Answer:
    listed, questions = _abilities(language)
    text = f"{say('clarify.more', language)}\n\n{listed}"
    return _answer(reading, reading.main, text, clarify=True, verdict="unknown", follow_ups=questions)


def _abstain(reading: Reading, language: Language) -> Answer:
    main = reading.main
    general = [name for name in _general(reading.parts) if name in knowledge.topics()]
    listed, questions = _abilities(language, general)
    if main.kind == "out_of_scope":
        lead = say("hello" if _GREETING.match(reading.text) or not reading.text else "cannot.nothing", language)
    elif not main.sure:
        lead = say("cannot.unsure", language)
    else:
        subjects = dict.fromkeys(subject(part.kind, part.label, language) for part in reading.parts if part.sure)
        lead = say("cannot.kind", language, subject="; ".join(subjects))
        if general:
            lead += " " + say("in_general", language, question=say(f"question.{general[0]}", language))
    return _answer(
        reading, main, f"{lead}\n\n{listed}", abstain=True, verdict="unknown", follow_ups=questions
    )  # fmt: skip


def _general(parts: Sequence[Part]) -> list[str]:
    """Topics that say in general what a question about one provider asks."""
    return [TOPIC_OF_FIELD[part.field] for part in parts if part.field in TOPIC_OF_FIELD]


def answerable(kind: Kind) -> bool:
    """True for a kind that has a composer."""
    return kind in MODULES


def _answer(reading: Reading, main: Part, text: str, *, verdict: Verdict | None, **more: Any) -> Answer:
    read: dict[str, Any] = {
        "kind": main.kind,
        "topic": main.topic,
        "intent": main.intent,
        "cause": main.cause,
        "provider": main.provider,
        "field": main.field,
        "filters": main.filters,
        "entities": reading.entities | main.entities,
        "matched": tuple(dict.fromkeys(match for part in reading.parts for match in part.matched)),
    }
    return Answer(language=reading.language.language, text=text, verdict=verdict, **(read | more))
