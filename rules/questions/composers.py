"""From a question to what is said about it: one composer per kind, in a module ``answers_<kind>.py`` of its own.

A composer gets one part of a reading and what is known, and returns a :class:`Piece`, or None where it cannot say
anything that is right. :mod:`rules.questions.compose` joins pieces to an answer and abstains where there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from rules.answers import Kind, Previous, Source, Verdict
from rules.facts.cluster import ClusterFacts
from rules.facts.offers import Catalog, EuroRate
from rules.findings import Evidence, Report
from rules.language import Language
from rules.questions.reading import Part

MODULES: dict[Kind, str] = {
    "faq": "rules.questions.answers_faq",
    "error": "rules.questions.answers_error",
    "compat": "rules.questions.answers_compat",
    "provider": "rules.questions.answers_provider",
    "sizing": "rules.questions.answers_sizing",
    "cluster": "rules.questions.answers_cluster",
}
"""Module of the composer of each kind that can be answered; each has a function ``compose(asked) -> Piece | None``.
Imported when first needed: a question about a topic reads no prices."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer may rest on.

    Attributes:
        clusters: what the latest audits know of the clusters that the question is about.
        previous: what the message before it in the conversation was about.
        catalog: providers and prices; the bundled ones when None. rate: for prices in euro; the bundled one when None.
        reports: the latest report of each cluster, by its name; a cluster outside it is judged when that is needed.
    """

    clusters: Sequence[ClusterFacts] = ()
    previous: Previous | None = None
    reports: Mapping[str, Report] = {}
    catalog: Catalog | None = None
    rate: EuroRate | None = None

    def report(self, facts: ClusterFacts) -> Report:
        """What the rules found in a cluster: the latest audit's report, else a judgement made now."""
        known = self.reports.get(facts.name)
        if known is not None:
            return known
        from rules.checks import RULES
        from rules.engine import evaluate
        from rules.policy import Policy

        return facts.remember("questions.report", lambda: evaluate(facts, Policy(), RULES))


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question to answer.

    Attributes:
        alone: nothing else is asked in the message; the answer may be longer.
        text: the whole message without markup.
    """

    part: Part
    language: Language
    known: Known
    text: str
    alone: bool = True


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one question.

    Attributes:
        title: the question in a few words, a heading where several are answered.
        blocks: paragraphs in Markdown, the verdict first.
        fields: further fields of :class:`rules.answers.Answer` (``topic``, ``filters``, ``intent``, ``answer`` ...).
        clarify: it asks back instead of answering.
    """

    title: str
    blocks: tuple[str, ...]
    verdict: Verdict | None = None
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[Source, ...] = ()
    follow_ups: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    clarify: bool = False


Composer = Callable[[Asked], Piece | None]


def composer(kind: Kind) -> Composer | None:
    """The composer of a kind; None where such questions cannot be answered."""
    name = MODULES.get(kind)
    if name is None:
        return None
    found: Composer = import_module(name).compose
    return found
