"""Offers to choose from: providers with their prices, made ready for searching, and the filters of a search."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Literal, get_args

import msgspec

from rules.errors import InputInvalid
from rules.facts.gpu_models import model_key
from rules.facts.offers_regions import countries_of
from rules.facts.prices import Offer, PriceBook
from rules.facts.providers import BillingUnit, LinkKind, Provider

GpuVendor = Literal["nvidia", "amd", "intel", "qualcomm"]
Form = Literal["sxm", "pcie", "nvl"]
Sort = Literal["price_asc", "price_desc", "name"]
Currency = Literal["usd", "eur"]
Commitment = Literal["none", "monthly", "1y", "3y"]
Arch = Literal["amd64", "arm64"]
SharingMode = Literal["mig", "mps", "time_slicing"]

HOURS_PER_MONTH = 730.0
"""A year of hours over twelve, as clouds reckon their monthly prices."""

_PRICE_LINE = re.compile(
    r"\((list|on-demand|spot|community|secure|marketplace|per GPU|prototyping|production)(,[^)]*)?\)"
)
_ARM = frozenset({"gh200", "gb200", "gb300", "t4g"})
_BARE_METAL = re.compile(r"^BM\.|\.metal\b|bare-?metal|^bm\d|^vbm-", re.IGNORECASE)

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Words = Annotated[tuple[Word, ...], msgspec.Meta(max_length=50)]


class Filters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is looked for. None and an empty tuple mean: no matter.

    Attributes:
        gpu: models in any spelling, one of which is enough; ``A100`` means every A100, ``A100 80GB`` and ``H100 SXM``
            only those.
        gpu_count: GPUs in one machine, at least.
        min_vram_gb: memory per GPU, at least.
        region: country code (``de``), ``eu``, ``us``, ``latam``, or the provider's own name of a region.
        managed: a managed control plane with GPU node pools, or False: GPU machines for a cluster of your own.
        interconnect: between nodes, or ``nvlink`` within one; ``rdma`` takes InfiniBand, RoCE and EFA too.
        shared_storage: ``any`` or ``rwx`` for volumes that several nodes write, or part of a file system's name.
        billing_unit: the coarsest unit that will do.
        commitment: ``none`` is by the hour.
        exclude, providers: ids, names or aliases of providers.
        feature: short names such as ``kueue``, ``drivers_preinstalled``, ``mig``.
        fields: which facts to show; it rules nothing out.
        max_price_usd_hour, max_price_eur_hour: per GPU and hour.
        max_total_usd_hour: per hour, for all nodes together.
        hours_per_month: for monthly prices.
        min_nodes, nodes: GPU machines needed at once; the total price is that of as many.
        currency: that prices are shown in; prices are kept in USD.
    """

    arch: Arch | None = None
    bare_metal: bool | None = None
    billing_unit: BillingUnit | None = None
    commitment: Commitment | None = None
    compliance: Words = ()
    currency: Currency | None = None
    exclude: Words = ()
    feature: Words = ()
    fields: Words = ()
    free_control_plane: bool | None = None
    free_egress: bool | None = None
    gpu: Words = ()
    gpu_count: Count | None = None
    hours_per_month: Annotated[float, msgspec.Meta(gt=0, le=744)] | None = None
    interconnect: LinkKind | None = None
    k8s_version: Word | None = None
    managed: bool | None = None
    max_price_eur_hour: Positive | None = None
    max_price_usd_hour: Positive | None = None
    max_total_usd_hour: Positive | None = None
    min_nodes: Count | None = None
    min_vram_gb: Positive | None = None
    nodes: Count | None = None
    providers: Words = ()
    region: Word | None = None
    scale_to_zero: bool | None = None
    shared_storage: Word | None = None
    sharing: SharingMode | None = None
    sort: Sort | None = None
    spot: bool | None = None
    vendor: GpuVendor | None = None

    @property
    def machines(self) -> int:
        """GPU machines that the total price is for."""
        return self.nodes or self.min_nodes or 1

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "Filters":
        """Filters from plain values, as a question, a URL or a file gives them: a word may stand for a list of one.

        Raises:
            FilterInvalid: a name is unknown, or a value does not fit; it says which would.
        """
        plain: dict[str, object] = {}
        for name, value in values.items():
            if name not in cls.__struct_fields__:
                known = ", ".join(cls.__struct_fields__)
                raise FilterInvalid(name, f"there is no filter {name!r}; there are: {known}")
            if value is None:
                continue
            listed = isinstance(value, str) and name in _LISTS
            plain[name] = [value] if listed else value
        try:
            return msgspec.convert(plain, cls, strict=False)
        except msgspec.ValidationError as error:
            path = re.search(r"`\$\.(\w+)", str(error))
            where = path[1] if path else "filters"
            raise FilterInvalid(where, _expected(where, str(error).split(" - at ", maxsplit=1)[0])) from error


