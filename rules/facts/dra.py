"""GPUs handed out by Dynamic Resource Allocation (``resource.k8s.io``): slices, claims and who holds them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rules.facts.objects import OtherObject, Pod
from rules.facts.resources import Vendor, parse_quantity

GPU_DRIVERS: dict[str, Vendor] = {
    "gpu.nvidia.com": "nvidia",
    "gpu.amd.com": "amd",
    "gpu.intel.com": "intel",
    "gaudi.intel.com": "habana",
}
"""Drivers whose devices are GPUs. ``compute-domain.nvidia.com`` hands out NVLink domains, no GPUs. Sources:
kubernetes-sigs/dra-driver-nvidia-gpu, ROCm/k8s-gpu-dra-driver,
intel/intel-resource-drivers-for-kubernetes (read 2026-08).
"""

GPU_CLASSES: dict[str, str] = {
    "gpu.nvidia.com": "gpu.nvidia.com",
    "mig.nvidia.com": "gpu.nvidia.com",
    "vfio.gpu.nvidia.com": "gpu.nvidia.com",
    "gpu.amd.com": "gpu.amd.com",
    "gpu.intel.com": "gpu.intel.com",
    "gpu-vfio.intel.com": "gpu.intel.com",
    "gaudi.intel.com": "gaudi.intel.com",
}
"""Device classes that the drivers' charts install, and their drivers."""

_BLOCKING = ("NoSchedule", "NoExecute")

Device = tuple[str, str, str]
"""Driver, pool and name of a device."""


class DraGpu(msgspec.Struct, frozen=True):
    """A device that a slice publishes.

    Attributes:
        form: its ``type`` attribute: ``gpu``, ``mig`` or ``vfio``; ``gpu`` where the driver has no such attribute.
        usable: False when a device taint keeps new claims away.
    """

    device: Device
    vendor: Vendor
    form: str
    usable: bool
    product: str | None
    driver_version: str | None
    cuda: str | None
    memory_mib: int | None


class ClaimUse(msgspec.Struct, frozen=True):
    """What a claim is about.

    Attributes:
        devices: allocated GPUs without those of administrative access, which consume nothing.
        allocated: the scheduler has allocated it.
        maybe_gpu: it may be about GPUs: True when it is, or when nothing tells.
        wanted: number of GPUs it asks for; None when unknown or "all".
    """

    devices: tuple[Device, ...]
    allocated: bool
    maybe_gpu: bool
    wanted: int | None


class Dra:
    """Slices and claims of one cluster, indexed.

    Args:
        others: objects by kind; missing kinds leave claims unresolved.
        read: kinds that were read.
    """

    def __init__(self, others: Mapping[str, Iterable[OtherObject]], read: frozenset[str]) -> None:
        self._classes = {item.metadata.name: item for item in others.get("DeviceClass", ())}
        self._classes_known = "DeviceClass" in read
        self._claims = {_key(item): self._use(item.spec, item.status) for item in others.get("ResourceClaim", ())}
        self._templates = {
            _key(item): self._use(_mapping(item.spec, "spec"), None) for item in others.get("ResourceClaimTemplate", ())
        }
        self.gpus_by_node: dict[str, list[DraGpu]] = {}
        node_of_pool: dict[tuple[str, str], str] = {}
        for node, driver, pool, devices in _newest_slices(others.get("ResourceSlice", ())):
            node_of_pool[driver, pool] = node
            self.gpus_by_node.setdefault(node, []).extend(_gpus(driver, pool, devices))
        self.held_by_node: dict[str, set[Device]] = {}
        for use in self._claims.values():
            for device in use.devices:
                # One pool per node is named after it, so that a claim tells its node even where slices were not read.
                node = node_of_pool.get(device[:2], device[1])
                self.held_by_node.setdefault(node, set()).add(device)

    def claim_of(self, pod: Pod) -> ClaimUse | None:
        """All claims of a pod in one; None when it has none, or none that may be about GPUs."""
        sources = pod.spec.resourceClaims if pod.spec else None
        if not sources:
            return None
        namespace = pod.metadata.namespace or ""
        generated = {
            item.get("name"): item.get("resourceClaimName")
            for item in (pod.status.resourceClaimStatuses if pod.status else None) or ()
        }
        uses: list[ClaimUse] = []
        for source in sources:
            name = source.resourceClaimName or generated.get(source.name)
            use = self._claims.get((namespace, name)) if isinstance(name, str) else None
            if use is None and source.resourceClaimTemplateName:
                use = self._templates.get((namespace, source.resourceClaimTemplateName))
            uses.append(use or ClaimUse((), False, True, None))
        about_gpus = [use for use in uses if use.maybe_gpu]
        if not about_gpus:
            return None
        wanted = [use.wanted for use in about_gpus]
        return ClaimUse(
            devices=tuple(device for use in about_gpus for device in use.devices),
            allocated=all(use.allocated for use in about_gpus),
            maybe_gpu=True,
            wanted=None if None in wanted else sum(number or 0 for number in wanted),
        )

    def _use(self, spec: Mapping[str, Any] | None, status: Mapping[str, Any] | None) -> ClaimUse:
        allocation = _mapping(status, "allocation")
        if allocation is not None:
            results = [item for item in _list(_mapping(allocation, "devices"), "results") if isinstance(item, dict)]
            devices = tuple(
                (str(item.get("driver")), str(item.get("pool")), str(item.get("device")))
                for item in results
                if item.get("driver") in GPU_DRIVERS and not item.get("adminAccess")
            )
            return ClaimUse(devices, allocated=True, maybe_gpu=bool(devices), wanted=len(devices))
        wanted: int | None = 0
        maybe = False
        for request in _requests(spec):
            if request.get("adminAccess") or not self._may_be_gpu(request.get("deviceClassName")):
                continue
            maybe = True
            amount = request.get("count", 1)
            exact = request.get("allocationMode", "ExactCount") == "ExactCount" and isinstance(amount, int)
            wanted = wanted + amount if exact and wanted is not None else None
        return ClaimUse((), allocated=False, maybe_gpu=maybe, wanted=wanted)

    def _may_be_gpu(self, device_class: object) -> bool:
        if not isinstance(device_class, str) or device_class in GPU_CLASSES:
            return True
        known = self._classes.get(device_class)
        if known is None:
            return not device_class.startswith("compute-domain-") and not self._classes_known
        return any(
            f"'{driver}'" in text or f'"{driver}"' in text for text in _texts(known.spec) for driver in GPU_DRIVERS
        )


