"""What a question gets: the reading of it and the answer, as the API, the command line and the bot show it."""

from typing import Any, Literal

import msgspec

from rules.findings import Evidence
from rules.language import Language

Kind = Literal["faq", "provider", "compat", "sizing", "cluster", "error", "out_of_scope"]
Verdict = Literal["yes", "no", "depends", "unknown"]


class Source(msgspec.Struct, frozen=True):
    """Where a fact of an answer comes from.

    Attributes:
        label: what people see.
        url: public page, None for facts read from a cluster.
        as_of: ISO date of the fact, None when unknown.
    """

    label: str
    url: str | None = None
    as_of: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in one language. ``text`` is Markdown (paragraphs, ``-`` lists, ``**bold**``, `` `code` ``, tables).

    Attributes:
        id: under which the answer is on record, for feedback; None where nothing is recorded.
        language: language of ``text``: that of the question where it is one of ours, else English.
        kind: what sort of question was read.
        topic, also_topics: for ``faq``.
        provider, field, filters: for ``provider``.
        entities: what the text named (driver, cuda, image, gpu, cluster, node, pod, ...).
        intent: for ``cluster``; cause: for ``error``.
        verdict: the answer in one word.
        abstain: outside what gpu-advisor knows; clarify: it asks back.
        evidence: named values the answer rests on; sources: where its facts come from.
        follow_ups: questions one may ask next, in the same language.
        answer: computed result of a sizing question.
        matched: what in the text led to this reading, for people who ask why.
    """

    language: Language
    kind: Kind
    text: str
    topic: str | None = None
    also_topics: tuple[str, ...] = ()
    provider: str | None = None
    field: str | None = None
    filters: dict[str, Any] = msgspec.field(default_factory=dict)
    entities: dict[str, Any] = msgspec.field(default_factory=dict)
    intent: str | None = None
    cause: str | None = None
    verdict: Verdict | None = None
    abstain: bool = False
    clarify: bool = False
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Source, ...] = ()
    follow_ups: tuple[str, ...] = ()
    answer: dict[str, Any] | None = None
    matched: tuple[str, ...] = ()
    id: str | None = None


class Previous(msgspec.Struct, frozen=True, kw_only=True):
    """What was read in the message before, in the same conversation; fields as in :class:`Answer`."""

    language: Language
    kind: Kind
    topic: str | None = None
    provider: str | None = None
    field: str | None = None
    filters: dict[str, Any] = msgspec.field(default_factory=dict)
    entities: dict[str, Any] = msgspec.field(default_factory=dict)
    intent: str | None = None
    cause: str | None = None


def previous(answer: Answer) -> Previous:
    """What a message that follows ``answer`` may refer to."""
    return Previous(**{name: getattr(answer, name) for name in Previous.__struct_fields__})