_LISTS = frozenset({"compliance", "exclude", "feature", "fields", "gpu", "providers"})
_CHOICES: dict[str, tuple[str, ...]] = {
    "arch": get_args(Arch),
    "billing_unit": get_args(BillingUnit),
    "commitment": get_args(Commitment),
    "currency": get_args(Currency),
    "interconnect": get_args(LinkKind),
    "sharing": get_args(SharingMode),
    "sort": get_args(Sort),
    "vendor": get_args(GpuVendor),
}


def _expected(name: str, problem: str) -> str:
    choices = _CHOICES.get(name)
    return f"{name}: {problem}" + (f"; it takes {', '.join(choices)}" if choices else "")


class FilterInvalid(InputInvalid):
    """A filter that does not exist, or a value that it cannot have; ``filter`` is its name."""

    code = "filter-invalid"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(problem)
        self.filter = name


class EuroRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per euro, of a day."""

    usd_per_eur: Positive
    as_of: str
    source: str


BUNDLED_RATE = EuroRate(1.1720, "2025-06-30", "European Central Bank, euro reference rates")
"""For where the configuration gives none; every amount in euro says its date."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """An offer with what can be told from its words.

    Attributes:
        model: :func:`~rules.facts.gpu_models.model_key` of the GPU.
        form: None when the list does not tell.
        countries: where it is; None when unknown.
        price_line: the price of one GPU in a list, not a machine that can be ordered under this name.
        government: a region that only authorities can use.
        arch: None when unknown.
    """

    offer: Offer
    model: str | None
    form: Form | None
    vendor: GpuVendor | None
    countries: frozenset[str] | None
    price_line: bool
    bare_metal: bool
    government: bool
    arch: Arch | None


class Catalog(msgspec.Struct, frozen=True, dict=True):
    """Providers and their prices; private providers and contract prices included, where there are any."""

    providers: Mapping[str, Provider]
    book: PriceBook

    @cached_property
    def rows(self) -> Mapping[str, tuple[Row, ...]]:
        """Offers by provider: of each type, region and source kind only those of the newest date."""
        return {provider: tuple(map(_row, _newest(offers))) for provider, offers in self._by_provider.items()}

    @cached_property
    def _by_provider(self) -> dict[str, list[Offer]]:
        index: dict[str, list[Offer]] = {}
        for offer in self.book.offers:
            index.setdefault(offer.provider, []).append(offer)
        return index

    def rows_of(self, provider: str, asked: Iterable["GpuAsked"]) -> Iterable[Row]:
        """Offers of a provider whose GPU may be one that is asked for; all of them when none is."""
        wanted = tuple(asked)
        if not wanted:
            return self.rows.get(provider, ())
        by_model = self._rows_by_model.get(provider, {})
        return [
            row
            for model, rows in by_model.items()
            if any(one.names(model) is not False for one in wanted)
            for row in rows
        ]

    @cached_property
    def _rows_by_model(self) -> dict[str, dict[str | None, list[Row]]]:
        index: dict[str, dict[str | None, list[Row]]] = {}
        for provider, rows in self.rows.items():
            own = index[provider] = {}
            for row in rows:
                own.setdefault(row.model, []).append(row)
        return index

    def models(self, provider: str) -> tuple[str, ...]:
        """GPU models that price lists and documentation name, in alphabetical order; empty when none is known."""
        listed = {offer.gpu_model for offer in self._by_provider.get(provider, ())}
        known = self.providers.get(provider)
        documented = known.gpu_models.models if known and known.gpu_models else ()
        return tuple(sorted(listed | set(documented)))

    def regions(self, provider: str) -> tuple[str, ...]:
        """Regions that price lists and documentation name, in alphabetical order; empty when none is known."""
        listed = {offer.region for offer in self._by_provider.get(provider, ()) if offer.region not in (None, "all")}
        known = self.providers.get(provider)
        documented = known.regions.names if known and known.regions else ()
        return tuple(sorted({str(name) for name in listed} | set(documented)))

    def prices_as_of(self, provider: str) -> tuple[str, str] | None:
        """Oldest and newest date of the provider's prices; None without a dated price."""
        dates = [row.offer.as_of for row in self.rows.get(provider, ()) if row.offer.as_of]
        return (min(dates), max(dates)) if dates else None


