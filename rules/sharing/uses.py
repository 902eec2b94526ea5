"""From a packing to GPUs by number: which replica is where, on which slice, and what is left."""

from collections.abc import Sequence

import msgspec

from rules.sharing.devices import Device
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
        made = [_use(kinds[filled.kind], filled.items, items, given) for filled in order]
        devices = {each.device.name: each.device for each in kinds}
        loaded = any(item.load is not None for item in items)
        uses += [_alike(use, made, devices[use.gpu], loaded=loaded) for use in made]
    return tuple(msgspec.structs.replace(use, number=number) for number, use in enumerate(uses, start=1))


def _alike(use: GpuUse, made: Sequence[GpuUse], device: Device, *, loaded: bool) -> GpuUse:
    """Equal shares on all GPUs of a kind where that works, so that they can be on one node and replicas ask alike.

    What nothing else shares is a whole GPU; MPS parts stay as they are where equal ones would be too small.
    """
    if use.mode not in ("mps", "time-slicing"):
        return use
    alike = [each for each in made if each.gpu == use.gpu and each.mode == use.mode]
    most = max(each.shares for each in alike)
    largest = max(item.need_gib for each in alike for item in each.placed)
    if most == 1 or (use.mode == "mps" and use.shares == 1 and largest > device.memory_gib / most):
        room = round(device.memory_gib, 3)
        placed = tuple(msgspec.structs.replace(item, room_gib=room) for item in use.placed)
        return msgspec.structs.replace(use, mode="whole", shares=1, placed=placed)
    if use.mode == "time-slicing":
        return msgspec.structs.replace(use, shares=most)
    if loaded or largest > device.memory_gib / most:
        return use
    room = round(device.memory_gib / most, 3)
    placed = tuple(msgspec.structs.replace(item, room_gib=room) for item in use.placed)
    return msgspec.structs.replace(use, shares=most, placed=placed)


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
