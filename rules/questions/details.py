"""What a question of each kind names, read from its text once the kind is known.

``provider``: filters, and where one provider is asked about, its id and the field. ``compat``: entities ``driver``,
``cuda``
(one, or a list), ``image``, ``gpu``. ``sizing``: see :func:`rules.questions.workloads.workload`. ``cluster`` and
``error``:
``node``, ``pod``, ``namespace``, ``cluster``, ``pool``, ``gpu`` and versions.
"""

from typing import Any

import msgspec

from rules.answers import Kind
from rules.questions.features import Features

NARROWING = frozenset(
    {
        "gpu",
        "gpu_count",
        "region",
        "commitment",
        "max_price_usd_hour",
        "max_price_eur_hour",
        "max_total_usd_hour",
        "sort",
    }
)
"""Filters that make a question about one provider a search in its offers."""
GENERAL_FIELDS = frozenset({"price", "managed", "spot"})
OBJECT_KINDS = frozenset({"cluster", "error", "faq"})


class Details(msgspec.Struct, frozen=True):
    """What a question names; see :class:`rules.questions.reading.Part`."""

    filters: dict[str, Any]
    provider: str | None
    field: str | None
    entities: dict[str, Any]


def details(kind: Kind, label: str, found: Features) -> Details:
    """Filters, provider, field and entities of a question of ``kind`` with the features ``found``."""
    named = dict(found.entities)
    clouds = named.get("provider") or []
    provider = clouds[0] if len(clouds) == 1 else None
    field = _field(label, found) if kind == "provider" and provider else None
    if kind == "sizing":
        named |= found.workload
    elif kind in OBJECT_KINDS:
        named |= found.objects
    asked = dict(found.filters) if kind == "provider" else {}
    return Details(asked, provider if kind in ("provider", "faq") else None, field, named)


def _field(label: str, found: Features) -> str | None:
    """The field of a provider that is asked for: what was read, or where a search was read that narrows nothing, the
    first field that is named."""
    if label != "search":
        return label
    if not NARROWING.isdisjoint(found.filters):
        return None
    return next((name for name in found.filters.get("fields", ()) if name not in GENERAL_FIELDS), None)
