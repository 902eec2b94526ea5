"""Sentences of the answers, by key and language."""

from functools import lru_cache
from typing import Any

from rules.language import Language, Text
from rules.questions import data


@lru_cache(maxsize=1)
def sentences() -> dict[str, Text]:
    """All sentences of ``data/words.yaml``."""
    return data.load("words.yaml", dict[str, Text])


def say(key: str, language: Language, **values: Any) -> str:
    """The sentence ``key``; with ``count`` among the values, ``key_one`` or ``key_other`` where those exist.

    Raises:
        KeyError: there is no such sentence, or a value that it needs is missing.
    """
    texts = sentences()
    if key not in texts:
        key = f"{key}_{'one' if values.get('count') == 1 else 'other'}"
    return texts[key].in_(language).format(**values) if values else texts[key].in_(language)