def _newest(offers: Iterable[Offer]) -> Iterable[Offer]:
    newest: dict[tuple[str, str | None], list[Offer]] = {}
    for offer in offers:
        kept = newest.setdefault((offer.instance_type, offer.region), [])
        if kept and (offer.as_of or "") > (kept[0].as_of or ""):
            kept.clear()
        if not kept or (offer.as_of or "") == (kept[0].as_of or ""):
            kept.append(offer)
    return (offer for kept in newest.values() for offer in kept)


def _row(offer: Offer) -> Row:
    model, form, vendor = _gpu(offer.gpu_model)
    return Row(
        offer=offer,
        model=model,
        form=form,
        vendor=vendor,
        countries=countries_of(offer.provider, offer.region),
        price_line=_PRICE_LINE.search(offer.instance_type) is not None,
        bare_metal=_BARE_METAL.search(offer.instance_type) is not None,
        government="gov" in (offer.region or ""),
        arch=offer.arch or ("arm64" if model in _ARM else None),
    )


@lru_cache(maxsize=1024)
def _gpu(name: str) -> tuple[str | None, Form | None, GpuVendor | None]:
    return model_key(name), form_of(name), vendor_of(name)


def form_of(name: str) -> Form | None:
    """The form that the name of a GPU tells."""
    found = re.search(r"\b(sxm|pcie|nvl)(?:\d+)?\b", name.lower())
    return found[1] if found else None  # type: ignore[return-value]


def vendor_of(name: str) -> GpuVendor | None:
    """Maker of a GPU by its name; None when the name tells none."""
    lowered = name.lower()
    if re.search(r"\b(radeon|instinct|mi\d{2,3}[xa]?|amd)\b", lowered):
        return "amd"
    if "gaudi" in lowered or "intel" in lowered:
        return "intel"
    if "qualcomm" in lowered:
        return "qualcomm"
    return "nvidia" if model_key(name) is not None or "grid" in lowered else None


class GpuAsked(msgspec.Struct, frozen=True):
    """A model as somebody named it."""

    model: str
    form: Form | None

    def names(self, model: str | None) -> bool | None:
        """Whether a row of this model, whatever its form, is meant; None where it does not tell the memory."""
        if model is None:
            return False
        if model == self.model:
            return True
        wider = self.model.partition(" ")[0] if self.model.startswith(("a100 ", "a800 ", "v100 ")) else None
        if wider is not None and model == wider:
            return None
        return model.startswith(f"{self.model} ") and self.model in ("a100", "a800", "v100")

    def is_(self, row: Row) -> bool | None:
        """Whether a row has this GPU; None where its list does not tell the memory or form that was asked for."""
        named = self.names(row.model)
        if not named:
            return named
        if self.form is None or row.form == self.form:
            return True
        return None if row.form is None else False


def gpu_asked(name: str) -> GpuAsked:
    """A model as people write it (``h100``, ``A100 80GB``, ``4090``).

    Raises:
        FilterInvalid: no GPU is called so.
    """
    key = model_key(name) or model_key(f"rtx {name}") or model_key(f"gtx {name}")
    if key is None:
        raise FilterInvalid("gpu", f"gpu: {name!r} is no GPU model that is known here; write it as in H100 or L40S")
    return GpuAsked(key, form_of(name))
