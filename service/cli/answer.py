"""An answer as text for people. Pure: returns lines."""

from collections.abc import Iterator
from typing import Any

from rules.language import Language, Text
from service.cli.text import wrapped

SOURCES = Text("Sources", "Fuentes", "Fonti")
FOLLOW_UPS = Text("You may also ask", "También puedes preguntar", "Puoi anche chiedere")


def answer_lines(answer: dict[str, Any], columns: int) -> Iterator[str]:
    """The answer, its sources and what one may ask next.

    Args:
        answer: as JSON shows it.
        columns: width of a line; code is never wrapped.
    """
    language: Language = answer["language"]
    yield from wrapped(answer["text"], columns)
    if answer["sources"]:
        yield ""
        yield f"{SOURCES.in_(language)}:"
        for source in answer["sources"]:
            parts = (source["label"], source["url"], source["as_of"] and f"({source['as_of']})")
            yield "- " + " ".join(filter(None, parts))
    further = [question for question in answer["follow_ups"] if question not in answer["text"]]
    if further:
        yield ""
        yield f"{FOLLOW_UPS.in_(language)}:"
        for question in further:
            yield f"- {question}"
