"""What people ask, label by label, in three languages: the lines the reader's weights are learnt from.

Files are named ``kind.language.yaml``. faq, cluster, error: label -> lines (a line is a text, or {text, also_ok});
provider: {text, filters} or {text, provider, field}; compat, sizing: {text, entities}; out_of_scope: {text, abstain} or
{text, clarify}. ``more.yaml``: label -> language -> lines. Every twentieth line of a file is held out of the
weights, to measure them.
"""

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from rules.language import LANGUAGES, Language
from rules.questions.data import parse_yaml
from rules.questions.words import sentences

KINDS = ("faq", "provider", "compat", "sizing", "cluster", "error", "out_of_scope")
HELD_OUT = 20
_LABEL_KEYS = {"faq": "topic", "cluster": "intent", "error": "cause", "provider": "field"}


class Line(msgspec.Struct, frozen=True):
    """A line of the corpus.

    Attributes:
        label: ``kind:topic``, ``kind:intent``, ``kind:cause``, ``provider:search``, ``provider:field``,
        ``compat:check``,
            ``sizing:plan``, ``out_of_scope:abstain`` or ``out_of_scope:clarify``.
        also: further labels that count as right.
        expect: what the file says beside the text.
        held_out: not learnt from.
    """

    text: str
    language: Language
    label: str
    also: frozenset[str]
    expect: dict[str, Any]
    held_out: bool

    @property
    def kind(self) -> str:
        """The kind in the label."""
        return self.label.partition(":")[0]


@lru_cache(maxsize=1)
def lines() -> tuple[Line, ...]:
    """All lines, in the order of the files, each text once: a pasted message is the same in every language."""
    every = (
        *(line for kind in KINDS for language in LANGUAGES for line in _file(kind, language)),
        *_more(),
        *_canonical(),
    )
    first = {line.text.casefold(): line for line in reversed(every)}
    return tuple(line for line in every if first[line.text.casefold()] is line)


def _more() -> Iterator[Line]:
    """Lines of ``more.yaml``: label -> language -> lines. All are learnt from."""
    document = parse_yaml((files(__name__) / "more.yaml").read_text(encoding="utf-8"))
    for label, languages in document.items():
        for language in LANGUAGES:
            for text in languages.get(language, ()):
                yield Line(text, language, label, frozenset(), {}, False)


def _canonical() -> Iterator[Line]:
    """The question that each topic answers, as it is offered to people."""
    for key, text in sentences().items():
        if key.startswith("question."):
            for language in LANGUAGES:
                yield Line(text.in_(language), language, f"faq:{key.partition('.')[2]}", frozenset(), {}, False)


def _file(kind: str, language: Language) -> Iterator[Line]:
    path = files(__name__) / f"{kind}.{language}.yaml"
    if not path.is_file():
        return
    for place, (label, row) in enumerate(_rows(kind, parse_yaml(path.read_text(encoding="utf-8")) or []), 1):
        also = frozenset(_label(kind, other) for other in row.get("also_ok") or ())
        yield Line(str(row["text"]), language, label, also - {label}, row, place % HELD_OUT == 0)


def _rows(kind: str, document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(document, dict):
        for label, listed in document.items():
            for entry in listed:
                row = entry if isinstance(entry, dict) else {"text": entry}
                yield f"{kind}:{label}", row
        return
    for row in document:
        yield _label(kind, row), row


def _label(kind: str, row: Any) -> str:
    """The label of an entry, or of a further reading: a topic by its name, or an object."""
    if isinstance(row, str):
        return row if ":" in row else f"faq:{row}" if kind == "faq" else f"{kind}:{row}"
    kind = row.get("kind", kind)
    if kind in ("faq", "cluster", "error"):
        return f"{kind}:{row[_LABEL_KEYS[kind]]}"
    if kind == "provider":
        return f"provider:{row.get('field') or 'search'}"
    if kind == "out_of_scope" or row.get("abstain") or row.get("clarify"):
        return f"out_of_scope:{'clarify' if row.get('clarify') else 'abstain'}"
    return {"compat": "compat:check", "sizing": "sizing:plan"}[kind]
