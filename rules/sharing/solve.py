"""Every way of packing that is worth trying, and the best of them."""

from collections.abc import Mapping, Sequence

import msgspec

from rules.sharing.devices import Device
from rules.sharing.kinds import AnyKind, Item, Whole, kind
from rules.sharing.model import Mode, SharingRequest
from rules.sharing.packing import Packing, least_cost, pack

_MOST_MIXED_DEVICES = 4
"""Up to here kinds of GPU are also tried together; beyond, their mix only has a lower bound."""

_MOST_SINGLES = 16
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


class _Ways:
    """All ways over some items; every kind of bin is made once."""

    def __init__(
        self, items: Sequence[Item], devices: Sequence[Device], costs: Mapping[str, int], modes: Sequence[Mode]
    ) -> None:
        self.items, self.costs, self.modes = items, costs, modes
        self.counts = [item.replicas for item in items]
        self.shared = {
            (device.name, mode): kind(mode, device, items, costs[device.name])
            for device in devices
            for mode in modes
            if mode != "whole"
        }

    def kinds(self, devices: Sequence[Device], modes: Sequence[Mode]) -> tuple[AnyKind, ...]:
        """One kind per device and mode; whole GPUs hold what no other mode here can, whatever the modes are."""
        shared = [self.shared[device.name, mode] for device in devices for mode in modes if mode != "whole"]
        whole = [Whole(device, self.items, self.costs[device.name]) for device in devices]
        if "whole" not in modes:
            for each in whole:
                each.leave_to(shared)
        return tuple(each for each in (*whole, *shared) if any(each.loads))

    def least(self, kinds: Sequence[AnyKind]) -> int | None:
        """What a packing costs at least; None when some item fits none of the kinds."""
        if any(not any(each.loads[item] for each in kinds) for item in range(len(self.items))):
            return None
        return least_cost(self.counts, kinds)

    def worked_out(self, devices: Sequence[Device], modes: Sequence[Mode], *, search: bool = True) -> Candidate:
        """One way, packed."""
        kinds = self.kinds(devices, modes)
        packing = pack(self.counts, kinds) if search else pack(self.counts, kinds, steps=0)
        return Candidate(tuple(devices), tuple(modes), kinds, packing)

    def singles(self, devices: Sequence[Device]) -> tuple[Candidate, ...]:
        """Each device in each mode. Among many, those that cannot beat what was found are left out."""
        pairs = [(device, mode) for device in devices for mode in _RANK if mode in self.modes]
        if len(devices) <= _MOST_MIXED_DEVICES:
            return tuple(self.worked_out((device,), (mode,)) for device, mode in pairs)
        bounds = [self.least(self.kinds((device,), (mode,))) for device, mode in pairs]
        order = sorted(
            (bound, pair[0].memory_gib, _RANK[pair[1]], index)
            for index, (pair, bound) in enumerate(zip(pairs, bounds, strict=True))
            if bound is not None
        )
        found: list[Candidate] = []
        best: int | None = None
        for bound, _, _, index in order:
            if best is not None and (bound > best or len(found) >= _MOST_SINGLES):
                break
            device, mode = pairs[index]
            way = self.worked_out((device,), (mode,))
            found.append(way)
            if way.packing is not None:
                best = way.packing.cost if best is None else min(best, way.packing.cost)
        return tuple(found)


def solve(
    items: Sequence[Item], devices: Sequence[Device], costs: Mapping[str, int], modes: Sequence[Mode]
) -> Solution | None:
    """The best packing of ``items`` on GPUs that each have a cost; None when some item fits on none of them."""
    ways = _Ways(items, devices, costs, modes)
    everything = ways.kinds(devices, modes)
    bound = ways.least(everything)
    if bound is None:
        return None
    singles = ways.singles(devices)
    few = len(devices) <= _MOST_MIXED_DEVICES
    tried = list(singles)
    if few and len(modes) > 1:
        tried += [ways.worked_out((device,), modes) for device in devices]
    best = _best(tried)
    if best is None or (best.packing is not None and best.packing.cost > bound):
        mixed = ways.worked_out(devices, modes, search=few)
        best = _best([*tried, mixed])
        bound = max(bound, mixed.packing.bound if mixed.packing else 0)
    if best is None or best.packing is None:
        return None
    bound = min(bound, best.packing.cost)
    return Solution(best, singles, bound, best.packing.cost <= bound)


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
