"""What an error means, how to check it and how to fix it, by cause, in three languages (``causes.yaml``).

The facts behind the words are those of :mod:`rules.compat.symptoms` and of the rules that each cause names; rules and
symptoms carry the sources.
"""

from functools import cache
from importlib.resources import files

import msgspec
import yaml

from rules.language import Language, Text


class _Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    en: tuple[str, ...]
    es: tuple[str, ...]
    it: tuple[str, ...]

    def of(self, language: Language) -> tuple[str, ...]:
        """The steps in ``language``."""
        steps: tuple[str, ...] = getattr(self, language)
        return steps


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why GPU work fails.

    Attributes:
        name: a few words, to go into a sentence.
        means: one or two sentences.
        check, fix: steps in Markdown, most telling or most lasting first.
        rules: ids of the rules whose findings are this cause's evidence in a cluster.
    """

    name: Text
    means: Text
    check: _Steps
    fix: _Steps
    rules: tuple[str, ...] = ()


@cache
def causes() -> dict[str, Cause]:
    """All causes by id, sorted."""
    text = (files("rules.knowledge") / "causes.yaml").read_text(encoding="utf-8")
    read = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return dict(sorted(msgspec.convert(read, dict[str, Cause]).items()))
