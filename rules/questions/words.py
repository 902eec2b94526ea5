"""Sentences of the answers, by key and language."""

from functools import lru_cache
from typing import Any

from rules.errors import InternalFault
from rules.language import Language, Text
from rules.questions import data


@lru_cache(maxsize=1)
def sentences() -> dict[str, Text]:
    """All sentences of ``data/words*.yaml``: one file for what all answers share, one per kind."""
    found: dict[str, Text] = {}
    for name in data.names("words"):
        own = data.load(name, dict[str, Text])
        twice = found.keys() & own.keys()
        if twice:
            raise InternalFault(f"{name}: {sorted(twice)} are sentences of another file already")
        found |= own
    return found


def say(key: str, language: Language, **values: Any) -> str:
    """The sentence ``key``; with ``count`` among the values, ``key_one`` or ``key_other`` where those exist.

    Raises:
        KeyError: there is no such sentence, or a value that it needs is missing.
    """
    texts = sentences()
    if key not in texts:
        key = f"{key}_{'one' if values.get('count') == 1 else 'other'}"
    return texts[key].in_(language).format(**values) if values else texts[key].in_(language)
