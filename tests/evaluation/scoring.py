"""Reads the corpora of this folder and scores answers to them."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rules.answers import Answer
from rules.questions import answer

HERE = Path(__file__).parent
DATA = HERE.parent / "data"


class Line(NamedTuple):
    """A question with what is expected of it: ``label`` is a topic, a kind, or the code of another language."""

    label: str
    language: str
    text: str


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@lru_cache
def frequent() -> tuple[Line, ...]:
    """Ways of asking the frequent questions."""
    return tuple(_lines(_load(HERE / "frequent_questions.yaml")))


@lru_cache
def others() -> tuple[Line, ...]:
    """Questions that must not be answered as frequent ones."""
    return tuple(_lines(_load(HERE / "other_questions.yaml")))


@lru_cache
def foreign() -> tuple[Line, ...]:
    """Lines in languages that are not read."""
    return tuple(
        Line(code, code, text) for code, texts in _load(HERE / "other_languages.yaml").items() for text in texts
    )


@lru_cache
def development() -> tuple[dict[str, Any], ...]:
    """The development set: questions made from what people ask in public, with the expected reading."""
    return tuple(_load(DATA / "questions_dev.yaml"))


def _lines(corpus: dict[str, dict[str, list[str]]]) -> Iterator[Line]:
    for label, languages in corpus.items():
        for language, texts in languages.items():
            for text in texts:
                yield Line(label, language, text)


@lru_cache(maxsize=4096)
def reply(text: str) -> Answer:
    """The answer to a line, without clusters."""
    return answer(text)


def confident(given: Answer) -> bool:
    """True when it neither abstains nor asks back."""
    return not (given.abstain or given.clarify)


def allowed_topics(question: dict[str, Any]) -> set[str]:
    """Topics that count as right for a line of the development set."""
    found = {question["expect"]["topic"]} if question["kind"] == "faq" else set()
    for other in question.get("also_ok") or []:
        if isinstance(other, str):
            found.add(other)
        elif other.get("kind", question["kind"]) == "faq" and "topic" in other:
            found.add(other["topic"])
    return found


def table(rows: dict[tuple[str, str], Counter[str]], columns: tuple[str, ...]) -> str:
    """Shares of the columns per label and language, as text."""
    head = f"{'label':30}{'lang':6}{'n':>5}" + "".join(f"{column:>10}" for column in columns)
    body = [
        f"{label:30}{language:6}{count['n']:>5}" + "".join(f"{count[column] / count['n']:>10.1%}" for column in columns)
        for (label, language), count in sorted(rows.items())
    ]
    return "\n".join([head, *body])
