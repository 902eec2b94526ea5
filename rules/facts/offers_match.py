"""One provider under the filters of a search: its machines that fit, at what price, and how every filter comes out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from rules.facts.offers import HOURS_PER_MONTH, Catalog, EuroRate, FilterInvalid, Filters, GpuAsked, Row, gpu_asked
from rules.facts.offers_checks import Check, Reason, Verdict, checks
from rules.facts.offers_regions import countries_of, in_area, is_place
from rules.facts.prices import Offer
from rules.facts.providers import Provider, find_provider

Purchase = Literal["on_demand", "spot", "contract"]
_EXAMPLES = 5
"""Cheapest offers that a match carries."""


class PricedOffer(msgspec.Struct, frozen=True):
    """An offer with the price that the search is about.

    Attributes:
        usd_hour: of the whole machine; of a price line (see :class:`~rules.facts.offers.Row`) times the GPUs wanted.
        usd_gpu_hour: per GPU; None when the number of GPUs is unknown.
        usd_total_hour: for all machines wanted.
        price_line: the price of a GPU in a list; that a machine with so many exists is not said.
        unknown: filters of the offer's own on which its list says nothing.
    """

    offer: Offer
    purchase: Purchase
    usd_hour: float | None
    usd_gpu_hour: float | None
    usd_total_hour: float | None
    price_line: bool
    unknown: tuple[str, ...] = ()


class ProviderMatch(msgspec.Struct, frozen=True):
    """A provider under a search.

    Attributes:
        checks: every filter, and how it came out.
        offers: cheapest first, those that fit the filters; at most five.
        offers_found: how many fit.
        usd_gpu_hour, usd_total_hour, usd_month: of the cheapest offer; None without a price.
        control_plane_usd_hour: fee per cluster; None when it is not documented.
    """

    provider: Provider
    checks: tuple[Check, ...]
    offers: tuple[PricedOffer, ...]
    offers_found: int
    usd_gpu_hour: float | None
    usd_total_hour: float | None
    usd_month: float | None
    control_plane_usd_hour: float | None

    @property
    def not_documented(self) -> tuple[str, ...]:
        """Filters that nothing is documented on."""
        return tuple(check.filter for check in self.checks if check.verdict == "unknown")

    @property
    def verdict(self) -> Verdict:
        """``meets`` when all filters are met, ``fails`` when one is not, else ``unknown``."""
        verdicts = {check.verdict for check in self.checks}
        return "fails" if "fails" in verdicts else "unknown" if "unknown" in verdicts else "meets"


def known_provider(catalog: Catalog, name: str) -> Provider:
    """The provider of an id, name or alias.

    Raises:
        FilterInvalid: there is none.
    """
    provider = find_provider(name, catalog.providers)
    if provider is None:
        raise FilterInvalid("providers", f"there is no provider {name!r}; `gpu-advisor providers` lists them")
    return provider


class Asked:
    """The filters, made ready for use on thousands of rows."""

    def __init__(self, catalog: Catalog, filters: Filters, rate: EuroRate) -> None:
        self.catalog = catalog
        self.filters = filters
        self.models = tuple(map(gpu_asked, filters.gpu))
        self.only = tuple(known_provider(catalog, name).id for name in filters.providers)
        self.without = frozenset(known_provider(catalog, name).id for name in filters.exclude)
        self.region = filters.region.lower() if filters.region else None
        self.limit = filters.max_price_usd_hour
        if filters.max_price_eur_hour is not None:
            euro = filters.max_price_eur_hour * rate.usd_per_eur
            self.limit = euro if self.limit is None else min(self.limit, euro)
        self.by_machine = filters.gpu_count is not None or filters.nodes is not None
        self.tests = tuple(self._tests())
        if self.region and not is_place(self.region) and not self._anybody_has(self.region):
            raise FilterInvalid(
                "region",
                f"region: {filters.region!r} is neither a country code (de), eu, us, latam, nor a region of a provider",
            )

    @property
    def offer_filters(self) -> bool:
        """Whether the filters are about machines and prices, and not only about providers."""
        return bool(self.tests) or self.filters.spot is not None or self._priced

    @property
    def _priced(self) -> bool:
        return self.limit is not None or self.filters.max_total_usd_hour is not None

    def providers(self) -> Iterator[Provider]:
        """Those that the filters name, else all but those that they exclude."""
        chosen = self.only or tuple(self.catalog.providers)
        return (self.catalog.providers[name] for name in chosen if name not in self.without)

    def match(self, provider: Provider) -> ProviderMatch:
        """How one provider comes out."""
        fitting, too_dear = self.fitting(provider.id)
        fitting.sort(key=self._price_key)
        best = fitting[0] if fitting else None
        hours = self.filters.hours_per_month or HOURS_PER_MONTH
        total = best.usd_total_hour if best else None
        return ProviderMatch(
            provider=provider,
            checks=(*checks(provider, self.filters), *self._offer_checks(provider, fitting, too_dear)),
            offers=tuple(fitting[:_EXAMPLES]),
            offers_found=len(fitting),
            usd_gpu_hour=best.usd_gpu_hour if best else None,
            usd_total_hour=total,
            usd_month=None if total is None else total * hours,
            control_plane_usd_hour=provider.control_plane.fee_usd_hour if provider.control_plane else None,
        )

    def fitting(self, provider: str) -> tuple[list[PricedOffer], float | None]:
        """Offers that fit, and, where the price keeps all others out, the lowest price that is too high."""
        found: list[PricedOffer] = []
        too_dear: float | None = None
        for row in self.catalog.rows_of(provider, self.models):
            unknown = self._fits(row)
            if unknown is None:
                continue
            for purchase, price in self._prices(row):
                priced = self._priced_offer(row, purchase, price, unknown)
                over = self._over(priced)
                if over is None:
                    found.append(priced)
                else:
                    too_dear = over if too_dear is None else min(too_dear, over)
        return found, too_dear

    def _fits(self, row: Row) -> tuple[str, ...] | None:
        """The filters that the row says nothing on; None when it does not fit one."""
        if row.government and (self.region is None or "gov" not in self.region):
            return None
        unknown: list[str] = []
        for name, test in self.tests:
            fits = test(row)
            if fits is False:
                return None
            if fits is None:
                unknown.append(name)
        return tuple(unknown)

    def _tests(self) -> Iterator[tuple[str, Callable[[Row], bool | None]]]:
        filters = self.filters
        if self.models:
            yield "gpu", lambda row: _any(model.is_(row) for model in self.models)
        if filters.vendor:
            yield "vendor", lambda row: None if row.vendor is None else row.vendor == filters.vendor
        if filters.gpu_count:
            count = filters.gpu_count
            yield "gpu_count", lambda row: _enough(row, count)
        if filters.min_vram_gb:
            least = filters.min_vram_gb
            yield "min_vram_gb", lambda row: _at_least(row.offer.gpu_memory_gib, least)
        if self.region:
            yield "region", self._in_region
        if filters.arch:
            yield "arch", lambda row: None if row.arch is None else row.arch == filters.arch
        if filters.bare_metal is not None:
            yield "bare_metal", lambda row: filters.bare_metal if row.bare_metal else None
        if filters.commitment not in (None, "none"):
            yield "commitment", lambda _: None

    def _in_region(self, row: Row) -> bool | None:
        region = row.offer.region
        if region is not None and region.lower() == self.region:
            return True
        if self.region is None or not is_place(self.region):
            return None if region is None else False
        return in_area(row.countries, self.region)

    def _anybody_has(self, region: str) -> bool:
        return any(
            region == name.lower() for provider in self.catalog.providers for name in self.catalog.regions(provider)
        )

    def _prices(self, row: Row) -> Iterator[tuple[Purchase, float | None]]:
        offer, spot = row.offer, self.filters.spot
        own: Purchase = "contract" if offer.contract else "on_demand"
        if spot is True:
            if offer.spot_price_usd_hour is not None:
                yield "spot", offer.spot_price_usd_hour
        elif offer.price_usd_hour is not None:
            yield own, offer.price_usd_hour
        elif spot is None and offer.spot_price_usd_hour is not None:
            yield "spot", offer.spot_price_usd_hour
        elif not self._priced and offer.spot_price_usd_hour is None:
            yield own, None

    def _priced_offer(self, row: Row, purchase: Purchase, price: float | None, unknown: tuple[str, ...]) -> PricedOffer:
        gpus = row.offer.gpu_count
        per_gpu = price / gpus if price is not None and gpus else None
        machine = price
        if row.price_line and per_gpu is not None and self.filters.gpu_count:
            machine = per_gpu * self.filters.gpu_count
        total = None if machine is None else machine * self.filters.machines
        return PricedOffer(row.offer, purchase, machine, per_gpu, total, row.price_line, unknown)

    def _price_key(self, one: PricedOffer) -> tuple[object, ...]:
        """Certain fits first, what can be kept before what may be taken away, then the cheapest."""
        price = one.usd_total_hour if self.by_machine or one.usd_gpu_hour is None else one.usd_gpu_hour
        offer = one.offer
        return (
            len(one.unknown),
            one.purchase == "spot",
            price is None,
            one.usd_gpu_hour is None,
            price or 0.0,
            one.price_line,
            offer.instance_type,
            offer.region or "",
        )

    def _over(self, one: PricedOffer) -> float | None:
        """The price that breaks a limit; None when none does."""
        if self.limit is not None:
            price = one.usd_gpu_hour if one.usd_gpu_hour is not None else one.usd_hour
            if price is not None and price > self.limit:
                return price
        most = self.filters.max_total_usd_hour
        return one.usd_total_hour if most is not None and (one.usd_total_hour or 0) > most else None

    def _offer_checks(
        self, provider: Provider, found: Sequence[PricedOffer], too_dear: float | None
    ) -> Iterator[Check]:
        for name, _ in self.tests:
            yield self._listed(provider, name, found, too_dear)
        if self.filters.spot is not None:
            yield self._spot(provider, found)
        for name in ("max_price_usd_hour", "max_price_eur_hour", "max_total_usd_hour"):
            wanted = getattr(self.filters, name)
            if wanted is None:
                continue
            if found:
                yield Check(name, f"{wanted:g}", "meets", "price")
            elif too_dear is not None:
                yield Check(name, f"{wanted:g}", "fails", "price", f"{too_dear:.2f} USD/h")
            else:
                yield Check(name, f"{wanted:g}", "unknown", "no_price")
        if self.filters.commitment == "none":
            yield Check("commitment", "none", "meets" if found else "unknown", "listed" if found else "no_price")

    def _listed(self, provider: Provider, name: str, found: Sequence[PricedOffer], too_dear: float | None) -> Check:
        """Whether a list shows machines that fit; a dear one shows them too."""
        wanted = getattr(self.filters, name)
        text = ", ".join(wanted) if isinstance(wanted, tuple) else str(wanted).lower()
        if name == "commitment":
            return Check(name, text, "unknown", "no_data")
        if any(name not in one.unknown for one in found) or (not found and too_dear is not None):
            return Check(name, text, "meets", "listed")
        if name == "gpu" and self._documented_gpu(provider):
            return Check(name, text, "meets", "documented", None, "gpu_models")
        if name == "vendor" and provider.amd is not None and wanted == "amd":
            return Check(name, text, "meets" if provider.amd.available else "fails", "documented", None, "amd")
        if name == "region" and self._documented_region(provider):
            # documentation that names regions does not say which of them have the GPU
            alone = not self.filters.gpu and not self.filters.vendor
            return Check(
                name, text, *(("meets", "documented") if alone else ("unknown", "not_documented")), None, "regions"
            )
        reason: Reason = "not_listed" if self.catalog.rows.get(provider.id) and not found else "not_documented"
        return Check(name, text, "unknown", reason)

    def _spot(self, provider: Provider, found: Sequence[PricedOffer]) -> Check:
        wanted = "true" if self.filters.spot else "false"
        if not self.filters.spot:
            ordinary = any(one.purchase != "spot" for one in found)
            return Check("spot", wanted, "meets" if ordinary else "unknown", "listed" if ordinary else "no_price")
        available = provider.spot.available if provider.spot else None
        if available is not None and (available or not found):
            return Check("spot", wanted, "meets" if available else "fails", "documented", None, "spot")
        priced = any(one.purchase == "spot" for one in found)
        return Check("spot", wanted, "meets" if priced else "unknown", "listed" if priced else "not_documented")

    def _documented_gpu(self, provider: Provider) -> bool:
        names = provider.gpu_models.models if provider.gpu_models else ()
        return any(model.model == other.model for model in self.models for name in names if (other := _known(name)))

    def _documented_region(self, provider: Provider) -> bool:
        names = provider.regions.names if provider.regions else ()
        wanted = self.region or ""
        return any(name.lower() == wanted or in_area(countries_of(provider.id, name), wanted) for name in names)


def _known(name: str) -> GpuAsked | None:
    try:
        return gpu_asked(name)
    except FilterInvalid:
        return None


def _any(fits: Iterable[bool | None]) -> bool | None:
    unknown = False
    for one in fits:
        if one:
            return True
        unknown = unknown or one is None
    return None if unknown else False


def _enough(row: Row, count: int) -> bool | None:
    if row.price_line or row.offer.gpu_count is None:
        return None
    return row.offer.gpu_count >= count


def _at_least(memory: float | None, least: float) -> bool | None:
    # lists round 141 GB to 140 and 80 GB to 79.6; half a per cent is no smaller GPU
    return None if memory is None else memory >= least * 0.99
