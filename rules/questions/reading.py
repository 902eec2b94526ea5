"""From the words of a message to what it asks, question by question: kind, label, filters, entities, how surely.

Three witnesses are heard: exact things (error messages, versions, names), rules over concepts (``ratings``), and
weights
learnt from the corpus (``model``), which rank where the others are silent or disagree. The first two are features of
the
third, and some exact things decide on their own (``_insist``).
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from rules.answers import Kind
from rules.language import Language
from rules.questions.details import Details, details
from rules.questions.features import Features, features
from rules.questions.language import LanguageReading, read_language
from rules.questions.model import rank, shares, spoken_for
from rules.questions.text import clean, sentences

SURE = 0.5
"""Share of all readings from which the best one is taken for sure."""
KIND_SURE = 0.6
"""Share of a kind from which its best label is taken where no other label of the kind comes near."""
LEAD = 1.6
"""How many times likelier than its closest rival the best label of a sure kind must be."""
CLUSTER_SURE = 0.8
"""Share of questions on one's own clusters from which the likelier of two intents is taken ..."""
OF_TWO = 0.35
"""... where it has this share itself."""
PART_SURE = 0.6
"""A question beside another in one message counts from this share on."""
MAYBE = 0.12
"""Rivals below this share are not offered."""
ALSO = 0.05
"""From this share on a further topic counts as touched."""
MAX_CUTS = 2
"""Places tried in a sentence where one question may end and the next begin."""
LONGEST_CUT_WORDS = 40
_CLAUSE = re.compile(
    r"(?:,\s*|\s+)(?:and|also|plus|y|e|ed|además|ademas|inoltre|poi|anche|luego|tambien|también)\s+(?="
    r"(?:also\s+|anche\s+|también\s+|tambien\s+|then\s+)?"
    r"(?:how|what|which|is|are|does|do|can|could|should|where|who|why|when|cuánt\w*|cuant\w*|qué|que|cuál\w*|cual\w*|cómo|como|dónde|donde|"
    r"quién|quien|puedo|podemos|es|vale|merece|tengo|hay|quant\w*|quale|quali|come|dove|chi|posso|possiamo|conviene|devo|c'è|che|cosa|mi|serve)\b)"
    r"|,\s*(?=(?:how|what|which|is|are|does|do|can|should|where|who|why|cuánt\w*|cuant\w*|qué|cuál\w*|dónde|puedo|podemos|vale|merece"
    r"|quant\w*|quale|quali|dove|posso|possiamo|conviene)\b)",
    re.IGNORECASE,
)


class Score(msgspec.Struct, frozen=True):
    """A label of a kind with its share of all readings (0 to 1)."""

    kind: Kind
    label: str
    share: float

    @property
    def topic(self) -> str | None:
        """The topic, for labels of the FAQ."""
        return self.label if self.kind == "faq" else None


class Part(msgspec.Struct, frozen=True):
    """One question of the message.

    Attributes:
        text: the words it was read in.
        kind, label: what it asks. The label is a topic (faq), an intent (cluster), a cause (error), ``search`` or a
        field
            (provider), ``check`` (compat), ``plan`` (sizing), ``abstain`` or ``clarify`` (out_of_scope).
        confidence: share of the label among all readings, 0 to 1; kind_confidence: the same for the kind.
        sure: it may be answered without asking back.
        rivals: what else it may be, best first, where it is not sure.
        also: further topics that the part touches.
        filters, provider, field: for ``provider`` (filters are read for other kinds too: they narrow an answer).
        entities: what the part names; the keys depend on the kind, see :mod:`rules.questions.details`.
        matched: ``concept: words of the text``, for people who ask why.
        scores: the likeliest readings, best first.
    """

    text: str
    kind: Kind
    label: str
    confidence: float
    kind_confidence: float
    sure: bool
    rivals: tuple[Score, ...]
    also: tuple[str, ...]
    filters: dict[str, Any]
    provider: str | None
    field: str | None
    entities: dict[str, Any]
    matched: tuple[str, ...]
    scores: tuple[Score, ...] = ()

    @property
    def topic(self) -> str | None:
        """Topic of the FAQ."""
        return self.label if self.kind == "faq" else None

    @property
    def intent(self) -> str | None:
        """What is asked of the clusters."""
        return self.label if self.kind == "cluster" else None

    @property
    def cause(self) -> str | None:
        """Cause of an error."""
        return self.label if self.kind == "error" else None

    @property
    def clarify(self) -> bool:
        """It cannot be answered without asking back, whatever else it is about."""
        return self.kind == "out_of_scope" and self.label == "clarify"


class Reading(msgspec.Struct, frozen=True):
    """What a message is read as, question by question. The first part is what the message is mainly about.

    Attributes:
        text: the message without markup.
        parts: never empty.
        entities: everything that the message names exactly.
    """

    text: str
    language: LanguageReading
    parts: tuple[Part, ...]
    entities: dict[str, Any]

    @property
    def main(self) -> Part:
        """What the message is mainly about."""
        return self.parts[0]


