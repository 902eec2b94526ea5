"""Which GPUs a node has: evidence, model, number of cards, driver and how they are shared."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from rules.facts.dra import DraGpu
from rules.facts.identity import GpuHint, gpu_hint, user_hint
from rules.facts.model import GpuEvidence, Sharing, SharingMode
from rules.facts.objects import Node, Quantity
from rules.facts.prices import PriceBook, Shape
from rules.facts.resources import GpuName, Vendor, count, gpu_name

_PCI = re.compile(r"feature\.node\.kubernetes\.io/pci-(?:(?P<class>[0-9a-f]{4})_)?(?P<vendor>10de|1002)\.present\Z")
_AMD_DISPLAY_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
_AMD_PARTITION = re.compile(r"(?P<compute>spx|dpx|tpx|qpx|cpx)_nps\d+\Z")
_AMD_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
_AMD_CPX_PARTS = {"mi300x": 8, "mi325x": 8, "mi350x": 8, "mi355x": 8, "mi300a": 6}
"""Accelerator complex dies per GPU, which CPX mode shows one by one (AMD Instinct data sheets, 2026-08)."""

_DRIVER_LABELS = (
    "nvidia.com/cuda.driver-version.full",
    "cloud.google.com/cuda.driver-version.full",
    "gpu.coreweave.cloud/driver-version",
    "amd.com/gpu.driver-version",
)
_STRATEGIES: dict[str, SharingMode] = {"time-slicing": "time-slicing", "time-sharing": "time-slicing", "mps": "mps"}
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*\Z")


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one node; the attributes are those of :class:`~rules.facts.model.NodeFacts`."""

    evidence: GpuEvidence | None
    vendor: Vendor | None
    product: str | None
    memory_mib: int | None
    physical_gpus: int | None
    sharing: Sharing
    driver_version: str | None
    driver_source: str | None
    cuda_ceiling: str | None


NO_GPU = Hardware(
    evidence=None,
    vendor=None,
    product=None,
    memory_mib=None,
    physical_gpus=None,
    sharing=Sharing(None),
    driver_version=None,
    driver_source=None,
    cuda_ceiling=None,
)


