"""Sentences of verdicts, reasons and warnings in every language, from ``words.yaml`` beside this module."""

from functools import cache
from pathlib import Path

import msgspec
import yaml

from rules.compat.data import Row
from rules.language import LANGUAGES, Language, Text


class Reason(msgspec.Struct, frozen=True):
    """A sentence and the row of facts it rests on.

    Attributes:
        key: stable name of the sentence, for machines.
        source, as_of: of the row; None where it rests on the input alone.
    """

    key: str
    text: Text
    source: str | None = None
    as_of: str | None = None


MAKERS = {
    "nvidia": Text(en="NVIDIA", es="NVIDIA", it="NVIDIA"),
    "amd": Text(en="AMD", es="AMD", it="AMD"),
    "other": Text(en="another maker", es="otro fabricante", it="di un altro produttore"),
}
FLAVOURS = {
    "open": Text(en="open", es="abiertos", it="aperti"),
    "proprietary": Text(en="proprietary", es="propietarios", it="proprietari"),
}

_Words = dict[str, dict[str, Text]]


@cache
def _words() -> _Words:
    text = Path(__file__).with_name("words.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return msgspec.convert(yaml.load(text, loader), _Words)  # noqa: S506 - a safe loader, in C where there is one


def say(key: str, row: Row | None = None, **values: str | Text) -> Reason:
    """The reason or warning called ``key``, with its values filled in."""
    words = _words()
    template = words["reasons"].get(key) or words["warnings"][key]
    return Reason(
        key,
        Text(**{language: _filled(template, language, values) for language in LANGUAGES}),
        row.source if row else None,
        row.as_of if row else None,
    )


def headline(verdict: str) -> Text:
    """A verdict in one sentence."""
    return _words()["verdicts"][verdict]


def _filled(template: Text, language: Language, values: dict[str, str | Text]) -> str:
    plain = {name: value.in_(language) if isinstance(value, Text) else value for name, value in values.items()}
    return template.in_(language).format(**plain)
