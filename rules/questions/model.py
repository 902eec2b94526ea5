"""Ranks what a text may ask by weights that were learnt from the corpus; see ``train.py`` for how they are made.

Multinomial logistic regression over :mod:`rules.questions.features`: some multiplications per word, no library.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec

SCALE = 100
"""Weights are stored as whole hundredths."""


class Weights(msgspec.Struct, forbid_unknown_fields=True):
    """Attributes:
    digest: of what the weights were made from (corpus, lexicon, features).
    labels: ``kind:label`` in the order of the columns.
    rows: feature -> column, weight, column, weight ... in hundredths.
    """

    digest: str
    labels: list[str]
    bias: list[int]
    rows: dict[str, list[int]]


@lru_cache(maxsize=1)
def weights() -> Weights:
    """The packaged weights."""
    return msgspec.json.decode((files("rules.questions.data") / "weights.json").read_bytes(), type=Weights)


@lru_cache(maxsize=8192)
def _row(name: str) -> tuple[tuple[int, int], ...]:
    """Column and weight of a feature, those of frequent ones taken apart once."""
    row = weights().rows.get(name, ())
    return tuple(zip(row[::2], row[1::2], strict=True))


def rank(values: Mapping[str, float]) -> dict[str, float]:
    """label -> score (a log-odds scale) for the features of a text."""
    book = weights()
    totals: list[float] = list(book.bias)
    for name, value in values.items():
        for column, weight in _row(name):
            totals[column] += weight * value
    return {label: total / SCALE for label, total in zip(book.labels, totals, strict=True)}


def shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores as probabilities, best first."""
    top = max(scores.values())
    raw = {label: math.exp(score - top) for label, score in scores.items()}
    total = sum(raw.values())
    return dict(sorted(((label, value / total) for label, value in raw.items()), key=lambda item: (-item[1], item[0])))


def spoken_for(label: str, values: Mapping[str, float]) -> list[str]:
    """Concepts and entities of a text that speak for ``label``, those that speak most first."""
    book = weights()
    if label not in book.labels:
        return []
    column = book.labels.index(label)
    found: list[tuple[float, str]] = []
    for name, value in values.items():
        if name[0] not in "gle":
            continue
        row = book.rows.get(name, [])
        weight = next((row[index + 1] for index in range(0, len(row), 2) if row[index] == column), 0)
        if weight > 0:
            found.append((-weight * value, name))
    return [name for _, name in sorted(found)]