_NOTHING = Score("out_of_scope", "abstain", 1.0)
RULE_BONUS = 0.8
"""Log-odds per unit that a clear rule adds to its topic."""
CLEAR_RULE = 1.0
VERSIONS_BONUS = 1.5
"""The same for versions that are named together where nothing is said to fail."""
NARROWED = frozenset(
    {
        "region", "sort", "bare_metal", "spot", "commitment", "billing_unit", "compliance", "exclude", "free_egress",
        "hours_per_month", "min_vram_gb", "max_price_usd_hour", "max_price_eur_hour", "max_total_usd_hour",
        "free_control_plane", "managed", "scale_to_zero",
    }
)  # fmt: skip
"""Filters that only a search for a place to rent has."""
NARROWED_BONUS = 0.7
"""Log-odds that each of them adds to a search, where a card is named as well; two at most count."""
OTHER_SUBJECT_BONUS = 1.0
"""Log-odds of being outside, for a text that names other things and nothing of the field."""
EXACT_BONUS = 1.6
FIRST_EXACT_BONUS = 0.5
"""Log-odds that an error message gives its cause, and the one that stands first beside others."""


def _insist(scores: dict[str, float], found: Features) -> dict[str, float]:
    """Scores corrected by what cannot be otherwise: a field of a provider needs a provider, a version check a
    version."""
    named = found.entities
    corrected = dict(scores)
    exact = [trace for trace in found.traces if trace.exact]
    for trace in exact:
        label = f"error:{trace.cause}"
        if label in corrected:
            corrected[label] += EXACT_BONUS + (FIRST_EXACT_BONUS if trace is exact[0] else 0.0)
    for label in corrected:
        if label.startswith("provider:") and label != "provider:search" and len(named.get("provider", ())) != 1:
            corrected[label] -= 4.0
    for name, value in found.values.items():
        label = f"faq:{name[2:]}"
        if name.startswith("r:") and value >= CLEAR_RULE and label in corrected:
            corrected[label] += RULE_BONUS * value
    if "gpu" in found.filters and "provider:search" in corrected:
        corrected["provider:search"] += NARROWED_BONUS * min(2, len(NARROWED & found.filters.keys()))
    versions = {"driver", "cuda", "image"} & set(named)
    fails = exact or "g:q_error_word" in found.values or "l:error_symptom" in found.values
    if len(versions) > 1 and not fails and "compat:check" in corrected:
        corrected["compat:check"] += VERSIONS_BONUS
    if "e:other_subject" in found.values:
        corrected["out_of_scope:abstain"] += OTHER_SUBJECT_BONUS
    if "g:x_inject" in found.values:
        corrected["out_of_scope:abstain"] += 3.0
    if not versions and "compat:check" in corrected:
        corrected["compat:check"] -= 1.0
    return corrected


class _Rated(NamedTuple):
    """The likeliest readings, the best first; ``in_kind`` is the share of the best one's kind, ``second`` that of the
    next
    label of the same kind."""

    scores: tuple[Score, ...]
    in_kind: float
    second: float


TORN = 0.7
"""Share of a topic, in parts of that of an intent, from which a message asks for either."""
SHOWN = 6
"""So many readings are kept."""


def _rated(found: Features) -> _Rated:
    """The likeliest label of the likeliest kind leads."""
    if not any(name[0] in "glxtrsfwo" for name in found.values):
        return _Rated((_NOTHING,), 1.0, 0.0)
    all_shares = shares(_insist(rank(found.values), found))
    per_kind: dict[str, float] = {}
    for name, share in all_shares.items():
        kind = name.partition(":")[0]
        per_kind[kind] = per_kind.get(kind, 0.0) + share
    best_kind = max(per_kind, key=lambda kind: (per_kind[kind], kind))
    own = [(name, share) for name, share in all_shares.items() if name.startswith(f"{best_kind}:")]
    if best_kind == "cluster":
        topic, likely = next((item for item in all_shares.items() if item[0].startswith("faq:")), ("", 0.0))
        if likely >= TORN * own[0][1]:
            # The topic's answer tells in general what is asked and shows the state of the clusters beside it.
            others = [_score(*item) for item in islice(all_shares.items(), SHOWN) if item[0] != topic]
            both = likely + own[0][1]
            return _Rated((_score(topic, both), *others), per_kind["faq"] + per_kind["cluster"], 0.0)
    listed = [own[0], *(item for item in islice(all_shares.items(), SHOWN) if item[0] != own[0][0])]
    return _Rated(
        tuple(_score(name, share) for name, share in listed), per_kind[best_kind], own[1][1] if len(own) > 1 else 0.0
    )


def _score(name: str, share: float) -> Score:
    kind, _, label = name.partition(":")
    return Score(cast("Kind", kind), label, round(share, 4))


class _Stretches:
    """Features and readings of the stretches of one message, each looked at once."""

    def __init__(self, whole: Features) -> None:
        self._whole = whole
        self._seen: dict[str, tuple[Features, _Rated]] = {}

    def look(self, text: str) -> tuple[Features, _Rated]:
        """What a stretch has, and what it is read as."""
        if text not in self._seen:
            found = features(text, self._whole)
            self._seen[text] = (found, _rated(found))
        return self._seen[text]


