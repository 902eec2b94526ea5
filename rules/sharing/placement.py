"""Where MIG slices go on a GPU: exact, over the placement tables.

Feasible is what has starts: slices do not overlap, compute slices do not run out, no profile is used more often than it
may, and at most one slice has the media engines (they exist once; MIG user guide, supported profiles, 2026-06).
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from rules.sharing.devices import Geometry, Profile


class Cut(msgspec.Struct, frozen=True):
    """A slice on the GPU."""

    profile: Profile
    start: int


def place(geometry: Geometry, counts: Sequence[int]) -> tuple[Cut, ...] | None:
    """Starts for ``counts`` instances of each profile of the geometry; None when they do not fit together."""
    return _place(geometry.gpu, tuple(counts), geometry.profiles, geometry.compute)


@lru_cache(maxsize=20000)
def _place(_: str, counts: tuple[int, ...], profiles: tuple[Profile, ...], compute: int) -> tuple[Cut, ...] | None:
    if sum(n * item.compute for n, item in zip(counts, profiles, strict=True)) > compute:
        return None
    if any(n > item.most for n, item in zip(counts, profiles, strict=True)):
        return None
    if sum(n for n, item in zip(counts, profiles, strict=True) if item.extra.startswith("+me")) > 1:
        return None
    wanted = [item for n, item in zip(counts, profiles, strict=True) for _ in range(n)]
    wanted.sort(key=lambda item: (-item.size, len(item.starts), item.name))
    return _search(wanted, 0, 0)


def _search(wanted: Sequence[Profile], taken: int, least: int) -> tuple[Cut, ...] | None:
    if not wanted:
        return ()
    first, rest = wanted[0], wanted[1:]
    for start in first.starts:
        mask = ((1 << first.size) - 1) << start
        if start < least or taken & mask:
            continue
        same = bool(rest) and rest[0].name == first.name
        found = _search(rest, taken | mask, start + 1 if same else 0)
        if found is not None:
            return (Cut(first, start), *found)
    return None


def leftover(geometry: Geometry, counts: Sequence[int]) -> tuple[str, ...]:
    """Plain slices that could be added, largest first, until nothing more fits."""
    now = list(counts)
    added = []
    for index, item in enumerate(geometry.profiles):
        while not item.extra:
            now[index] += 1
            if place(geometry, now) is None:
                now[index] -= 1
                break
            added.append(item.name)
    return tuple(added)


def smallest(
    geometry: Geometry, *, memory_gib: float, load: float | None, media: bool, pinned: str | None
) -> Profile | None:
    """The profile that takes the least of the GPU for a workload; None when none will do.

    Every placement of a larger suitable profile holds one of the smaller, so taking the smallest never costs a GPU.
    """
    if pinned is not None:
        return geometry.profile(pinned)
    whole = geometry.compute
    suitable = [
        item
        for item in geometry.profiles
        if item.memory_gib >= memory_gib
        and (load is None or item.compute / whole >= load)
        and (item.extra.startswith("+me") or item.compute == whole if media else not item.extra)
        and "gfx" not in item.extra
    ]
    return min(suitable, key=lambda item: (item.size, item.compute, -len(item.starts), item.name), default=None)
