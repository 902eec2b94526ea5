"""From a packing to GPUs by number: which replica is where, on which slice, and what is left."""

from collections.abc import Sequence

import msgspec

from rules.sharing.kinds import MIB, AnyKind, Item, Mig
from rules.sharing.large import Spread
from rules.sharing.model import GpuUse, Placed
from rules.sharing.placement import leftover
from rules.sharing.solve import Solution


def uses_of(items: Sequence[Item], solution: Solution | None, spreads: Sequence[Spread]) -> tuple[GpuUse, ...]:
    """All GPUs of a plan: those of spread workloads first, then the shared ones, alike ones together."""
    uses: list[GpuUse] = []
    for way in spreads:
        for replica in range(way.workload.replicas):
            part = way.memory_gib / way.each
            placed = Placed(
                model=way.workload.name,
                replica=replica,
                need_gib=round(part, 3),
                room_gib=round(way.device.memory_gib, 3),
            )
            free = round(way.device.memory_gib - part, 3)
            use = GpuUse(number=0, gpu=way.device.name, mode="whole", shares=1, placed=(placed,), free_gib=free)
            uses += [use] * way.each
    if solution is not None and solution.best.packing is not None:
        given = [0] * len(items)
        kinds = solution.best.kinds
        order = sorted(solution.best.packing.bins, key=lambda filled: (filled.kind, filled.items))
        for filled in order:
            uses.append(_use(kinds[filled.kind], filled.items, items, given))
    return tuple(msgspec.structs.replace(use, number=number) for number, use in enumerate(uses, start=1))


def _use(kind: AnyKind, held: Sequence[tuple[int, int]], items: Sequence[Item], given: list[int]) -> GpuUse:
    members = [index for index, n in held for _ in range(n)]
    used = sum(items[index].memory for index in members) / MIB
    room: float | None = None
    if kind.mode == "whole":
        room = kind.device.memory_gib
    elif kind.mode == "mps":
        room = kind.device.memory_gib / len(members)
    if isinstance(kind, Mig):
        return _cut(kind, members, items, given)
    placed = tuple(_placed(items[index], index, given, room) for index in members)
    return GpuUse(
        number=0,
        gpu=kind.device.name,
        mode=kind.mode,
        shares=len(members),
        placed=placed,
        free_gib=round(kind.device.memory_gib - used, 3),
    )


def _placed(item: Item, index: int, given: list[int], room: float | None) -> Placed:
    replica = given[index]
    given[index] += 1
    return Placed(
        model=item.workload.name,
        replica=replica,
        need_gib=round(item.memory / MIB, 3),
        room_gib=None if room is None else round(room, 3),
    )


def _cut(kind: Mig, members: Sequence[int], items: Sequence[Item], given: list[int]) -> GpuUse:
    geometry = kind.device.geometry
    if geometry is None:
        raise AssertionError(f"{kind.device.name} has slices but no geometry")
    counts = [0] * len(geometry.profiles)
    waiting: dict[str, list[int]] = {}
    for index in members:
        profile = kind.profiles[index]
        if profile is None:
            raise AssertionError(f"{items[index].workload.name} was given a slice without a profile")
        counts[geometry.profiles.index(profile)] += 1
        waiting.setdefault(profile.name, []).append(index)
    placed = []
    for cut in sorted(kind.cuts(counts), key=lambda each: each.start):
        index = waiting[cut.profile.name].pop(0)
        one = _placed(items[index], index, given, cut.profile.memory_gib)
        placed.append(msgspec.structs.replace(one, profile=cut.profile.name, start=cut.start, size=cut.profile.size))
    free = leftover(geometry, counts)
    return GpuUse(
        number=0,
        gpu=kind.device.name,
        mode="mig",
        shares=len(placed),
        placed=tuple(placed),
        free_gib=round(sum(found.memory_gib for name in free if (found := geometry.profile(name))), 3),
        free_profiles=free,
    )
