"""ResourceSlices of GPU drivers, each pool in its newest generation."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.facts.cluster import ClusterFacts
from rules.facts.dra import GPU_DRIVERS
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef


class Pool(NamedTuple):
    """Slices of one pool: the driver, the pool's name, its node, the slices, and how many there should be."""

    driver: str
    name: str
    node: str
    slices: list[OtherObject]
    wanted: int | None


class BadDevice(NamedTuple):
    """A device with taints that keep new claims away."""

    name: str
    taints: list[str]


def pools(facts: ClusterFacts) -> Iterator[Pool]:
    """GPU pools that belong to a node, sorted by driver and name."""
    found: dict[tuple[str, str], tuple[int, list[OtherObject]]] = {}
    for item in facts.of_kind("ResourceSlice"):
        spec = item.spec or {}
        if spec.get("driver") not in GPU_DRIVERS or not isinstance(spec.get("nodeName"), str):
            continue
        pool = _mapping(spec, "pool")
        key = (str(spec["driver"]), str(pool.get("name", spec["nodeName"])))
        generation = pool.get("generation", 0)
        generation = generation if isinstance(generation, int) else 0
        newest, slices = found.get(key, (generation, []))
        if generation > newest:
            newest, slices = generation, []
        if generation == newest:
            slices.append(item)
        found[key] = (newest, slices)
    for (driver, name), (_, slices) in sorted(found.items()):
        first = slices[0].spec or {}
        wanted = _mapping(first, "pool").get("resourceSliceCount")
        yield Pool(driver, name, str(first["nodeName"]), slices, wanted if isinstance(wanted, int) else None)


def bad_devices(item: OtherObject) -> list[BadDevice]:
    """Devices of a slice that are tainted ``NoSchedule`` or ``NoExecute``."""
    found = []
    for device in _list(item.spec or {}, "devices"):
        content = _mapping(device, "basic") or device
        taints = [
            "=".join(part for part in (str(taint.get("key")), str(taint.get("value") or "")) if part)
            for taint in _list(content, "taints")
            if taint.get("effect") in ("NoSchedule", "NoExecute")
        ]
        if taints:
            found.append(BadDevice(str(device.get("name")), taints))
    return found


def claims_on(facts: ClusterFacts, driver: str, pool: str, devices: set[str]) -> list[ObjectRef]:
    """Claims that hold one of these devices."""
    found = []
    for item in facts.of_kind("ResourceClaim"):
        allocation = _mapping(_mapping(item.status or {}, "allocation"), "devices")
        for result in _list(allocation, "results"):
            at = (result.get("driver"), result.get("pool"))
            if at == (driver, pool) and result.get("device") in devices and not result.get("adminAccess"):
                found.append(ObjectRef("ResourceClaim", item.metadata.namespace or "", item.metadata.name))
    return sorted(set(found))


def slice_ref(item: OtherObject) -> ObjectRef:
    """Reference to a slice."""
    return ObjectRef("ResourceSlice", "", item.metadata.name)


def _mapping(value: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = value.get(field)
    return found if isinstance(found, dict) else {}


def _list(value: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = value.get(field)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
