"""Every way of packing that is worth trying, and the best of them."""

from collections.abc import Mapping, Sequence

import msgspec

from rules.sharing.devices import Device
from rules.sharing.kinds import AnyKind, Item, Whole, kind
from rules.sharing.model import Mode, SharingRequest
from rules.sharing.packing import Packing, least_cost, pack

_MOST_MIXED_DEVICES = 4
"""Up to here kinds of GPU are also tried together; beyond, their mix only has a lower bound."""

_MICRO = 1_000_000
_RANK: dict[Mode, int] = {"whole": 0, "mig": 1, "time-slicing": 2, "mps": 3}
"""Which mode is taken at equal cost: no sharing before walls in hardware, and before the experimental MPS of the device
plugin the time-slicing that it also offers, where a workload allows that at all."""


class Candidate(msgspec.Struct, frozen=True):
    """One way: the kinds that were allowed, and the packing; None where some item fits none of them."""

    devices: tuple[Device, ...]
    modes: tuple[Mode, ...]
    kinds: tuple[AnyKind, ...]
    packing: Packing | None


class Solution(msgspec.Struct, frozen=True):
    """The best way, all ways on one device in one mode, and what no way can go below (in units of cost)."""

    best: Candidate
    singles: tuple[Candidate, ...]
    bound: int
    optimal: bool


def cost_of(device: Device, request: SharingRequest, prices: Mapping[str, float]) -> int | None:
    """Cost of one GPU: 1, or micro-dollars per hour; None where the price is asked for and not known."""
    if request.objective == "fewest":
        return 1
    price = prices.get(device.name)
    return None if price is None else max(1, round(price * _MICRO))


def solve(
    items: Sequence[Item], devices: Sequence[Device], costs: Mapping[str, int], modes: Sequence[Mode]
) -> Solution | None:
    """The best packing of ``items`` on GPUs that each have a cost; None when some item fits on none of them."""
    singles = tuple(
        _candidate(items, (device,), (mode,), costs) for device in devices for mode in _RANK if mode in modes
    )
    ways = list(singles)
    if len(modes) > 1 and len(devices) <= _MOST_MIXED_DEVICES:
        ways += [_candidate(items, (device,), tuple(modes), costs) for device in devices]
    everything = _kinds(items, devices, modes, costs)
    if any(not any(each.loads[item] for each in everything) for item in range(len(items))):
        return None
    counts = [item.replicas for item in items]
    bound = least_cost(counts, everything)
    best = _best(ways)
    if best is None or (best.packing and best.packing.cost > bound):
        if len(devices) <= _MOST_MIXED_DEVICES:
            mixed = Candidate(tuple(devices), tuple(modes), everything, pack(counts, everything))
        else:
            mixed = Candidate(tuple(devices), tuple(modes), everything, pack(counts, everything, steps=0))
        ways.append(mixed)
        best = _best(ways)
        if mixed.packing is not None:
            bound = max(bound, mixed.packing.bound)
    if best is None or best.packing is None:
        return None
    bound = min(bound, best.packing.cost)
    return Solution(best, singles, bound, best.packing.cost <= bound)


def _candidate(
    items: Sequence[Item], devices: Sequence[Device], modes: tuple[Mode, ...], costs: Mapping[str, int]
) -> Candidate:
    kinds = _kinds(items, devices, modes, costs)
    return Candidate(tuple(devices), modes, kinds, pack([item.replicas for item in items], kinds))


def _kinds(
    items: Sequence[Item], devices: Sequence[Device], modes: Sequence[Mode], costs: Mapping[str, int]
) -> tuple[AnyKind, ...]:
    """One kind per device and mode; whole GPUs hold what no other mode here can, whatever the modes are."""
    shared = [kind(mode, device, items, costs[device.name]) for device in devices for mode in modes if mode != "whole"]
    whole = [Whole(device, items, costs[device.name]) for device in devices]
    if "whole" not in modes:
        for each in whole:
            each.leave_to(shared)
    return tuple(each for each in (*whole, *shared) if any(each.loads))


def _best(ways: Sequence[Candidate]) -> Candidate | None:
    """The cheapest; among equals proven before not, less sharing, fewer GPUs, the smaller ones, and the first asked."""
    found = [way for way in ways if way.packing is not None]
    return min(found, key=_order, default=None)


def _order(way: Candidate) -> tuple[float, ...]:
    if way.packing is None:
        return ()
    used = [way.kinds[filled.kind] for filled in way.packing.bins]
    worst = max((_RANK[each.mode] for each in used), default=0)
    memory = sum(each.device.memory_gib for each in used)
    return (way.packing.cost, worst, len(used), round(memory, 3), sum(_RANK[each.mode] for each in used))
