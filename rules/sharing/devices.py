"""The GPUs that can be planned on: memory, MIG geometry, MPS limits; from ``mig.json`` and ``gpus.json``."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from rules.compat import data
from rules.compat.data import GpuRow, Row
from rules.compat.gpus import recognise
from rules.compat.versions import key
from rules.sharing.errors import PlanInvalid

_DATA = Path(__file__).parent.parent / "data"

UNREAD_MEMORY_SHARE = 0.93
"""Of the nominal memory, where what the driver reports was not read: no card that was read reports less (A10G, T4)."""

UNREAD_SLICE_SHARE = 0.95
"""Of a MIG profile's nominal memory, where it was not read: the least of the profiles that were (1g.5gb: 4.75)."""


class ProfileRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A MIG profile as the table has it; ``starts`` are memory slices that it may begin at."""

    profile: str
    memory_gb: int
    compute_slices: int
    memory_slices: int
    max_instances: int
    starts: tuple[int, ...]
    memory_gib: float | None = None
    source: str | None = None


class GeometryRow(Row, frozen=True, kw_only=True):
    """How a GPU can be cut.

    Attributes:
        products: ids of ``gpus.json``.
        placement: where the starts are from: read from nvidia-smi, of NVIDIA's mock, or assumed.
        device_ids: PCI ids as mig-parted's device filter takes them; empty: not known.
    """

    gpu: str
    products: tuple[str, ...]
    memory_gb: int
    compute_slices: int
    memory_slices: int
    placement: Literal["read", "mock", "assumed"]
    placement_evidence: str
    profiles: tuple[ProfileRow, ...]
    device_ids: tuple[str, ...] = ()
    device_ids_source: str | None = None


class MemoryRow(Row, frozen=True, kw_only=True):
    """Memory that the driver reports for a product."""

    product: str
    mib: int


class MigFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``mig.json``."""

    memory: tuple[MemoryRow, ...]
    statements: tuple[data.Statement, ...]
    geometries: tuple[GeometryRow, ...]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A MIG profile.

    Attributes:
        memory_gib: usable; ``known`` when it was read and not derived from the name.
        compute, size: in compute and memory slices.
        extra: what follows the memory in its name: ``+me``, ``-me``, ``+gfx``, ``+me.all``; empty for the plain one.
    """

    name: str
    memory_gib: float
    known: bool
    compute: int
    size: int
    most: int
    starts: tuple[int, ...]
    extra: str = ""

    @property
    def resource(self) -> str:
        """As the device plugin names it (``+`` becomes a dot; NVIDIA/k8s-device-plugin README)."""
        return "nvidia.com/mig-" + self.name.replace("+", ".")


class Geometry(msgspec.Struct, frozen=True, kw_only=True):
    """The ways a GPU can be cut; profiles from the largest to the smallest."""

    gpu: str
    compute: int
    slices: int
    profiles: tuple[Profile, ...]
    row: GeometryRow

    def profile(self, name: str) -> Profile | None:
        """A profile by its name or its resource's."""
        wanted = name.strip().removeprefix("nvidia.com/").removeprefix("mig-").lower().replace(".me", "+me", 1)
        return next((item for item in self.profiles if item.name == wanted.replace("++", "+")), None)


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of GPU.

    Attributes:
        name: model, with its memory where the model comes in several sizes.
        rows: products it may be; empty where only a size is known.
        memory_gib: that the driver reports; ``memory_known`` False when derived from the nominal size.
        ambiguous: other sizes that the asked name may mean; the smallest is planned with.
        geometry: None without MIG, or where its profiles are not known.
        mig: whether it has MIG; None: unknown.
        mps_clients: most clients that the device plugin accepts (cmd/mps-control-daemon/mps/device.go: 48 from compute
            capability 7.5 on, else 16); 0 where MPS has no separate address spaces (before Volta) or is not NVIDIA's.
        sliceable: NVIDIA's device plugin can time-slice it.
    """

    name: str
    rows: tuple[GpuRow, ...]
    memory_gib: float
    memory_known: bool
    ambiguous: tuple[int, ...]
    geometry: Geometry | None
    mig: bool | None
    mps_clients: int
    sliceable: bool


@cache
def facts() -> MigFacts:
    """``mig.json``, read on first use."""
    return msgspec.json.decode((_DATA / "mig.json").read_bytes(), type=MigFacts)


@cache
def _geometries() -> dict[str, Geometry]:
    found = {}
    for row in facts().geometries:
        profiles = sorted(
            (_profile(item) for item in row.profiles), key=lambda item: (-item.size, -item.compute, item.name)
        )
        geometry = Geometry(
            gpu=row.gpu, compute=row.compute_slices, slices=row.memory_slices, profiles=tuple(profiles), row=row
        )
        found.update(dict.fromkeys(row.products, geometry))
    return found


def _profile(row: ProfileRow) -> Profile:
    plain = row.profile.partition("gb")[0] + "gb"
    return Profile(
        name=row.profile,
        memory_gib=row.memory_gib or row.memory_gb * UNREAD_SLICE_SHARE,
        known=row.memory_gib is not None,
        compute=row.compute_slices,
        size=row.memory_slices,
        most=row.max_instances,
        starts=row.starts,
        extra=row.profile.removeprefix(plain),
    )


@lru_cache(maxsize=512)
def device(name: str) -> Device:
    """The kind of GPU that ``name`` means; a size alone (``80GB``) is any NVIDIA card of that size.

    Raises:
        PlanInvalid: no GPU is known by that name, or its memory is not known.
    """
    size = re.fullmatch(r"\s*([0-9]{1,3}) ?(?:gb|gib|g)\s*", name.lower())
    if size is not None and int(size[1]) > 0:
        return _of_size(int(size[1]))
    gpu = recognise(name)
    if gpu is None:
        raise PlanInvalid("gpus", f"no GPU is known as {name!r}; write for example A100-40GB, H100, L4 or MI300X")
    rows = tuple(row for row in gpu.rows if row.memory_gib)
    rows = rows or tuple(row for row in data.gpus() if name.strip().lower() in row.aliases and row.memory_gib)
    if not rows:
        raise PlanInvalid("gpus", f"the memory of {gpu.name} is not known here; name a GPU with its size, as in 80GB")
    smallest = min(row.memory_gib or 0 for row in rows)
    others = {row.memory_gib for row in data.gpus() if row.model == gpu.row.model and row.memory_gib} - {smallest}
    bare = re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia") == re.sub(
        r"[^a-z0-9]", "", rows[0].model.lower()
    )
    return _device(
        tuple(row for row in rows if row.memory_gib == smallest),
        tuple(sorted(size for size in others if size)) if bare else (),
    )


def _of_size(gib: int) -> Device:
    return Device(
        name=f"{gib}GB",
        rows=(),
        memory_gib=gib * UNREAD_MEMORY_SHARE,
        memory_known=False,
        ambiguous=(),
        geometry=None,
        mig=None,
        mps_clients=16,
        sliceable=True,
    )


@cache
def any_device() -> tuple[Device, ...]:
    """Every data-centre GPU of NVIDIA from Volta on whose memory is known, by name."""
    groups: dict[tuple[str, int], list[GpuRow]] = {}
    for row in data.gpus():
        fits = row.vendor == "nvidia" and row.gpu_class in ("datacenter", "superchip") and row.memory_gib
        if fits and key(row.compute_capability or "0") >= key("7.0"):
            groups.setdefault((row.model, row.memory_gib or 0), []).append(row)
    return tuple(sorted((_device(tuple(rows), ()) for rows in groups.values()), key=lambda item: item.name))


def _device(rows: tuple[GpuRow, ...], ambiguous: tuple[int, ...]) -> Device:
    row = rows[0]
    read = [item.mib for item in facts().memory if item.product in {each.id for each in rows}]
    geometry = next((found for each in rows if (found := _geometries().get(each.id))), None)
    largest = max((item.memory_gib for item in geometry.profiles), default=0.0) if geometry else 0.0
    return Device(
        name=_name(row),
        rows=rows,
        memory_gib=min(read) / 1024 if read else max((row.memory_gib or 0) * UNREAD_MEMORY_SHARE, largest),
        memory_known=bool(read),
        ambiguous=ambiguous,
        geometry=geometry,
        mig=row.mig if row.vendor == "nvidia" else False,
        mps_clients=_mps_clients(row),
        sliceable=row.vendor == "nvidia",
    )


def _name(row: GpuRow) -> str:
    sizes = {each.memory_gib for each in data.gpus() if each.model == row.model and each.memory_gib}
    return f"{row.model}-{row.memory_gib}GB" if len(sizes) > 1 else row.model


def _mps_clients(row: GpuRow) -> int:
    if row.vendor != "nvidia" or row.compute_capability is None or key(row.compute_capability) < key("7.0"):
        return 0
    return 48 if key(row.compute_capability) >= key("7.5") else 16


def devices(names: Iterable[str]) -> tuple[Device, ...]:
    """The kinds of GPU of a request, in its order, each once.

    Raises:
        PlanInvalid: an unknown name; the field tells which.
    """
    found: dict[str, Device] = {}
    for index, name in enumerate(names):
        if name.strip().lower() == "any":
            found.update({item.name: item for item in any_device() if item.name not in found})
            continue
        try:
            item = device(name)
        except PlanInvalid as error:
            raise PlanInvalid(f"gpus[{index}]", error.problem) from error
        found.setdefault(item.name, item)
    return tuple(found.values())
