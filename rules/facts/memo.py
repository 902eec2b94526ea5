"""What follows from single objects, kept as long as the objects are."""

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from rules.facts.objects import OtherObject

Derived = TypeVar("Derived")
_SLACK, _SPARE = 1.25, 1000
"""Things of objects that are gone are thrown away when there are so many times as many as objects, and some more."""


class ObjectMemo:
    """Remembers by identity: the same object has the same things, and is held so that no other takes its place."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[OtherObject, dict[str, object]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, item: OtherObject, key: str, make: Callable[[OtherObject], Derived]) -> Derived:
        """What ``make`` makes of an object and nothing else, made once."""
        known = self._known.get(id(item))
        if known is None:
            known = self._known[id(item)] = (item, {})
        things = known[1]
        if key not in things:
            things[key] = make(item)
        return cast("Derived", things[key])

    def keep(self, items: Iterable[OtherObject]) -> None:
        """Forget, now and then, what belongs to other objects than these."""
        present = {id(item) for item in items}
        if len(self._known) > _SLACK * len(present) + _SPARE:
            self._known = {mark: known for mark, known in self._known.items() if mark in present}
