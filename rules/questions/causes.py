"""Error messages in a text, and what points to their cause. Patterns and sources: ``data/causes.yaml``."""

import re
from functools import lru_cache

import msgspec

from rules.questions import data

READ = 4000
"""Characters of a text that are looked at."""


class Trace(msgspec.Struct, frozen=True):
    """What of a text shows a cause: ``exact`` when it is the message itself, ``words`` as they stand there."""

    cause: str
    exact: bool
    words: str
    start: int


class _Patterns(msgspec.Struct, forbid_unknown_fields=True):
    exact: list[str]
    tells: list[str] = []


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    file = data.load("causes.yaml", dict[str, _Patterns])
    return tuple(
        (cause, exact, re.compile("|".join(f"(?:{pattern})" for pattern in listed)))
        for cause, patterns in file.items()
        for exact, listed in ((True, patterns.exact), (False, patterns.tells))
        if listed
    )


def causes() -> tuple[str, ...]:
    """All causes that can be read."""
    return tuple(data.load("causes.yaml", dict[str, _Patterns]))


def traces(folded: str) -> tuple[Trace, ...]:
    """Every cause that a folded text shows, in the order of the text; one trace per cause, exact ones first choice."""
    found: dict[str, Trace] = {}
    for cause, exact, pattern in _compiled():
        if cause in found:
            continue
        match = pattern.search(folded, 0, READ)
        if match:
            found[cause] = Trace(cause, exact, match[0][:120], match.start())
    return tuple(sorted(found.values(), key=lambda trace: (trace.start, trace.cause)))