def _part(text: str, found: Features, rated: _Rated) -> Part:
    """The text with its features as one question."""
    best, others = rated.scores[0], rated.scores[1:]
    sure = best.share >= SURE or (rated.in_kind >= KIND_SURE and best.share >= LEAD * rated.second)
    if best.kind == "cluster" and rated.in_kind >= CLUSTER_SURE and best.share >= OF_TWO:
        sure = True  # two intents beside each other show nearly the same things
    told: Details = details(best.kind, best.label, found)
    return Part(
        text=text,
        kind=best.kind,
        label=best.label,
        confidence=round(best.share, 3),
        kind_confidence=round(rated.in_kind, 3),
        sure=sure,
        rivals=() if sure else tuple(score for score in others[:3] if score.share >= MAYBE),
        also=tuple(score.label for score in others if score.kind == "faq" and score.share >= ALSO),
        filters=told.filters,
        provider=told.provider,
        field=told.field,
        entities=told.entities,
        matched=_matched(best, found),
        scores=rated.scores[:5],
    )


MATCHED = 8
"""So many reasons are shown."""


def _matched(best: Score, found: Features) -> tuple[str, ...]:
    """What in the text spoke most for the reading, with its words."""
    reasons = [
        f"{trace.cause}: {trace.words}" for trace in found.traces if best.kind == "error" and trace.cause == best.label
    ]
    for name in spoken_for(f"{best.kind}:{best.label}", found.values):
        sort, _, concept = name.partition(":")
        if sort in "gl" and concept in found.words:
            reasons.append(f"{concept}: {found.words[concept]}")
        elif sort == "e" and concept in found.entities:
            value = found.entities[concept]
            reasons.append(f"{concept}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    return tuple(dict.fromkeys(reasons))[:MATCHED]


def _questions(cleaned: str, stretches: _Stretches) -> list[str]:
    """Stretches of the text that ask something of their own: sentences with what leads to them, cut at joining
    words."""
    found: list[str] = []
    lead = ""
    for sentence in sentences(cleaned):
        text = f"{lead} {sentence.text}".strip()
        if sentence.asks or _ASKING.match(sentence.text):
            found += _clauses(text, stretches)
            lead = ""
        else:
            lead = text
    return found


_ASKING = re.compile(
    r"[¿\s]*(?:how|what|which|is|are|does|do|can|could|should|where|who|why|when|cuant\w*|cuánt\w*|qu[eé]|cu[aá]l\w*|c[oó]mo|d[oó]nde|qui[eé]n|"
    r"puedo|podemos|vale la|merece|tengo que|hay que|quant\w*|quale|quali|come|dove|chi|posso|possiamo|conviene|devo"
    r"|serve|mi serve)\b",
    re.IGNORECASE,
)


def _clauses(text: str, stretches: _Stretches) -> list[str]:
    cuts = list(_CLAUSE.finditer(text)) if len(text.split()) <= LONGEST_CUT_WORDS else []
    for cut in cuts[:MAX_CUTS]:
        left, right = text[: cut.start()], text[cut.end() :]
        if len(left.split()) < 3 or len(right.split()) < 3:
            continue
        second = stretches.look(right)[1].scores[0]
        if not _own(second):
            continue
        first = stretches.look(left)[1].scores[0]
        if _own(first) and (first.kind, first.label) != (second.kind, second.label):
            return [left, *_clauses(right, stretches)]
    return [text]


def _own(score: Score) -> bool:
    """True for a stretch that is surely a question of its own."""
    return score.share >= PART_SURE and score.kind != "out_of_scope"


def _parts(cleaned: str, found: Features) -> tuple[Part, ...]:
    whole = _part(cleaned, found, _rated(found))
    stretches = _Stretches(found)
    asked = _questions(cleaned, stretches)
    if len(asked) < 2 or (whole.kind == "error" and whole.confidence >= PART_SURE):
        return (whole,)
    own = [_part(text, *stretches.look(text)) for text in asked if _own(stretches.look(text)[1].scores[0])]
    by_label = {(part.kind, part.label): part for part in reversed(own)}
    several = [part for part in own if by_label[part.kind, part.label] is part]
    if len(several) < 2:
        return (whole,)
    return tuple(several)


def read(text: str, hint: Language | None = None) -> Reading:
    """Read a message; ``hint`` is the reader's own language, for texts too short to tell."""
    cleaned = clean(text)
    words = tuple(word for sentence in sentences(cleaned) for word in sentence.words)
    language = read_language(cleaned, words, hint)
    found = features(cleaned)
    return Reading(cleaned, language, _parts(cleaned, found), dict(found.entities))


def topics(parts: Iterable[Part]) -> tuple[str, ...]:
    """Topics that sure parts ask for, in order."""
    return tuple(part.label for part in parts if part.sure and part.kind == "faq")
