"""What else was worked out, and why the plan is another."""

from collections.abc import Mapping, Sequence

from rules.sharing.devices import Device
from rules.sharing.kinds import AnyKind, Item, keeps
from rules.sharing.model import Alternative, Mode, Remark, SharingRequest
from rules.sharing.solve import Candidate, Solution

MOST = 12
_ORDER: tuple[Mode, ...] = ("whole", "mig", "mps", "time-slicing")


def alternatives(
    request: SharingRequest,
    items: Sequence[Item],
    allowed: Sequence[Device],
    solution: Solution,
    prices: Mapping[str, float],
) -> tuple[Alternative, ...]:
    """Every allowed GPU in every allowed mode but the plan's own, the best first; at most 12."""
    worked = {(way.devices[0].name, way.modes[0]): way for way in solution.singles}
    best = solution.best
    own = {(each.device.name, each.mode) for each in _used(best)}
    found = []
    for device in allowed:
        for mode in _ORDER:
            if mode not in request.modes or own == {(device.name, mode)}:
                continue
            found.append(_alternative(device, mode, worked.get((device.name, mode)), items, best, prices))
    found.sort(key=lambda item: (item.gpus is None, item.usd_hour or 0.0, item.gpus or 0))
    return tuple(found[:MOST])


def _used(way: Candidate) -> list[AnyKind]:
    return [way.kinds[filled.kind] for filled in way.packing.bins] if way.packing else []


def _alternative(
    device: Device,
    mode: Mode,
    way: Candidate | None,
    items: Sequence[Item],
    best: Candidate,
    prices: Mapping[str, float],
) -> Alternative:
    price = prices.get(device.name)
    reasons = _hindrances(device, mode, items)
    if way is None:
        reasons.append(Remark(key="no_price", values={"gpu": device.name}))
    packing = way.packing if way and any(each.mode == mode for each in _used(way)) else None
    if packing is None:
        if not reasons:
            reasons.append(Remark(key="too_small", values={"gpu": device.name}))
        return Alternative(gpu=device.name, mode=mode, gpus=None, optimal=True, usd_hour=None, reasons=tuple(reasons))
    gpus = len(packing.bins)
    reasons.append(Remark(key="costs_more" if best.packing and packing.cost > best.packing.cost else "same_number"))
    return Alternative(
        gpu=device.name,
        mode=mode,
        gpus=gpus,
        optimal=packing.optimal,
        usd_hour=None if price is None else round(price * gpus, 6),
        reasons=tuple(reasons),
    )


def _hindrances(device: Device, mode: Mode, items: Sequence[Item]) -> list[Remark]:
    """Why the mode cannot be had there, or not for all."""
    gpu = device.name
    if mode == "mig" and device.geometry is None:
        key = {False: "no_mig", None: "mig_unknown"}.get(device.mig, "mig_profiles_unknown")
        return [Remark(key=key, values={"gpu": gpu})]
    if mode == "mps" and device.mps_clients == 0:
        return [Remark(key="no_mps", values={"gpu": gpu})]
    if mode == "time-slicing" and not device.sliceable:
        return [Remark(key="no_time_slicing", values={"gpu": gpu})]
    weak = [item.workload.name for item in items if not keeps(mode, item.workload)]
    return [Remark(key="weak_isolation", values={"models": weak})] if weak else []
