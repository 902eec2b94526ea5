"""Quantities, which resource names are GPUs, and what a pod asks for as the scheduler counts it."""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Literal

import msgspec

from rules.facts.objects import Container, PodSpec, Quantity, ResourceRequirements

Vendor = Literal["nvidia", "amd", "intel", "habana", "aws-neuron"]
Form = Literal["device", "shared", "mig", "partition"]

_QUANTITY = re.compile(r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})\Z")
_SUFFIXES: dict[str, Decimal] = {
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m"), start=-3)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), start=1)},
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
}


def parse_quantity(quantity: Quantity) -> Decimal | None:
    """Value of a quantity in its base unit (``500m`` is 0.5, ``64Gi`` is 68719476736); None when it is none.

    Grammar: Kubernetes API reference, "Quantity" (apimachinery pkg/api/resource).
    """
    return _parsed(quantity if isinstance(quantity, str) else str(quantity))


@lru_cache(maxsize=16384)
def _parsed(text: str) -> Decimal | None:
    match = _QUANTITY.match(text)
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return Decimal(f"{number}{suffix}")
    scale = _SUFFIXES.get(suffix)
    return None if scale is None else Decimal(number) * scale


def count(quantity: Quantity | None) -> int | None:
    """A quantity of whole things; fractions are rounded up as Kubernetes does. None when unknown or negative."""
    if quantity is None:
        return None
    if isinstance(quantity, str) and len(quantity) < 10 and quantity.isascii() and quantity.isdigit():
        return int(quantity)
    value = parse_quantity(quantity)
    if value is None or value < 0:
        return None
    return int(value.to_integral_value(ROUND_CEILING))


class GpuName(msgspec.Struct, frozen=True):
    """What a resource name of a GPU says.

    Attributes:
        vendor: whose device it is.
        form: ``device`` a whole GPU (or, unseen from the name, a share of one), ``shared`` a share by name, ``mig`` a
            MIG device, ``partition`` an AMD partition or a Neuron core.
        profile: of ``mig`` and ``partition``, for example ``1g.5gb`` or ``cpx_nps4``.
    """

    vendor: Vendor
    form: Form
    profile: str | None = None


_DEVICES: dict[str, GpuName] = {
    "nvidia.com/gpu": GpuName("nvidia", "device"),
    "nvidia.com/gpu.shared": GpuName("nvidia", "shared"),
    "amd.com/gpu": GpuName("amd", "device"),
    "gpu.intel.com/i915": GpuName("intel", "device"),
    "gpu.intel.com/xe": GpuName("intel", "device"),
    "habana.ai/gaudi": GpuName("habana", "device"),
    "aws.amazon.com/neuron": GpuName("aws-neuron", "device"),
    "aws.amazon.com/neuroncore": GpuName("aws-neuron", "partition", "neuroncore"),
}
_MIG = re.compile(r"nvidia\.com/mig-([0-9][0-9a-z.+-]*?)(\.shared)?\Z")
_AMD_PARTITION = re.compile(r"amd\.com/((?:spx|dpx|tpx|qpx|cpx)_nps[0-9]+)\Z")

_INDIRECT: dict[str, str] = {
    "nvidia.com/gpumem": "gpu-memory-resource",
    "nvidia.com/gpumem-percentage": "gpu-memory-resource",
    "nvidia.com/gpucores": "gpu-memory-resource",
    "aliyun.com/gpu-mem": "gpu-memory-resource",
    "volcano.sh/gpu-memory": "gpu-memory-resource",
    "volcano.sh/gpu-number": "vgpu-resource",
    "volcano.sh/vgpu-number": "vgpu-resource",
    "volcano.sh/vgpu-memory": "vgpu-resource",
    "volcano.sh/vgpu-memory-percentage": "vgpu-resource",
    "volcano.sh/vgpu-cores": "vgpu-resource",
    "microsoft.com/directx": "directx-resource",
}
_PASSTHROUGH = re.compile(r"nvidia\.com/[A-Z0-9][A-Z0-9_]*[A-Z][A-Za-z0-9_-]*\Z")
_DRA_IMPLICIT = "deviceclass.resource.kubernetes.io/"


@lru_cache(maxsize=4096)
def gpu_name(resource: str) -> GpuName | None:
    """What kind of GPU ``resource`` is; None when it is none, whatever its prefix looks like.

    ``nvidia.com/hostdev`` and ``nvidia.com/sriov-rdma-vf`` are network cards, ``nvidia.com/gpumem`` and
    ``gpucores`` measure shares, ``gpu.intel.com/monitoring`` looks at all GPUs and holds none. Sources: READMEs of
    NVIDIA/k8s-device-plugin, ROCm/k8s-device-plugin, intel/intel-device-plugins-for-kubernetes,
    Mellanox/network-operator, Project-HAMi/HAMi; aws/karpenter-provider-aws pkg/apis/v1/labels.go (read 2026-08).
    """
    known = _DEVICES.get(resource)
    if known is not None:
        return known
    mig = _MIG.match(resource)
    if mig is not None:
        return GpuName("nvidia", "shared" if mig[2] else "mig", mig[1])
    partition = _AMD_PARTITION.match(resource)
    return GpuName("amd", "partition", partition[1]) if partition else None


@lru_cache(maxsize=4096)
def indirect_claim(resource: str) -> str | None:
    """How asking for ``resource`` holds a GPU, or a part of one, that the scheduler does not count as a GPU.

    HAMi, Volcano and aliyun gpushare hand out memory and cores; KubeVirt hands out whole cards under their model name
    (upper case; network cards under ``nvidia.com`` have lower-case names).
    """
    known = _INDIRECT.get(resource)
    if known is not None:
        return known
    if resource.startswith(_DRA_IMPLICIT):
        return "dra-claim"
    return "passthrough-resource" if _PASSTHROUGH.match(resource) else None


