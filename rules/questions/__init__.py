"""From the text of a question to its reading and its answer.

Language -> words of the field -> what is asked -> answer. Deterministic; knows nothing of Slack or HTTP.
"""

from collections.abc import Mapping, Sequence

from rules.answers import Answer, Previous
from rules.facts.cluster import ClusterFacts
from rules.facts.offers import Catalog, EuroRate
from rules.findings import Report
from rules.language import Language
from rules.questions.compose import compose
from rules.questions.composers import Known
from rules.questions.follow_up import follow
from rules.questions.reading import Part, Reading, read

__all__ = ["Known", "Part", "Reading", "answer", "read", "understand"]


def understand(text: str, *, language: Language | None = None, previous: Previous | None = None) -> Reading:
    """Read a message in the light of the one before it; arguments as of :func:`answer`."""
    return follow(read(text, language), previous)


def answer(
    text: str,
    *,
    clusters: Sequence[ClusterFacts] = (),
    language: Language | None = None,
    previous: Previous | None = None,
    reports: Mapping[str, Report] | None = None,
    catalog: Catalog | None = None,
    rate: EuroRate | None = None,
    reading: Reading | None = None,
) -> Answer:
    """Answer a question as people type it in chat.

    Args:
        text: the message, Slack markup allowed.
        clusters: what the latest audits know; what is true there is added where it bears on the question.
        language: the reader's own language, used only where the text is too short to tell.
        catalog: providers and prices; the bundled ones when None. rate: for prices in euro.
        reports: latest reports by cluster; a cluster without one is judged when a question needs it.
        previous: what the message before it in the same conversation was about; a follow-up leans on it.
        reading: what the text was understood as already; see :func:`understand` and :mod:`rules.questions.outside`.

    Returns:
        An answer in the language of the question (English for languages that are not spoken here). It abstains from
        what it cannot answer, and asks back where it is not sure; it never guesses.
    """
    return compose(
        understand(text, language=language, previous=previous) if reading is None else reading,
        Known(clusters=clusters, previous=previous, reports=reports or {}, catalog=catalog, rate=rate),
    )
