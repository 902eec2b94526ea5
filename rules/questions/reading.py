"""From the words of a message to what it asks: kind, topic, and what in the text says so.

``data/labels.yaml`` holds the labels (a topic of the FAQ, or another kind of question) and the concepts that make each.
Labels that cannot be answered yet are read all the same: they are what keeps an answerable one from being taken for
sure where it is not.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from rules.answers import Kind
from rules.language import Language
from rules.questions import data
from rules.questions.entities import entities
from rules.questions.language import LanguageReading, read_language
from rules.questions.lexicon import lexicon
from rules.questions.text import LOG_LINE, Sentence, clean, fold, sentences

SURE = 3.0
LEAD = 1.0
"""Lead that a sure label has over every other that is not its neighbour."""
MAYBE = 2.0
ALSO = 2.4
"""From this score on a further topic counts as touched."""
MAX_CUTS = 6
"""Places tried in a sentence where one question may end and the next begin."""
LONG_UNIT_WORDS = 45
LONG_UNIT_FACTOR = 0.6
"""In a long stretch of text concepts meet by chance: there, nothing but several strong rules is sure."""

_MEMORY = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?\s?(?:gi?b|gigas?|giga|gbytes?|g)\b", re.IGNORECASE)
_CARD_MEMORY = re.compile(
    r"\b(?:[a-z]{1,3}\d{1,4}[a-z]{0,2})[\s(-]*(?:de |da |con |with )?\d+\s?gi?b?\b", re.IGNORECASE
)
_FLEET = re.compile(
    r"\b(\d{1,4})\s?x?\s?(?:(\d)x\s?)?(?:gpus?\b|(?:nvidia\s)?(?:a100|h100|h200|b200|b300|gb200|mi300x?|l40s)s?\b)",
    re.IGNORECASE,
)
FLEET_GPUS = 9
"""So many GPUs stand in more than one node."""
_CLAUSE = re.compile(
    r"(?:,\s*|\s+)(?:and|also|plus|y|e|ed|además|ademas|inoltre|poi|anche|luego|tambien|también)\s+(?="
    r"(?:also\s+|anche\s+|también\s+|tambien\s+|then\s+)?"
    r"(?:how|what|which|is|are|does|do|can|could|should|where|who|why|when|cuánt\w*|cuant\w*|qué|que|cuál\w*|cual\w*|cómo|como|dónde|donde|"
    r"quién|quien|puedo|podemos|es|vale|merece|tengo|hay|quant\w*|quale|quali|come|dove|chi|posso|possiamo|conviene|devo|c'è|che|cosa|mi|serve)\b)"
    r"|,\s*(?=(?:how|what|which|is|are|does|do|can|should|where|who|why|cuánt\w*|cuant\w*|qué|cuál\w*|dónde|puedo|podemos|vale|merece"
    r"|quant\w*|quale|quali|dove|posso|possiamo|conviene)\b)",
    re.IGNORECASE,
)


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    all: list[str]
    weight: float
    none: list[str] = []


class _Label(msgspec.Struct, forbid_unknown_fields=True):
    kind: Kind
    rules: list[_Rule]
    extra: dict[str, float] = {}
    near: list[str] = []


class _Labels(msgspec.Struct, forbid_unknown_fields=True):
    labels: dict[str, _Label]


class Score(msgspec.Struct, frozen=True):
    """A label with its score and the concepts that made it."""

    label: str
    kind: Kind
    score: float
    concepts: tuple[str, ...]

    @property
    def topic(self) -> str | None:
        """The topic, for labels of the FAQ."""
        return self.label if self.kind == "faq" else None


class Part(msgspec.Struct, frozen=True):
    """One question of the message.

    Attributes:
        best: the label it is read as; None when nothing of the field was found.
        sure: no other label comes near.
        rivals: labels that come near (``sure`` is False), best first.
        also: further topics of the FAQ that the part touches.
        matched: ``concept: words of the text``, for people who ask why.
        scores: all labels with their scores, best first.
    """

    text: str
    best: Score | None
    sure: bool
    rivals: tuple[Score, ...]
    also: tuple[str, ...]
    matched: tuple[str, ...]
    scores: tuple[Score, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """What a message is read as, part by part, in the order of the text."""

    text: str
    language: LanguageReading
    parts: tuple[Part, ...]
    entities: dict[str, Any]


@lru_cache(maxsize=1)
def labels() -> Mapping[str, _Label]:
    """The labels; a concept that the lexicon does not know raises."""
    found = data.load("labels.yaml", _Labels).labels
    known = lexicon().concepts | COMPUTED
    for name, label in found.items():
        used = {concept for rule in label.rules for group in [*rule.all, *rule.none] for concept in group.split("|")}
        unknown = (used | set(label.extra)) - known
        if unknown or set(label.near) - set(found):
            msg = f"labels.yaml: {name} names what is not there: {sorted(unknown | (set(label.near) - set(found)))}"
            raise ValueError(msg)
    return found


COMPUTED = frozenset(
    {
        "provider_name",
        "driver_version",
        "cuda_version",
        "cuda_named",
        "image_reference",
        "parameters_named",
        "memory_named",
        "log_line",
        "fleet",
    }
)
"""Concepts that come from exact entities and patterns, not from the lexicon."""


class _Compiled(NamedTuple):
    all: tuple[frozenset[str], ...]
    order: tuple[tuple[str, ...], ...]
    none: frozenset[str]
    weight: float


@lru_cache(maxsize=1)
def _compiled() -> dict[str, tuple[_Compiled, ...]]:
    """The rules of every label with their groups taken apart."""
    return {
        name: tuple(
            _Compiled(
                all=tuple(frozenset(group.split("|")) for group in rule.all),
                order=tuple(tuple(group.split("|")) for group in rule.all),
                none=frozenset(concept for group in rule.none for concept in group.split("|")),
                weight=rule.weight,
            )
            for rule in label.rules
        )
        for name, label in labels().items()
    }


class _Unit(msgspec.Struct):
    text: str
    found: dict[str, str]
    words: int
    asks: bool


def rate(found: Collection[str], words: int) -> list[Score]:
    """All labels that some rule reads in the concepts ``found``, best first."""
    factor = LONG_UNIT_FACTOR if words > LONG_UNIT_WORDS else 1.0
    rated: list[Score] = []
    for name, label in labels().items():
        best = 0.0
        why: list[str] = []
        for rule in _compiled()[name]:
            if rule.weight <= best or not rule.none.isdisjoint(found):
                continue
            if any(group.isdisjoint(found) for group in rule.all):
                continue
            best, why = rule.weight, [concept for group in rule.order for concept in group if concept in found]
        if best:
            extra = [concept for concept in label.extra if concept in found]
            score = factor * (best + sum(label.extra[concept] for concept in extra))
            rated.append(Score(name, label.kind, round(score, 3), tuple(dict.fromkeys([*why, *extra]))))
    rated.sort(key=lambda item: (-item.score, item.label))
    return rated


def _unit(text: str, asks: bool) -> _Unit:
    words = [word for sentence in sentences(text) for word in sentence.words]
    book = lexicon()
    corrected = book.correct(tuple(words))
    found: dict[str, str] = {}
    for match in book.find(corrected):
        found.setdefault(match.concept, text[words[match.start].start : words[match.end - 1].end])
    folded = fold(text)
    named = entities(text, folded, corrected)
    for concept, entity in (
        ("provider_name", "provider"), ("driver_version", "driver"), ("cuda_version", "cuda"),
        ("image_reference", "image"), ("parameters_named", "parameters_billion"),
    ):  # fmt: skip
        if entity in named:
            value = named[entity]
            found[concept] = ", ".join(value) if isinstance(value, list) else str(value)
    if "cuda" in corrected:
        found["cuda_named"] = "cuda"
    # The memory of a card (A100 80GB) says which card it is, not how much something needs.
    for concept, seen in (
        ("log_line", LOG_LINE.search(text)),
        ("memory_named", _MEMORY.search(_CARD_MEMORY.sub(" ", text))),
    ):
        if seen:
            found[concept] = seen[0].strip()
    fleet = _FLEET.search(text)
    if fleet and int(fleet[1]) * int(fleet[2] or 1) >= FLEET_GPUS:
        found["fleet"] = fleet[0]
    return _Unit(text, found, len(words), asks)


def _join(one: _Unit, other: _Unit) -> _Unit:
    return _Unit(
        f"{one.text} {other.text}", {**one.found, **other.found}, one.words + other.words, one.asks or other.asks
    )


def _labelled(unit: _Unit) -> bool:
    rated = rate(unit.found, unit.words)
    return bool(rated) and rated[0].score >= MAYBE


def _clauses(sentence: Sentence) -> list[_Unit]:
    """The clauses of a sentence that are questions of their own, or the sentence as one."""
    whole = _unit(sentence.text, sentence.asks)
    cuts = [match.start() for match in _CLAUSE.finditer(sentence.text)] if whole.words <= LONG_UNIT_WORDS else []
    cuts = cuts[:MAX_CUTS]
    for cut in cuts:
        left, right = _unit(sentence.text[:cut], sentence.asks), _unit(sentence.text[cut:].lstrip(" ,:"), sentence.asks)
        left_best, right_best = _best(left), _best(right)
        if left_best and right_best and left_best.label != right_best.label and _apart(left, right):
            rest = sentences(sentence.text[cut:].lstrip(" ,:"))
            return [left, *(_clauses(rest[0]._replace(asks=sentence.asks)) if rest else [right])]
    return [whole]


def _best(unit: _Unit) -> Score | None:
    rated = rate(unit.found, unit.words)
    return rated[0] if rated and rated[0].score >= SURE else None


def _apart(left: _Unit, right: _Unit) -> bool:
    """True when each side is sure of itself, so that cutting loses nothing."""
    return _judge(left).sure and _judge(right).sure


def _judge(unit: _Unit) -> Part:
    rated = rate(unit.found, unit.words)
    matched: tuple[str, ...] = ()
    if not rated or rated[0].score < MAYBE:
        return Part(unit.text, None, False, (), (), matched)
    best = rated[0]
    near = set(labels()[best.label].near)
    rivals = tuple(
        score
        for score in rated[1:]
        if score.score >= MAYBE and score.label not in near and best.score - score.score < LEAD
    )
    also = tuple(score.label for score in rated[1:] if score.kind == "faq" and score.score >= ALSO)
    matched = tuple(f"{concept}: {unit.found[concept]}" for concept in best.concepts)
    return Part(unit.text, best, best.score >= SURE and not rivals, rivals, also, matched, tuple(rated))


_RELATIVES: tuple[frozenset[str], ...] = (
    frozenset({"drivers_preinstalled", "gpu_operator", "device_plugin", "driver_cuda_alignment"}),
    frozenset({"multiple_workloads_per_gpu", "sharing_options"}),
    frozenset({"single_gpu_worth_it", "why_kubernetes", "managed_vs_own"}),
    frozenset({"multinode_checklist", "distributed_training", "networking", "storage", "batch_jobs"}),
)
"""Topics that people mean as one question when they put only one question mark."""


def _related(one: _Unit, other: _Unit) -> bool:
    if one.asks and other.asks:
        return False
    left, right = rate(one.found, one.words), rate(other.found, other.words)
    return bool(left and right) and any({left[0].label, right[0].label} <= family for family in _RELATIVES)


def _units(cleaned: str) -> list[_Unit]:
    """Questions of the message. A sentence that says nothing by itself joins its neighbour: a statement the sentence
    that follows, a question ("what should I check?") the one before."""
    units: list[_Unit] = []
    waiting: _Unit | None = None
    for clause in (unit for sentence in sentences(cleaned) for unit in _clauses(sentence)):
        unit = _join(waiting, clause) if waiting else clause
        waiting = None
        if _labelled(unit):
            if units and _related(units[-1], unit):
                units[-1] = _join(units[-1], unit)
            else:
                units.append(unit)
        elif unit.asks and units and unit.found:
            units[-1] = _join(units[-1], unit)
        else:
            waiting = unit
    if waiting is not None:
        if units and waiting.found:
            joined = _join(units[-1], waiting)
            before, after = _judge(units[-1]), _judge(joined)
            if after.sure or not before.sure:
                units[-1] = joined
        elif not units:
            units.append(waiting)
    return units


def read(text: str, hint: Language | None = None) -> Reading:
    """Read a message; ``hint`` is the reader's own language, for texts too short to tell."""
    cleaned = clean(text)
    words = tuple(word for sentence in sentences(cleaned) for word in sentence.words)
    language = read_language(cleaned, words, hint)
    parts = tuple(_judge(unit) for unit in _units(cleaned))
    named = entities(cleaned, fold(cleaned), tuple(word.folded for word in words))
    return Reading(cleaned, language, _merged(parts), named)


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts with the same label are one question put twice; parts about nothing go when others say something."""
    kept: dict[str, Part] = {}
    for part in parts:
        name = part.best.label if part.best else ""
        if name not in kept or (part.sure and not kept[name].sure):
            kept[name] = part
    if len(kept) > 1:
        kept.pop("", None)
    return tuple(kept.values())


def topics(parts: Iterable[Part]) -> tuple[str, ...]:
    """Topics that sure parts ask for, in order."""
    return tuple(part.best.label for part in parts if part.sure and part.best and part.best.kind == "faq")
