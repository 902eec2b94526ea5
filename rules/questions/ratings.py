"""Rules that read a label from concepts, as ``data/labels.yaml`` writes them: what a clear wording says for sure."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from rules.answers import Kind
from rules.questions import data
from rules.questions.lexicon import lexicon

COMPUTED = frozenset(
    {
        "provider_name",
        "driver_version",
        "cuda_version",
        "cuda_named",
        "image_reference",
        "parameters_named",
        "memory_named",
        "log_line",
        "fleet",
    }
)
"""Concepts that come from exact entities and patterns, not from the lexicon."""
LONG_UNIT_WORDS = 45
LONG_UNIT_FACTOR = 0.6
"""In a long stretch of text concepts meet by chance: there one rule says less."""


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    all: list[str]
    weight: float
    none: list[str] = []


class Label(msgspec.Struct, forbid_unknown_fields=True):
    """A label with the rules that read it."""

    kind: Kind
    rules: list[_Rule]
    extra: dict[str, float] = {}
    near: list[str] = []


class _Labels(msgspec.Struct, forbid_unknown_fields=True):
    labels: dict[str, Label]


@lru_cache(maxsize=1)
def labels() -> Mapping[str, Label]:
    """The labels; a concept that the lexicon does not know raises."""
    found = data.load("labels.yaml", _Labels).labels
    known = lexicon().concepts | COMPUTED
    for name, label in found.items():
        used = {concept for rule in label.rules for group in [*rule.all, *rule.none] for concept in group.split("|")}
        unknown = (used | set(label.extra)) - known
        if unknown or set(label.near) - set(found):
            msg = f"labels.yaml: {name} names what is not there: {sorted(unknown | (set(label.near) - set(found)))}"
            raise ValueError(msg)
    return found


class _Compiled(NamedTuple):
    all: tuple[frozenset[str], ...]
    none: frozenset[str]
    weight: float


@lru_cache(maxsize=1)
def _compiled() -> dict[str, tuple[_Compiled, ...]]:
    """The rules of every label with their groups taken apart."""
    return {
        name: tuple(
            _Compiled(
                all=tuple(frozenset(group.split("|")) for group in rule.all),
                none=frozenset(concept for group in rule.none for concept in group.split("|")),
                weight=rule.weight,
            )
            for rule in label.rules
        )
        for name, label in labels().items()
    }


def rate(found: Collection[str], count: int) -> dict[str, float]:
    """label -> score for every label that some rule reads in the concepts ``found`` of ``count`` words."""
    factor = LONG_UNIT_FACTOR if count > LONG_UNIT_WORDS else 1.0
    rated: dict[str, float] = {}
    for name, label in labels().items():
        best = max(
            (
                rule.weight
                for rule in _compiled()[name]
                if rule.none.isdisjoint(found) and not any(group.isdisjoint(found) for group in rule.all)
            ),
            default=0.0,
        )
        if best:
            extra = sum(weight for concept, weight in label.extra.items() if concept in found)
            rated[name] = round(factor * (best + extra), 3)
    return rated
