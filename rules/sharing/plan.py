"""The plan: which workload goes where, how many GPUs that takes, and what to know before doing it.

The number of GPUs is proven to be the least, or its distance to a lower bound is told. The rules it keeps: MIG slices
only where the placement tables allow them, one slice or share per replica, equal shares under MPS, memory that fits in
sum under time-slicing, and no mode that gives less isolation than a workload asks for.
"""

from collections.abc import Mapping, Sequence

import msgspec

from rules.sharing.alternatives import alternatives
from rules.sharing.caveats import caveats
from rules.sharing.checked import MOST_GPUS, check
from rules.sharing.devices import Device
from rules.sharing.errors import PlanInvalid
from rules.sharing.kinds import Item, item_of
from rules.sharing.large import Spread, spread
from rules.sharing.memory import missing, need
from rules.sharing.model import GpuUse, SharingPlan, SharingRequest
from rules.sharing.sizing import sizings
from rules.sharing.solve import cost_of, solve
from rules.sharing.uses import uses_of

_MICRO = 1_000_000


class _Sorted(msgspec.Struct, frozen=True):
    """What fits on one GPU, what must be spread over several, and what has no place."""

    items: tuple[Item, ...]
    spreads: tuple[Spread, ...]
    unplaced: tuple[str, ...]


def plan(request: SharingRequest) -> SharingPlan:
    """Plan a request.

    Raises:
        PlanInvalid: a value that cannot be planned with; its field is named.
    """
    allowed, prices = check(request)
    asked = [f"models[{index}].{field}" for index, item in enumerate(request.models) for field in missing(item)]
    costs = {item.name: cost for item in allowed if (cost := cost_of(item, request, prices)) is not None}
    objective = request.objective
    if not costs:
        asked.append("prices")
        objective = "fewest"
        costs = dict.fromkeys((item.name for item in allowed), 1)
    devices = tuple(item for item in allowed if item.name in costs)
    parts = _sort_out(request, devices, costs)
    solution = solve(parts.items, devices, costs, request.modes) if parts.items else None
    uses = uses_of(parts.items, solution, parts.spreads)
    sized = sizings(request, parts.items, parts.spreads, uses, solution, devices)
    bound = (solution.bound if solution else 0) + sum(
        each.each * each.workload.replicas * costs[each.device.name] for each in parts.spreads
    )
    whole = sum(len(use.placed) for use in uses)
    usd_hour = _price(_by_gpu(uses), prices) if uses else None
    whole_usd = _price(_whole_by_gpu(uses), prices) if uses else None
    return SharingPlan(
        complete=not asked and not parts.unplaced,
        gpus=len(uses),
        by_gpu=_by_gpu(uses),
        uses=uses,
        objective=objective,
        optimal=solution is None or solution.optimal,
        lower_bound=bound if objective == "fewest" else bound / _MICRO,
        whole_gpus=whole if uses else None,
        usd_hour=usd_hour,
        whole_usd_hour=whole_usd,
        saved_gpus=whole - len(uses) if uses else None,
        saved_usd_hour=None if usd_hour is None or whole_usd is None else round(whole_usd - usd_hour, 6),
        sizings=sized,
        needs_more=tuple(asked),
        unplaced=parts.unplaced,
        caveats=caveats(request, allowed, uses, sized, solution, parts.spreads),
        alternatives=alternatives(request, parts.items, allowed, solution, prices) if solution else (),
    )


def _sort_out(request: SharingRequest, devices: Sequence[Device], costs: Mapping[str, int]) -> _Sorted:
    items: list[Item] = []
    spreads: list[Spread] = []
    unplaced: list[str] = []
    for workload in request.models:
        found = need(workload)
        if found is None:
            continue
        memory = found.memory_gib if request.headroom == "comfortable" else found.minimum_gib
        if workload.profile is not None:
            fits = any(each.geometry is not None and each.geometry.profile(workload.profile) for each in devices)
            if fits:
                items.append(item_of(workload, found, memory))
            else:
                unplaced.append(workload.name)
        elif any(memory <= each.memory_gib for each in devices):
            items.append(item_of(workload, found, memory))
        else:
            way = spread(workload, found, devices, costs, request.headroom)
            if way is not None:
                spreads.append(way)
    if sum(way.each * way.workload.replicas for way in spreads) > MOST_GPUS:
        raise PlanInvalid("models", f"more than {MOST_GPUS} GPUs would be needed; check the sizes")
    items.sort(key=lambda item: (-item.memory, -(item.load or 0), item.workload.name))
    return _Sorted(tuple(items), tuple(spreads), tuple(unplaced))


def _by_gpu(uses: Sequence[GpuUse]) -> dict[str, int]:
    found: dict[str, int] = {}
    for use in uses:
        found[use.gpu] = found.get(use.gpu, 0) + 1
    return found


def _whole_by_gpu(uses: Sequence[GpuUse]) -> dict[str, int]:
    """GPUs of the same kinds, were every replica alone on one."""
    found: dict[str, int] = {}
    for use in uses:
        found[use.gpu] = found.get(use.gpu, 0) + len(use.placed)
    return found


def _price(counts: Mapping[str, int], prices: Mapping[str, float]) -> float | None:
    if any(name not in prices for name in counts):
        return None
    return round(sum(prices[name] * n for name, n in counts.items()), 6)
