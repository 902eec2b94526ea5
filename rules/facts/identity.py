"""What labels, taints and the provider id tell of where a node comes from.

The tables are in ``rules/data/node-identity.json``, one row per line, each with its source and date.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from rules.facts.gpu_models import model_key
from rules.facts.objects import Node, OtherObject
from rules.facts.resources import Vendor

_DATA = Path(__file__).parent.parent / "data" / "node-identity.json"

INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")

_VENDORS: tuple[Vendor, ...] = ("nvidia", "amd", "intel", "habana")
_NO = frozenset({"", "false", "no", "none", "0", "off", "n"})
_YES = frozenset({"true", "yes", "1", "on", "y", "gpu", "present", "enabled"})
_USER_KEYS = frozenset(
    {"gpu", "gpu-type", "gpu-model", "gpu-name", "gpu-product", "gputype", "has-gpu", "gpu-node", "accelerator"}
)


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    as_of: str


class _ProviderId(_Row, frozen=True):
    provider: str
    pattern: str


class _ProviderLabel(_Row, frozen=True):
    provider: str
    prefix: str


class _SpotLabel(_Row, frozen=True):
    label: str
    spot: frozenset[str]
    regular: frozenset[str]
    regular_when_absent_beside: str | None = None


class _SpotTaint(_Row, frozen=True):
    key: str
    value: str | None = None


class _PoolLabel(_Row, frozen=True):
    label: str


class _GpuLabel(_Row, frozen=True):
    label: str
    role: Literal["name", "count", "memory_mib", "vendor", "flag"]
    vendor: Vendor | None = None
    values: frozenset[str] | None = None


class _Tables(msgspec.Struct, frozen=True):
    provider_ids: tuple[_ProviderId, ...]
    provider_labels: tuple[_ProviderLabel, ...]
    spot_labels: tuple[_SpotLabel, ...]
    spot_taints: tuple[_SpotTaint, ...]
    pool_labels: tuple[_PoolLabel, ...]
    gpu_labels: tuple[_GpuLabel, ...]


@cache
def _tables() -> _Tables:
    return msgspec.json.decode(_DATA.read_bytes(), type=_Tables)


@cache
def _provider_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.provider, re.compile(row.pattern)) for row in _tables().provider_ids)


class GpuHint(msgspec.Struct, frozen=True):
    """What provider labels say of a node's GPU; None is unknown.

    Attributes:
        label: the label that gave it away.
        memory_mib: per GPU.
    """

    label: str
    vendor: Vendor | None = None
    name: str | None = None
    count: int | None = None
    memory_mib: int | None = None


def first(labels: Mapping[str, str], keys: Sequence[str]) -> str | None:
    """Value of the first of ``keys`` that is set and not empty."""
    return next((value for key in keys if (value := labels.get(key))), None)


def provider_of(provider_id: str | None, labels: Mapping[str, str]) -> str | None:
    """Id of the provider in the catalogue, from the provider id, else from labels that only its nodes carry."""
    if provider_id:
        for provider, pattern in _provider_patterns():
            if pattern.match(provider_id):
                return provider
    for row in _tables().provider_labels:
        if any(label.startswith(row.prefix) for label in labels):
            return row.provider
    return None


def instance_type_of(labels: Mapping[str, str], provider: str | None) -> str | None:
    """The provider's name of the machine type, as price lists have it.

    Nebius splits it into platform and preset; k3s without a cloud controller writes ``k3s``, which is none.
    """
    name = first(labels, INSTANCE_TYPE)
    if name in ("k3s", "rke2"):
        return None
    preset = labels.get("nebius.com/resource-preset")
    if provider == "nebius" and name and preset and "_" not in name:
        return f"{name}_{preset}"
    return name


def region_of(labels: Mapping[str, str], provider: str | None) -> str | None:
    """Region from its label, else from the zone where the provider builds one from the other (AWS, Google Cloud)."""
    region = first(labels, REGION)
    zone = first(labels, ZONE)
    if region or not zone:
        return region
    if provider == "aws" and re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", zone):
        return zone[:-1]
    if provider == "gcp" and re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z]", zone):
        return zone[:-2]
    return None


def spot_of(node: Node, labels: Mapping[str, str]) -> bool | None:
    """True or False when a label or taint tells; None otherwise.

    Google's and Azure's managed pools label only interruptible nodes, so the absence of the label beside the label of
    the pool says that the node is none. Elsewhere absence says nothing.
    """
    told: bool | None = None
    for row in _tables().spot_labels:
        value = labels.get(row.label)
        if value in row.spot:
            return True
        if value in row.regular or (value is None and (row.regular_when_absent_beside or "?") in labels):
            told = False
    for taint in (node.spec.taints if node.spec else None) or ():
        for known in _tables().spot_taints:
            if taint.key == known.key and known.value in (None, taint.value):
                return True
    return told


def pool_of(
    node: Node, labels: Mapping[str, str], provider: str | None, machines: Mapping[str, OtherObject]
) -> str | None:
    """Name of the node pool: a pool label, else the MachineSet of the node's Machine.

    Args:
        machines: Machine objects (OpenShift, Cluster API) by ``namespace/name``.
    """
    for row in _tables().pool_labels:
        name = labels.get(row.label)
        if name:
            return name
    if provider == "ovhcloud" and labels.get("nodepool"):
        return labels["nodepool"]
    annotations = node.metadata.annotations or {}
    machine = machines.get(annotations.get("machine.openshift.io/machine", ""))
    if machine is not None:
        return (machine.metadata.labels or {}).get("machine.openshift.io/cluster-api-machineset")
    return annotations.get("oci.oraclecloud.com/node-pool-id") if provider == "oci" else None


def gpu_hint(labels: Mapping[str, str]) -> GpuHint | None:
    """What provider labels say of the GPU of a node; None when they say nothing, or that there is none."""
    label: str | None = None
    vendor: Vendor | None = None
    name: str | None = None
    count: int | None = None
    memory: int | None = None
    for row in _tables().gpu_labels:
        value = labels.get(row.label)
        if value is None or value.lower() in _NO or (row.values is not None and value not in row.values):
            continue
        if row.role in ("count", "memory_mib"):
            number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
            if number <= 0:
                continue
            count, memory = (count or number, memory) if row.role == "count" else (count, memory or number)
        elif row.role == "vendor":
            said = _vendor_in(value)
            if said is None:
                continue
            vendor = vendor or said
            name = name or (value if model_key(value) else None)
        elif row.role == "name":
            name = name or value
        label = label or row.label
        vendor = vendor or row.vendor or (_vendor_in(value) if row.role == "name" else None)
    return GpuHint(label, vendor, name, count, memory) if label else None


def user_hint(labels: Mapping[str, str]) -> GpuHint | None:
    """What a label that people set says of a GPU (``gpu=l40s``). Weak: nobody checks such labels, and a role such as
    ``node-role.kubernetes.io/gpu-worker`` proves nothing."""
    for label, value in labels.items():
        if label.rpartition("/")[2].lower().replace("_", "-") in _USER_KEYS and value.lower() not in _NO:
            named = None if value.lower() in (*_YES, *_VENDORS) else value
            return GpuHint(label, _vendor_in(value), named)
    return None


def _vendor_in(value: str) -> Vendor | None:
    lowered = value.lower()
    found = next((vendor for vendor in _VENDORS if lowered.startswith(vendor)), None)
    if found is None and re.match(r"mi\d{2,3}x?\b", lowered):
        return "amd"
    return found