class _Seen(msgspec.Struct, frozen=True):
    """All that was read of one node, for the steps below."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    names: Mapping[str, GpuName]
    dra: Sequence[DraGpu]
    hint: GpuHint | None
    shape: Shape | None

    def units(self, form: str) -> int:
        """Units of the GPU resource of a form; unhealthy ones count."""
        names = (name for name, known in self.names.items() if known.form == form)
        return max((max(self.capacity.get(name, 0), self.allocatable.get(name, 0)) for name in names), default=0)

    def number(self, label: str) -> int | None:
        """A label's value as a number."""
        value = self.labels.get(label, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def gpu_amounts(amounts: Mapping[str, Quantity] | None) -> dict[str, int]:
    """The GPU resources among a node's capacity or allocatable."""
    found: dict[str, int] = {}
    for name, quantity in (amounts or {}).items():
        if "/" in name and gpu_name(name):
            amount = count(quantity)
            if amount is not None:
                found[name] = amount
    return found


def hardware_of(
    node: Node,
    labels: Mapping[str, str],
    *,
    dra: Sequence[DraGpu],
    prices: PriceBook,
    provider: str | None,
    instance_type: str | None,
) -> Hardware:
    """Read the GPUs of a node.

    Args:
        labels: of the node.
        dra: devices that ResourceSlices publish for it.
        prices: tells what an instance type holds.
        provider, instance_type: where it comes from.
    """
    capacity = gpu_amounts(node.status.capacity if node.status else None)
    allocatable = gpu_amounts(node.status.allocatable if node.status else None)
    names = {name: known for name in {**capacity, **allocatable} if (known := gpu_name(name))}
    seen = _Seen(
        labels=labels,
        annotations=node.metadata.annotations or {},
        capacity=capacity,
        allocatable=allocatable,
        names=names,
        dra=dra,
        hint=gpu_hint(labels),
        shape=prices.shape(provider, instance_type) if instance_type else None,
    )
    evidence, vendor = _evidence(seen)
    if evidence is None:
        return NO_GPU
    product = _product(seen)
    sharing, physical = _sharing_and_cards(seen, product)
    driver, driver_source = _driver(seen)
    return Hardware(
        evidence=evidence,
        vendor=vendor,
        product=product,
        memory_mib=_memory_mib(seen, product),
        physical_gpus=physical,
        sharing=sharing,
        driver_version=driver,
        driver_source=driver_source,
        cuda_ceiling=_cuda_ceiling(seen),
    )


def _evidence(seen: _Seen) -> tuple[GpuEvidence | None, Vendor | None]:
    """The strongest sign of a GPU first. A resource that is listed with zero is no sign: such keys stay behind."""
    for name, known in seen.names.items():
        if seen.capacity.get(name) or seen.allocatable.get(name):
            return "resource", known.vendor
    if seen.dra:
        return "resource", seen.dra[0].vendor
    vendor = _feature_vendor(seen.labels)
    if vendor is not None:
        return "feature-label", vendor
    if seen.hint is not None:
        return "provider-label", seen.hint.vendor or _vendor_of_shape(seen.shape)
    if seen.shape is not None:
        return "instance-type", _vendor_of_shape(seen.shape)
    user = user_hint(seen.labels)
    return ("user-label", user.vendor) if user else (None, None)


def _feature_vendor(labels: Mapping[str, str]) -> Vendor | None:
    """Vendor by labels of node and GPU feature discovery.

    NVIDIA's PCI id counts in any class, as NVIDIA/gpu-operator takes it; AMD's only for display and accelerator
    classes; Intel's not at all, since it is on every machine with an Intel chip set.
    """
    if labels.get("nvidia.com/gpu.present") == "true" or labels.get("nvidia.com/gpu.product"):
        return "nvidia"
    if (
        labels.get("amd.com/gpu.product-name")
        or labels.get("feature.node.kubernetes.io/amd-gpu") == "true"
        or any(label.startswith("beta.amd.com/gpu.") for label in labels)
    ):
        return "amd"
    if labels.get("intel.feature.node.kubernetes.io/gpu") == "true" or labels.get("gpu.intel.com/product"):
        return "intel"
    for label, value in labels.items():
        if value == "true" and "/pci-" in label:
            pci = _PCI.match(label)
            if pci is not None and pci["vendor"] == "10de":
                return "nvidia"
            if pci is not None and pci["class"] in _AMD_DISPLAY_CLASSES:
                return "amd"
    return None


def _vendor_of_shape(shape: Shape | None) -> Vendor | None:
    if shape is None or "Qualcomm" in shape.gpu_model:
        return None
    if shape.gpu_model.startswith(("MI", "Radeon")):
        return "amd"
    return "habana" if shape.gpu_model.startswith("Gaudi") else "nvidia"


def _product(seen: _Seen) -> str | None:
    """Model by the most exact source. Suffixes of sharing are cut off as GFD appends them (-SHARED, -MIG-<profile>)."""
    label = seen.labels.get("nvidia.com/gpu.product")
    if label:
        return label.removesuffix("-SHARED").partition("-MIG-")[0]
    for key in ("amd.com/gpu.product-name", "gpu.intel.com/product"):
        if seen.labels.get(key):
            return seen.labels[key]
    # Here the name is in the key and the value is a number (ROCm/k8s-device-plugin cmd/k8s-node-labeller).
    beta = "beta.amd.com/gpu.product-name."
    named = next((key.removeprefix(beta) for key in seen.labels if key.startswith(beta)), None)
    user = user_hint(seen.labels)
    candidates = (
        named,
        next((gpu.product for gpu in seen.dra if gpu.product), None),
        seen.hint.name if seen.hint else None,
        seen.shape.gpu_model if seen.shape else None,
        user.name if user else None,
    )
    return next(filter(None, candidates), None)


def _sharing_and_cards(seen: _Seen, product: str | None) -> tuple[Sharing, int | None]:
    """How the GPUs are shared and how many cards there are: one follows from the other.

    Cards: GFD's count (not the count of MIG devices that it writes under strategy single); devices of slices; units
    divided by replicas where the sharing is known; provider labels; the instance type. Units that are not known to be
    shares are cards.
    """
    sharing = _sharing(seen, product)
    units, shared = seen.units("device"), seen.units("shared")
    known = _known_cards(seen, sharing)
    if known is None and sharing.mode == "none":
        known = units or None
    if known is None and sharing.replicas and (shared or units):
        known = (shared or units) // sharing.replicas or None
    if known is None and seen.hint is not None:
        known = seen.hint.count
    if known is None and seen.shape is not None:
        known = seen.shape.gpu_count
    if known is None and sharing.mode is None and units:
        known = units
    elif sharing.mode is None and known is not None and units == known and not shared:
        sharing = Sharing("none", 1, source="status.capacity equals the number of GPUs")
    if sharing.mode == "none" and known is not None and units > known:
        # Something multiplies the GPUs that feature discovery does not know of.
        sharing = Sharing(None)
    return sharing, known


def _known_cards(seen: _Seen, sharing: Sharing) -> int | None:
    """Numbers of cards that stand somewhere as such."""
    gfd = seen.number("nvidia.com/gpu.count")
    if gfd and sharing.mode != "mig-single":
        return gfd
    registered = _hami_devices(seen.annotations)
    if registered:
        return registered
    published = {gpu.device for gpu in seen.dra if gpu.form == "gpu"}
    if published:
        return len(published)
    intel = seen.number("gpu.intel.com/device.count")
    return intel or None


def _sharing(seen: _Seen, product: str | None) -> Sharing:
    labels = seen.labels
    if _hami_devices(seen.annotations):
        return Sharing("hami", _hami_split(seen.annotations), source="hami.io/node-nvidia-register")
    amd = _amd_partitions(seen, product)
    if amd is not None:
        return amd
    mig = {
        known.profile: seen.allocatable.get(name, 0)
        for name, known in seen.names.items()
        if known.form == "mig" and known.profile and (seen.capacity.get(name) or seen.allocatable.get(name))
    }
    if mig:
        return Sharing("mig-mixed", profiles=mig, source="status.allocatable")
    gfd_product = labels.get("nvidia.com/gpu.product", "")
    device = seen.allocatable.get("nvidia.com/gpu", 0)
    if "-MIG-" in gfd_product:
        profile = gfd_product.partition("-MIG-")[2].removesuffix("-SHARED")
        profiles = {} if profile == "INVALID" else {profile: device}
        return Sharing("mig-single", profiles=profiles, source="nvidia.com/gpu.product")
    strategy = labels.get("nvidia.com/gpu.sharing-strategy")
    replicas = seen.number("nvidia.com/gpu.replicas")
    shared_by = _STRATEGIES.get(strategy or "")
    if shared_by is not None:
        return Sharing(shared_by, replicas or None, source="nvidia.com/gpu.sharing-strategy")
    partition = labels.get("cloud.google.com/gke-gpu-partition-size")
    gke = _STRATEGIES.get(labels.get("cloud.google.com/gke-gpu-sharing-strategy", ""))
    clients = seen.number("cloud.google.com/gke-max-shared-clients-per-gpu")
    if gke is not None:
        profiles = {partition: device} if partition else {}
        replicas = None if partition else clients
        return Sharing(gke, replicas, profiles, "cloud.google.com/gke-gpu-sharing-strategy")
    if partition:
        return Sharing("mig-single", profiles={partition: device}, source="cloud.google.com/gke-gpu-partition-size")
    if replicas == 0 and labels.get("nvidia.com/mig.strategy") == "mixed":
        # GFD writes zero replicas for a GPU whose MIG mode is on (NVIDIA/k8s-device-plugin internal/lm/resource.go).
        return Sharing("mig-mixed", source="nvidia.com/gpu.replicas")
    if strategy == "none":
        return Sharing("none", 1, source="nvidia.com/gpu.sharing-strategy")
    if any(known.form == "shared" and seen.capacity.get(name) for name, known in seen.names.items()):
        # MPS cannot run without GFD's label mps.capable, which GFD writes together with the strategy.
        return Sharing("time-slicing", source="nvidia.com/gpu.shared")
    if gfd_product.endswith("-SHARED"):
        return Sharing("time-slicing", replicas, source="nvidia.com/gpu.product")
    if "cloud.google.com/gke-accelerator" in labels and "gke-no-default-nvidia-gpu-device-plugin" not in labels:
        return Sharing("none", 1, source="cloud.google.com/gke-accelerator")
    return Sharing(None)


def _amd_partitions(seen: _Seen, product: str | None) -> Sharing | None:
    """AMD's compute partitions, by label or by the resource names of the naming strategy "mixed"."""
    label = seen.labels.get("amd.com/compute-memory-partition", "")
    named = {
        known.profile: seen.allocatable.get(name, 0)
        for name, known in seen.names.items()
        if known.vendor == "amd" and known.form == "partition" and known.profile and seen.capacity.get(name)
    }
    match = _AMD_PARTITION.match(label or next(iter(named), ""))
    if match is None:
        return None
    source = "amd.com/compute-memory-partition" if label else "status.allocatable"
    if match["compute"] == "spx":
        return Sharing("none", 1, source=source)
    parts = _amd_parts(match["compute"], product) if len(named) < 2 else None
    profiles = named or {label: seen.allocatable.get("amd.com/gpu", 0)}
    return Sharing("partitioned", parts, profiles, source)


def _amd_parts(compute: str, product: str | None) -> int | None:
    model = re.search(r"mi\d{3}[xa]", (product or "").lower())
    return _AMD_CPX_PARTS.get(model[0]) if compute == "cpx" and model else _AMD_PARTS.get(compute)


def _hami_devices(annotations: Mapping[str, str]) -> int:
    """Cards in HAMi's register: one entry per card, ended by colons, or a JSON list since v2.5
    (Project-HAMi/HAMi docs/develop/protocol.md)."""
    register = annotations.get("hami.io/node-nvidia-register", "").strip()
    if register.startswith("["):
        try:
            return len(msgspec.json.decode(register, type=list[dict[str, object]]))
        except (msgspec.MsgspecError, UnicodeError):
            return 0
    return sum(1 for entry in register.split(":") if entry.count(",") >= 3)


def _hami_split(annotations: Mapping[str, str]) -> int | None:
    entry = annotations.get("hami.io/node-nvidia-register", "").partition(":")[0].split(",")
    return int(entry[1]) if len(entry) > 3 and entry[1].isascii() and entry[1].isdigit() and len(entry[1]) < 6 else None


def _memory_mib(seen: _Seen, product: str | None) -> int | None:
    """Memory per card; labels that speak of a MIG slice are left out."""
    mib = seen.number("nvidia.com/gpu.memory")
    if mib and "-MIG-" not in seen.labels.get("nvidia.com/gpu.product", ""):
        return mib
    vram = re.fullmatch(r"(\d{1,5})G", seen.labels.get("amd.com/gpu.vram", ""))
    if vram:
        partition = _AMD_PARTITION.match(seen.labels.get("amd.com/compute-memory-partition", "spx_nps1"))
        parts = _amd_parts(partition["compute"], product) if partition else None
        return int(vram[1]) * 1024 * parts if parts else None
    published = next((gpu.memory_mib for gpu in seen.dra if gpu.form == "gpu" and gpu.memory_mib), None)
    return published or (seen.hint.memory_mib if seen.hint else None)


def _driver(seen: _Seen) -> tuple[str | None, str | None]:
    for label in _DRIVER_LABELS:
        value = seen.labels.get(label, "")
        if _VERSION.match(value):
            return value, label
    parts = [seen.labels.get(f"nvidia.com/cuda.driver.{part}") for part in ("major", "minor", "rev")]
    version = ".".join(part for part in parts if part)
    if parts[0] and parts[1] and _VERSION.match(version):
        return version, "nvidia.com/cuda.driver.major, minor, rev"
    published = next((gpu.driver_version for gpu in seen.dra if gpu.driver_version), None)
    return (published, "ResourceSlice driverVersion") if published and _VERSION.match(published) else (None, None)


def _cuda_ceiling(seen: _Seen) -> str | None:
    full = seen.labels.get("nvidia.com/cuda.runtime-version.full", "")
    if _VERSION.match(full):
        return ".".join(full.split(".")[:2])
    for prefix in ("nvidia.com/cuda.runtime-version.", "nvidia.com/cuda.runtime."):
        major, minor = seen.number(f"{prefix}major"), seen.number(f"{prefix}minor")
        if major is not None and minor is not None:
            return f"{major}.{minor}"
    return next((gpu.cuda for gpu in seen.dra if gpu.cuda), None)
