"""What an operator may set about prices and providers."""

from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from rules.facts.offers import BUNDLED_RATE, EuroRate
from rules.facts.providers import BillingUnit, KubernetesMode, LinkKind, Support

PUBLISHED = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
"""Where gpuhunt's catalogues are published (gpuhunt 0.1.34, ``CATALOG_URL``)."""

Usd = Annotated[float, msgspec.Meta(ge=0)]


class EuroSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The exchange rate that prices in euro are reckoned with; each of them says its date."""

    usd_per_eur: Annotated[float, msgspec.Meta(gt=0)]
    as_of: date
    source: str = "settings"

    @property
    def rate(self) -> EuroRate:
        """The rate as the rules take it."""
        return EuroRate(self.usd_per_eur, self.as_of.isoformat(), self.source)


class CatalogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How prices are kept fresh.

    Attributes:
        refresh: whether the running service fetches prices by itself. Without it, and in a closed network, everything
            works on what is there.
        refresh_hours: between two refreshes.
        providers: whose prices are fetched, by id; None takes those that need no account
            (:data:`service.catalog.sources.PUBLISHED_BY_GPUHUNT`).
        url: where gpuhunt's catalogues are; https, or http on this machine.
        timeout_seconds: for one provider, from beginning to end.
        max_megabytes: of one provider's catalogue, packed or unpacked.
        keep: snapshots of each provider that stay on record when prices change.
        euro: exchange rate; without it a bundled one of a stated date.
    """

    refresh: bool = True
    refresh_hours: Annotated[int, msgspec.Meta(ge=1, le=744)] = 24
    providers: tuple[str, ...] | None = None
    url: str = PUBLISHED
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 60.0
    max_megabytes: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    keep: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 30
    euro: EuroSettings | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
        if not (parts.hostname and (parts.scheme == "https" or local)):
            raise ValueError("catalog.url takes an https address (or http on this machine)")
        from service.catalog.sources import known_sources

        unknown = sorted(set(self.providers or ()) - set(known_sources()))
        if unknown:
            raise ValueError(
                f"no prices can be fetched for {', '.join(unknown)}; there are: {', '.join(known_sources())}"
            )

    @property
    def rate(self) -> EuroRate:
        """US dollars per euro."""
        return self.euro.rate if self.euro else BUNDLED_RATE


class PrivateOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine of a private provider.

    Attributes:
        gpu: model; gpu_count: per machine; gpu_memory_gib: per GPU.
        region: as in ``Milano, IT``: two capital letters at the end name the country.
        usd_hour: of the whole machine; spot_usd_hour where it may be taken away.
    """

    instance_type: Annotated[str, msgspec.Meta(min_length=1)]
    gpu: Annotated[str, msgspec.Meta(min_length=1)]
    gpu_count: Annotated[int, msgspec.Meta(ge=1)] = 1
    gpu_memory_gib: Annotated[float, msgspec.Meta(gt=0)] | None = None
    region: str | None = None
    vcpus: Annotated[float, msgspec.Meta(gt=0)] | None = None
    memory_gib: Annotated[float, msgspec.Meta(gt=0)] | None = None
    usd_hour: Usd | None = None
    spot_usd_hour: Usd | None = None
    arch: Literal["amd64", "arm64"] | None = None

    def __post_init__(self) -> None:
        if self.usd_hour is None and self.spot_usd_hour is None:
            raise ValueError("an offer needs usd_hour or spot_usd_hour")


class PrivateProvider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider of the team's own: its data centre, or a cloud that is not in the catalogue. What is left out is
    unknown. With the id of a provider of the catalogue, it takes that one's place.

    Attributes:
        as_of: when all this was true.
        kubernetes: ``managed``, ``own``, ``both`` or ``none``.
        interconnect: between nodes, and ``nvlink``.
        shared_storage: names of volumes that several nodes write; an empty list says that there are none.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
    name: str | None = None
    as_of: date
    kubernetes: KubernetesMode | None = None
    control_plane_fee_usd_hour: Usd | None = None
    drivers_preinstalled: bool | None = None
    time_slicing: Support | None = None
    mig: Support | None = None
    mps: Support | None = None
    interconnect: tuple[LinkKind, ...] = ()
    gang_scheduling: bool | None = None
    shared_storage: tuple[str, ...] | None = None
    spot: bool | None = None
    spot_notice_seconds: Annotated[int, msgspec.Meta(ge=0)] | None = None
    scale_to_zero: bool | None = None
    billing_unit: BillingUnit | None = None
    offers: tuple[PrivateOffer, ...] = ()


def facts_of(private: PrivateProvider) -> dict[str, Any]:
    """The groups of facts of a private provider, as :class:`rules.facts.providers.Provider` takes them."""
    said: dict[str, Any] = {"sources": ["settings"], "as_of": private.as_of.isoformat()}
    groups: dict[str, dict[str, Any]] = {
        "kubernetes": {"mode": private.kubernetes},
        "control_plane": {"fee_usd_hour": private.control_plane_fee_usd_hour},
        "sharing": {"time_slicing": private.time_slicing, "mig": private.mig, "mps": private.mps},
        "interconnect": {"links": [{"name": _LINKS[kind], "kind": kind} for kind in private.interconnect] or None},
        "storage": {"rwx": private.shared_storage},
        "spot": {"available": private.spot, "notice_seconds": private.spot_notice_seconds},
        "scale_to_zero": {"available": private.scale_to_zero},
        "billing": {"unit": private.billing_unit},
    }
    if private.drivers_preinstalled is not None:
        groups["drivers"] = {"model": "preinstalled_image" if private.drivers_preinstalled else "gpu_operator_self"}
    if private.gang_scheduling:
        groups["training"] = {"gang": "addon"}
    return {
        group: {**{name: value for name, value in values.items() if value is not None}, **said}
        for group, values in groups.items()
        if any(value is not None for value in values.values())
    }


_LINKS: dict[LinkKind, str] = {
    "infiniband": "InfiniBand",
    "roce": "RoCE",
    "rdma": "RDMA",
    "efa": "EFA",
    "ethernet": "Ethernet",
    "nvlink": "NVLink",
}
