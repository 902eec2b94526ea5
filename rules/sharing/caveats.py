"""What to know before a plan is carried out."""

from collections.abc import Iterable, Sequence

from rules.sharing.devices import Device
from rules.sharing.large import NODE, Spread
from rules.sharing.model import GpuUse, Remark, SharingRequest, Sizing
from rules.sharing.solve import Solution


def caveats(
    request: SharingRequest,
    devices: Sequence[Device],
    uses: Sequence[GpuUse],
    sizings: Sequence[Sizing],
    solution: Solution | None,
    spreads: Sequence[Spread],
) -> tuple[Remark, ...]:
    """In the order in which they matter: what may be wrong, what the modes do not give, what they demand."""
    known = {item.name: item for item in devices}
    used = [known[name] for name in dict.fromkeys(use.gpu for use in uses)]
    return (
        *_doubts(sizings, used, solution, request),
        *_large(sizings, spreads),
        *_shared(request, uses, known),
        *_mig(uses, known),
        *([Remark(key="no_sharing_by_plugin", values={"gpus": names})] if (names := _unshared(used)) else ()),
    )


def _names(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _doubts(
    sizings: Sequence[Sizing], used: Sequence[Device], solution: Solution | None, request: SharingRequest
) -> list[Remark]:
    found = []
    short = _names(item.name for item in sizings if item.fits is False and item.mode == "mig")
    if short:
        found.append(Remark(key="slice_too_small", values={"models": short}))
    for device in used:
        if device.ambiguous:
            others = [f"{size} GB" for size in device.ambiguous]
            found.append(Remark(key="size_assumed", values={"gpu": device.name, "others": others}))
        if not device.rows:
            found.append(Remark(key="only_size_known", values={"gpu": device.name}))
    if unread := _names(item.name for item in used if item.rows and not item.memory_known):
        found.append(Remark(key="memory_not_read", values={"gpus": unread}))
    if estimated := _names(item.name for item in sizings if item.need is not None and item.need.estimated):
        found.append(Remark(key="memory_estimated", values={"models": estimated}))
        assumed = _names(key for item in sizings if item.need for key in item.need.assumptions)
        found += [Remark(key=key) for key in assumed]
    if tight := _names(item.name for item in sizings if item.tight and item.fits):
        found.append(Remark(key="tight", values={"models": tight}))
    if solution is not None and not solution.optimal and solution.best.packing is not None:
        unit = 1 if request.objective == "fewest" else 1_000_000
        values: dict[str, str | int | float | list[str]] = {
            "found": solution.best.packing.cost / unit,
            "bound": solution.bound / unit,
        }
        found.append(Remark(key="not_proven" if unit == 1 else "not_proven_price", values=values))
    return found


def _large(sizings: Sequence[Sizing], spreads: Sequence[Spread]) -> list[Remark]:
    found = []
    for way in spreads:
        values: dict[str, str | int | float | list[str]] = {
            "model": way.workload.name,
            "gpu": way.device.name,
            "gpus": way.each,
            "least": way.least,
        }
        found.append(Remark(key="tight_on_one" if way.least == 1 else "spread", values=values))
        if way.each > NODE:
            found.append(Remark(key="spans_nodes", values=values))
    return found


def _shared(request: SharingRequest, uses: Sequence[GpuUse], known: dict[str, Device]) -> list[Remark]:
    found = []
    sliced = [use for use in uses if use.mode == "time-slicing"]
    mps = [use for use in uses if use.mode == "mps"]
    if sliced:
        found += [Remark(key="no_memory_isolation"), Remark(key="no_fault_isolation_time_slicing")]
        if len({placed.need_gib for use in sliced for placed in use.placed}) > 1 and len(sliced) > 1:
            found.append(Remark(key="scheduler_sees_no_memory"))
    if mps:
        most = min(known[use.gpu].mps_clients for use in mps)
        found += [
            Remark(key="mps_shared_fault"),
            Remark(key="mps_equal_parts"),
            Remark(key="mps_clients", values={"most": most}),
        ]
        found.append(Remark(key="mps_experimental"))
    if sliced and mps:
        found.append(Remark(key="one_method_per_node"))
    if sliced or mps:
        found.append(Remark(key="replicas_no_more_compute"))
        there = {placed.model for use in (*sliced, *mps) for placed in use.placed}
        unknown = [item.name for item in request.models if item.load is None and item.name in there]
        if unknown:
            found.append(Remark(key="load_unknown", values={"models": unknown}))
    return found


def _mig(uses: Sequence[GpuUse], known: dict[str, Device]) -> list[Remark]:
    cut = _names(use.gpu for use in uses if use.mode == "mig")
    if not cut:
        return []
    found = [Remark(key="mig_needs_idle_gpu"), Remark(key="slice_below_name"), Remark(key="no_peer_between_slices")]
    geometries = {name: geometry for name in cut if (geometry := known[name].geometry) is not None}
    if assumed := [name for name, geometry in geometries.items() if geometry.row.placement != "read"]:
        found.append(Remark(key="placement_assumed", values={"gpus": assumed}))
    derived = _names(
        placed.profile
        for use in uses
        for placed in use.placed
        if placed.profile and (profile := geometries[use.gpu].profile(placed.profile)) and not profile.known
    )
    if derived:
        found.append(Remark(key="slice_memory_assumed", values={"profiles": derived}))
    if any(use.mode == "whole" and use.gpu in cut for use in uses):
        found.append(Remark(key="mixed_node_570"))
    return found


def _unshared(used: Sequence[Device]) -> list[str]:
    return [item.name for item in used if not item.sliceable]
