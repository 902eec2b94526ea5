"""Which known trouble a pasted error text shows."""

import re
from functools import cache

from rules.compat import data
from rules.compat.data import ErrorCode, Symptom


def find(text: str) -> tuple[Symptom, ...]:
    """The symptoms whose pattern stands in ``text`` (case does not matter), the longest pattern first.

    Rows that describe a condition cannot be found in a text and are left out.
    """
    lowered = text.lower()
    found = [symptom for symptom, pattern in _patterns() if pattern.search(lowered)]
    return tuple(sorted(found, key=lambda symptom: -len(symptom.pattern)))


def error_code(code: int) -> ErrorCode | None:
    """The CUDA error ``code``."""
    return next((row for row in data.symptoms().error_codes if row.code == code), None)


@cache
def _patterns() -> tuple[tuple[Symptom, re.Pattern[str]], ...]:
    return tuple(
        (symptom, re.compile(re.escape(symptom.pattern.lower()).replace(r"\*", ".*")))
        for symptom in data.symptoms().symptoms
        if symptom.match != "condition"
    )
