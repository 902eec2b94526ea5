"""Each workload by itself: does it fit, how many go on one GPU, how many GPUs that takes."""

import math
from collections.abc import Sequence

from rules.sharing.devices import Device
from rules.sharing.kinds import MIB, AnyKind, Item, Mig, item_of, kind
from rules.sharing.large import Spread
from rules.sharing.memory import missing, weights_gb
from rules.sharing.model import GpuUse, SharingRequest, Sizing, Workload
from rules.sharing.solve import Solution

TIGHT = 0.15
"""A share of the memory below which what is left is called little."""

_MOST_COUNTED = 10_000


def sizings(
    request: SharingRequest,
    items: Sequence[Item],
    spreads: Sequence[Spread],
    uses: Sequence[GpuUse],
    solution: Solution | None,
    devices: Sequence[Device],
) -> tuple[Sizing, ...]:
    """The workloads of a request, in its order."""
    found: dict[str, Sizing] = {way.workload.name: _of_spread(way) for way in spreads}
    if solution is not None and solution.best.packing is not None:
        kinds = solution.best.kinds
        for index, item in enumerate(items):
            where = next((filled.kind for filled in solution.best.packing.bins if index in dict(filled.items)), None)
            if where is not None:
                found[item.workload.name] = _of_item(item, kinds[where])
    return tuple(found.get(item.name) or _unknown(item) for item in request.models)


def _unknown(workload: Workload) -> Sizing:
    asked = missing(workload)
    return Sizing(
        name=workload.name,
        replicas=workload.replicas,
        weights_gb=weights_gb(workload),
        fits=None if asked else False,
        needs_more=asked,
    )


def _alone(item: Item, where: AnyKind) -> tuple[AnyKind, int]:
    """How many of one item a GPU of that kind holds, and the kind that says so."""
    only = kind(where.mode, where.device, (item,), where.cost)
    state, count = only.empty(), 0
    while count < _MOST_COUNTED:
        following = only.add(state, 0)
        if following is None:
            break
        state, count = following, count + 1
    return only, count


def _of_item(item: Item, where: AnyKind) -> Sizing:
    only, per_gpu = _alone(item, where)
    least = item_of(item.workload, item.need, min(item.need.minimum_gib, item.memory / MIB))
    _, most = _alone(least, where)
    memory = item.memory / MIB
    profile = only.profiles[0] if isinstance(only, Mig) else None
    together = min(per_gpu, item.replicas)
    if profile is not None:
        room, spare = profile.memory_gib, profile.memory_gib - memory
    elif where.mode == "mps":
        room = where.device.memory_gib / max(1, together)
        spare = room - memory
    else:
        room, spare = where.device.memory_gib, where.device.memory_gib - memory * max(1, together)
    short_of_cache = item.need.estimated and memory < item.need.memory_gib - 1 / MIB
    return Sizing(
        name=item.workload.name,
        replicas=item.replicas,
        need=item.need,
        weights_gb=item.need.weights_gb,
        gpu=where.device.name,
        mode=where.mode,
        profile=profile.name if profile else None,
        fits=spare >= -1 / MIB,
        tight=short_of_cache or spare < TIGHT * room,
        per_gpu=per_gpu,
        gpus_per_replica=1,
        min_gpus_per_replica=1,
        gpus=math.ceil(item.replicas / per_gpu),
        min_gpus=math.ceil(item.replicas / max(per_gpu, most)),
        spare_gib=round(spare, 3),
    )


def _of_spread(way: Spread) -> Sizing:
    room = way.each * way.device.memory_gib
    spare = room - way.memory_gib
    return Sizing(
        name=way.workload.name,
        replicas=way.workload.replicas,
        need=way.need,
        weights_gb=way.need.weights_gb,
        gpu=way.device.name,
        mode="whole",
        fits=way.least == 1,
        tight=way.least == 1 or spare < TIGHT * room or way.memory_gib < way.need.memory_gib,
        per_gpu=0,
        gpus_per_replica=way.each,
        min_gpus_per_replica=way.least,
        gpus=way.each * way.workload.replicas,
        min_gpus=way.least * way.workload.replicas,
        spare_gib=round(spare, 3),
    )