_NOTHING: Mapping[str, int] = {}


def extended_requests(spec: PodSpec) -> Mapping[str, int]:
    """What a pod asks for of resources with a domain in their name, as the scheduler counts it; zeros are left out.

    The larger of (containers and sidecars together) and (the hungriest plain init container together with the sidecars
    that were started before it), plus overhead. A sidecar is an init container with ``restartPolicy: Always``. A limit
    without a request is a request. Source: kubernetes/component-helpers resource/helpers.go (1.36).
    """
    containers = spec.containers or ()
    # Nearly all pods have one container.
    running = _sum(containers) if len(containers) != 1 else dict(_requests(containers[0]))
    if spec.initContainers:
        sidecars: dict[str, int] = {}
        peak: dict[str, int] = {}
        for container in spec.initContainers:
            own = _requests(container)
            if container.restartPolicy == "Always":
                _add(sidecars, own)
                _add(running, own)
            elif own or sidecars:
                for name in {*own, *sidecars}:
                    peak[name] = max(peak.get(name, 0), own.get(name, 0) + sidecars.get(name, 0))
        for name, amount in peak.items():
            running[name] = max(running.get(name, 0), amount)
    if spec.overhead:
        _add(running, {name: count(amount) or 0 for name, amount in spec.overhead.items() if "/" in name})
    return {name: amount for name, amount in running.items() if amount} if running else _NOTHING


def gpu_requests(spec: PodSpec) -> Mapping[str, int]:
    """The part of :func:`extended_requests` that is GPUs."""
    requests = extended_requests(spec)
    return {name: amount for name, amount in requests.items() if gpu_name(name)} if requests else _NOTHING


def _sum(containers: Iterable[Container]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        own = _requests(container)
        if own:
            _add(total, own)
    return total


def _requests(container: Container) -> Mapping[str, int]:
    resources = container.resources
    if resources is None:
        return _NOTHING
    found: dict[str, int] = {}
    for amounts in (resources.limits, resources.requests):
        if amounts:
            for name, amount in amounts.items():
                if "/" in name:
                    found[name] = count(amount) or 0
    return found


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def all_requests(spec: PodSpec) -> Mapping[str, Decimal]:
    """What a pod asks for of every resource, CPU and memory included, as the scheduler counts it. Not to be changed:
    pods that ask for the same share the answer.

    The same sum as :func:`extended_requests`; resources at the level of the pod (beta since 1.34: CPU, memory and huge
    pages only) take the place of its containers'. Source: kubernetes/component-helpers resource/helpers.go (1.36).
    """
    containers = spec.containers or ()
    if not (spec.initContainers or spec.resources or spec.overhead):
        return _plain_requests(tuple(_written(item.resources) for item in containers))
    running: dict[str, Decimal] = {}
    for container in containers:
        _plus(running, _every(container.resources))
    sidecars: dict[str, Decimal] = {}
    peak: dict[str, Decimal] = {}
    for container in spec.initContainers or ():
        own = _every(container.resources)
        if container.restartPolicy == "Always":
            _plus(sidecars, own)
            _plus(running, own)
            continue
        for name in {*own, *sidecars}:
            peak[name] = max(peak.get(name, _ZERO), own.get(name, _ZERO) + sidecars.get(name, _ZERO))
    for name, amount in peak.items():
        running[name] = max(running.get(name, _ZERO), amount)
    running.update(_every(spec.resources))
    _plus(running, _amounts(spec.overhead))
    return {name: amount for name, amount in running.items() if amount}


_ZERO, _ONE = Decimal(0), Decimal(1)
_Written = tuple[tuple[tuple[str, Quantity], ...], tuple[tuple[str, Quantity], ...]]
"""Limits and requests of a container, as they are written."""


def _written(resources: ResourceRequirements | None) -> _Written:
    if resources is None:
        return (), ()
    return tuple((resources.limits or {}).items()), tuple((resources.requests or {}).items())


@lru_cache(maxsize=16384)
def _plain_requests(containers: tuple[_Written, ...]) -> Mapping[str, Decimal]:
    """The sum over containers without init containers, overhead and resources at the level of the pod."""
    running: dict[str, Decimal] = {}
    for limits, requests in containers:
        _plus(running, {**_amounts(dict(limits)), **_amounts(dict(requests))})
    return {name: amount for name, amount in running.items() if amount}


def _every(resources: ResourceRequirements | None) -> dict[str, Decimal]:
    if resources is None:
        return {}
    return {**_amounts(resources.limits), **_amounts(resources.requests)}


def _amounts(quantities: Mapping[str, Quantity] | None) -> dict[str, Decimal]:
    return {name: parse_quantity(quantity) or _ZERO for name, quantity in (quantities or {}).items()}


def _plus(total: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, _ZERO) + amount


def left(allocatable: Mapping[str, Quantity] | None, pods: Iterable[PodSpec | None]) -> dict[str, Decimal]:
    """What of a node's allocatable resources its unfinished pods leave, ``pods`` (their number) included. It can be
    negative where a device has failed since."""
    rest = _amounts(allocatable)
    for spec in pods:
        for name, amount in all_requests(spec).items() if spec is not None else ():
            if name in rest:
                rest[name] -= amount
        if "pods" in rest:
            rest["pods"] -= _ONE
    return rest
