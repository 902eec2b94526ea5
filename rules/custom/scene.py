"""What facts are read from, and short words for writing their tables."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from rules.custom.types import Fact, Type
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import ObjectMeta
from rules.facts.workloads import Workloads, workloads_of


class Scene(msgspec.Struct, frozen=True):
    """What facts are read from."""

    facts: ClusterFacts

    @property
    def workloads(self) -> Workloads:
        """Of the cluster."""
        return workloads_of(self.facts)

    def age(self, since: datetime | None) -> int | None:
        """Whole seconds from ``since`` to the moment of observation."""
        return None if since is None else max(0, int((self.facts.observed_at - since).total_seconds()))


def fact(type_: Type, read: Any, says: str, **more: Any) -> Fact:
    """One line of a table; see :class:`~rules.custom.types.Fact`."""
    return Fact(type=type_, read=read, says=says, **more)


def labels_of(metadata: ObjectMeta | None) -> dict[str, str] | None:
    """Labels of an object; None when it was not read."""
    return None if metadata is None else dict(metadata.labels or {})


def annotations_of(metadata: ObjectMeta | None) -> dict[str, str] | None:
    """Annotations of an object; None when it was not read."""
    return None if metadata is None else dict(metadata.annotations or {})


def total(amounts: Iterable[int | None]) -> int | None:
    """The sum; None as soon as one is unknown."""
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)
