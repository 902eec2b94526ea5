"""GPU cloud providers: what is documented of each, every group of facts with its sources, date and confidence.

The facts are in ``rules/data/providers.json``, one line per group. A group that is missing, and a value that is None,
is not documented: never "no". Prices, and the GPU models and regions that price lists show, are in
:mod:`rules.facts.prices`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

_DATA = Path(__file__).parent.parent / "data" / "providers.json"

KubernetesMode = Literal["managed", "own", "both", "none"]
DriverModel = Literal["preinstalled_image", "gpu_operator_managed", "gpu_operator_self", "self_install"]
PluginMethod = Literal["builtin", "provider_plugin", "addon", "option", "gpu_operator", "self_install", "depends"]
Support = Literal["supported", "self_managed", "not_supported"]
LinkKind = Literal["infiniband", "roce", "rdma", "efa", "ethernet", "nvlink"]
BillingUnit = Literal["second", "minute", "hour"]
GangMethod = Literal["builtin", "addon", "self_install"]


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A group of facts that share their sources.

    Attributes:
        sources: where it was read: a URL, or ``owner/repository path``; never empty.
        as_of: when that was true: YYYY, YYYY-MM or YYYY-MM-DD.
        dated: what the date is of: the ``source``, or the day it was ``read`` where the source shows none.
        confidence: ``documented``, or ``inferred`` from code, from a definition or from third-party notes.
        note: an English sentence about limits and exceptions.
    """

    sources: tuple[str, ...]
    as_of: str
    dated: Literal["source", "read"] = "source"
    confidence: Literal["documented", "inferred"] = "documented"
    note: str | None = None

    def __post_init__(self) -> None:
        if not self.sources or not self.as_of:
            raise ValueError("a fact needs a source and a date")


class Kubernetes(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How Kubernetes is had.

    Attributes:
        mode: ``managed`` (only a managed service with GPU node pools), ``own`` (GPU machines that join a cluster you
            run), ``both``, or ``none`` (neither).
        product: name of the managed service.
    """

    mode: KubernetesMode
    product: str | None = None


class ControlPlane(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The control plane.

    Attributes:
        managed: whether the provider runs it.
        fee_usd_hour: per cluster and hour; 0 where one can be had without a fee.
        free_tier: where there is a fee: whether a cluster can be had without it, within limits that the note gives.
    """

    managed: bool | None = None
    fee_usd_hour: float | None = None
    free_tier: bool | None = None


class Drivers(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who puts the GPU driver on nodes: it is in the image, a GPU Operator run by the provider or by you, or you."""

    model: DriverModel


class DevicePlugin(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the device plugin comes from; ``option`` is chosen at creation, ``depends`` is explained by the note."""

    method: PluginMethod


class Sharing(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sharing of a GPU; ``self_managed`` works through a device plugin or GPU Operator that you run."""

    time_slicing: Support | None = None
    mig: Support | None = None
    mps: Support | None = None


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An interconnect: ``nvlink`` is within a node, the rest between nodes.

    Attributes:
        name: as the provider calls it.
        kind: None when the technology is not named.
        inferred: it follows from the form of the GPU and is not stated by the provider.
    """

    name: str
    kind: LinkKind | None = None
    inferred: bool = False


class Interconnect(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fast links that are documented; the list need not be complete."""

    links: tuple[Link, ...]


class Training(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gang scheduling, and the queues and training operators that the provider or its guides name.

    Attributes:
        gang: how a gang scheduler comes: ``builtin``, ``addon`` of the provider, or ``self_install``.
        tools: names.
    """

    gang: GangMethod | None = None
    tools: tuple[str, ...] = ()


class Storage(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Volumes.

    Attributes:
        csi: drivers of block volumes.
        rwx: shared storage that several nodes can write; an empty tuple says that there is none, None is unknown.
    """

    csi: tuple[str, ...] | None = None
    rwx: tuple[str, ...] | None = None


class Spot(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Interruptible capacity; ``notice_seconds`` is what a node gets before it goes."""

    available: bool | None = None
    name: str | None = None
    notice_seconds: int | None = None


class Available(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plain yes or no."""

    available: bool


class Billing(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Smallest unit of time that is billed."""

    unit: BillingUnit


class NodeIdentity(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How nodes of the provider look; how they are recognised is in :mod:`rules.facts.identity`.

    Attributes:
        provider_ids: shapes of ``spec.providerID``.
        gpu_labels, spot_labels, pool_labels: ``key`` or ``key=value``.
    """

    provider_ids: tuple[str, ...] = ()
    gpu_labels: tuple[str, ...] = ()
    spot_labels: tuple[str, ...] = ()
    pool_labels: tuple[str, ...] = ()


class GpuModels(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPU models that documentation names; price lists may show more."""

    models: tuple[str, ...]


class Regions(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Regions that documentation names; whether GPUs are in all of them is not said."""

    names: tuple[str, ...]


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider. Every group of facts may be None: not documented.

    Attributes:
        aliases: other names, in lower case.
        scale_to_zero: whether an empty GPU pool is removed and scaled up again.
        amd: whether there are AMD GPUs.
        remark: its note says what fits nowhere else.
        private: the team's own, from its configuration.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    kubernetes: Kubernetes | None = None
    control_plane: ControlPlane | None = None
    drivers: Drivers | None = None
    device_plugin: DevicePlugin | None = None
    sharing: Sharing | None = None
    interconnect: Interconnect | None = None
    training: Training | None = None
    storage: Storage | None = None
    spot: Spot | None = None
    scale_to_zero: Available | None = None
    billing: Billing | None = None
    node_identity: NodeIdentity | None = None
    gpu_models: GpuModels | None = None
    regions: Regions | None = None
    amd: Available | None = None
    remark: Fact | None = None
    private: bool = False

    def facts(self) -> Iterator[tuple[str, Fact]]:
        """The groups that are documented, by name."""
        for name in GROUPS:
            fact = getattr(self, name)
            if fact is not None:
                yield name, fact


GROUPS: tuple[str, ...] = (
    "kubernetes",
    "control_plane",
    "drivers",
    "device_plugin",
    "sharing",
    "interconnect",
    "training",
    "storage",
    "spot",
    "scale_to_zero",
    "billing",
    "node_identity",
    "gpu_models",
    "regions",
    "amd",
    "remark",
)
"""Groups of facts, in the order in which they are shown."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    providers: tuple[Provider, ...]


@cache
def bundled_providers() -> Mapping[str, Provider]:
    """The providers that come with the package, by id, in their order; read on first use."""
    read = msgspec.json.decode(_DATA.read_bytes(), type=_File)
    return {provider.id: provider for provider in read.providers}


def find_provider(name: str, providers: Mapping[str, Provider] | None = None) -> Provider | None:
    """The provider of an id, a name or an alias, in any case; None when no provider or more than one goes by it."""
    known = bundled_providers() if providers is None else providers
    wanted = name.strip().lower()
    if wanted in known:
        return known[wanted]
    named = [one for one in known.values() if wanted == one.name.lower() or wanted in one.aliases]
    return named[0] if len(named) == 1 else None
