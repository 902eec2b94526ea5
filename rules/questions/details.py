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
from rules.questions.filters import filters
from rules.questions.objects import objects
from rules.questions.text import fold
from rules.questions.workloads import workload

OBJECT_KINDS = frozenset({"cluster", "error", "faq"})


class Details(msgspec.Struct, frozen=True):
    """What a question names; see :class:`rules.questions.reading.Part`."""

    filters: dict[str, Any]
    provider: str | None
    field: str | None
    entities: dict[str, Any]


def details(kind: Kind, label: str, text: str, found: Features) -> Details:
    """Filters, provider, field and entities of a question of ``kind`` in a cleaned ``text``."""
    folded = fold(text)
    named = dict(found.entities)
    asked = filters(folded, named, text) if kind == "provider" else {}
    clouds = named.get("provider") or []
    provider = clouds[0] if len(clouds) == 1 else None
    field = label if kind == "provider" and label != "search" and provider else None
    if kind == "sizing":
        named |= workload(folded, named)
    elif kind in OBJECT_KINDS:
        named |= objects(folded)
    return Details(asked, provider if kind in ("provider", "faq") else None, field, named)