def _key(item: OtherObject) -> tuple[str, str]:
    return (item.metadata.namespace or "", item.metadata.name)


def _mapping(value: Mapping[str, Any] | None, field: str) -> Mapping[str, Any] | None:
    found = value.get(field) if value else None
    return found if isinstance(found, dict) else None


def _list(value: Mapping[str, Any] | None, field: str) -> list[Any]:
    found = value.get(field) if value else None
    return found if isinstance(found, list) else []


def _requests(spec: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Device requests of a claim in either API form: ``exactly`` since v1, flat before; of alternatives the first."""
    for request in _list(_mapping(spec, "devices"), "requests"):
        if not isinstance(request, dict):
            continue
        alternatives = [item for item in _list(request, "firstAvailable") if isinstance(item, dict)]
        yield _mapping(request, "exactly") or (alternatives[0] if alternatives else request)


def _texts(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict):
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)


def _newest_slices(slices: Iterable[OtherObject]) -> Iterator[tuple[str, str, str, list[Any]]]:
    """Node, driver, pool and devices of slices of GPU drivers, each pool in its newest generation only."""
    pools: dict[tuple[str, str], tuple[int, list[tuple[str, list[Any]]]]] = {}
    for item in slices:
        spec = item.spec or {}
        node, driver, pool = spec.get("nodeName"), spec.get("driver"), _mapping(spec, "pool") or {}
        if not isinstance(node, str) or driver not in GPU_DRIVERS:
            continue
        name = str(pool.get("name", node))
        generation = pool.get("generation", 0)
        generation = generation if isinstance(generation, int) else 0
        newest, parts = pools.get((driver, name), (generation, []))
        if generation > newest or not parts:
            newest, parts = generation, []
        if generation == newest:
            parts.append((node, _list(spec, "devices")))
        pools[driver, name] = (newest, parts)
    for (driver, name), (_, parts) in pools.items():
        for node, devices in parts:
            yield node, driver, name, devices


def _gpus(driver: str, pool: str, devices: list[Any]) -> Iterator[DraGpu]:
    for entry in devices:
        if not isinstance(entry, dict):
            continue
        content = _mapping(entry, "basic") or entry
        attributes = _mapping(content, "attributes") or {}
        cuda = _attribute(attributes, "cudaDriverVersion")
        yield DraGpu(
            device=(driver, pool, str(entry.get("name"))),
            vendor=GPU_DRIVERS[driver],
            form=_attribute(attributes, "type") or "gpu",
            usable=not any(
                isinstance(taint, dict) and taint.get("effect") in _BLOCKING for taint in _list(content, "taints")
            ),
            product=_attribute(attributes, "productName"),
            driver_version=_attribute(attributes, "driverVersion"),
            cuda=".".join(cuda.split(".")[:2]) if cuda else None,
            memory_mib=_memory_mib(_mapping(content, "capacity")),
        )


def _attribute(attributes: Mapping[str, Any], name: str) -> str | None:
    value = _mapping(attributes, name) or {}
    return next((str(value[kind]) for kind in ("string", "version", "int") if value.get(kind) is not None), None)


def _memory_mib(capacity: Mapping[str, Any] | None) -> int | None:
    memory = capacity.get("memory") if capacity else None
    amount = memory.get("value") if isinstance(memory, dict) else memory
    value = parse_quantity(amount) if isinstance(amount, str | int | float) and not isinstance(amount, bool) else None
    return int(value / 1024**2) if value is not None else None
