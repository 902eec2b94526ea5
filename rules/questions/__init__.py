"""From the text of a question to its reading and its answer.

Language -> words of the field -> what is asked -> answer. Deterministic; knows nothing of Slack or HTTP.
"""

from collections.abc import Sequence

from rules.answers import Answer
from rules.facts.cluster import ClusterFacts
from rules.language import Language
from rules.questions.compose import compose
from rules.questions.reading import Reading, read

__all__ = ["Reading", "answer", "read"]


def answer(text: str, *, clusters: Sequence[ClusterFacts] = (), language: Language | None = None) -> Answer:
    """Answer a question as people type it in chat.

    Args:
        text: the message, Slack markup allowed.
        clusters: what the latest audits know; what is true there is added where it bears on the question.
        language: the reader's own language, used only where the text is too short to tell.

    Returns:
        An answer in the language of the question (English for languages that are not spoken here). It abstains from
        what it cannot answer, and asks back where it is not sure; it never guesses.
    """
    return compose(read(text, language), clusters)
