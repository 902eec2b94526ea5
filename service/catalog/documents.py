"""Providers and offers as the API and the command line show them; every price with its age and origin."""

from datetime import date

import msgspec

from rules.facts.offers import Catalog, EuroRate, Filters
from rules.facts.offers_checks import Check, Reason, Verdict
from rules.facts.offers_match import PricedOffer, ProviderMatch, Purchase
from rules.facts.offers_regions import countries_of
from rules.facts.offers_search import SearchResult
from rules.facts.providers import KubernetesMode, Provider
from rules.facts.providers_shown import fact_rows, verdict_text
from rules.language import Language


class FactDocument(msgspec.Struct, frozen=True):
    """One fact. `known` is false where it is not documented; `text` says so then. `dated` says what `as_of` is the
    date of: the source, or the day it was read. `note` is English."""

    field: str
    label: str
    text: str
    known: bool
    note: str | None
    sources: list[str]
    as_of: str | None
    dated: str | None
    confidence: str | None


class CheckDocument(msgspec.Struct, frozen=True):
    """How one filter came out. `unknown` is not "no"; `found` is what is documented."""

    filter: str
    wanted: str
    verdict: Verdict
    reason: Reason
    found: str | None
    text: str


class OfferDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An offer and its price.

    Attributes:
        region: null when the list gives none; `all` when the price is the same everywhere.
        countries: where that is; null when unknown.
        purchase: contract, on_demand or spot.
        usd_hour: of the whole machine. usd_gpu_hour: per GPU. usd_total_hour: of all machines asked for.
        eur_gpu_hour, eur_total_hour: with the `rate` of the answer; null unless euro were asked for.
        price_line: a price per GPU in a list; that such a machine exists is not said.
        not_documented: filters on which the list says nothing.
        as_of: date of the price; null when its list has none. age_days: since then.
        read: when such a list was read: the price is that old at least.
        source: where it was read.
    """

    provider: str
    instance_type: str
    region: str | None
    countries: list[str] | None
    gpu_model: str
    gpu_count: float | None
    gpu_memory_gib: float | None
    vcpus: float | None
    memory_gib: float | None
    arch: str | None
    purchase: Purchase
    usd_hour: float | None
    usd_gpu_hour: float | None
    usd_total_hour: float | None
    eur_gpu_hour: float | None
    eur_total_hour: float | None
    price_line: bool
    not_documented: list[str]
    as_of: str | None
    age_days: int | None
    read: str | None
    source: str


class ProviderDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A provider under the filters.

    Attributes:
        private: of the team's own settings.
        kubernetes: managed, own, both, none; null when not documented.
        verdict: meets, fails, or unknown where something is not documented.
        not_documented: those filters: ask the provider.
        usd_gpu_hour, usd_total_hour, usd_month: of the first offer; null without a price. The control plane is extra.
        control_plane_usd_hour: per cluster; null when not documented.
        offers: the first five of `offers_found` that fit.
        facts: those asked for by `fields`; all of them for a single provider and in a comparison.
    """

    id: str
    name: str
    private: bool
    kubernetes: KubernetesMode | None
    product: str | None
    verdict: Verdict
    checks: list[CheckDocument]
    not_documented: list[str]
    usd_gpu_hour: float | None
    usd_total_hour: float | None
    usd_month: float | None
    control_plane_usd_hour: float | None
    prices_as_of: list[str] | None
    offers_found: int
    offers: list[OfferDocument]
    facts: list[FactDocument]


class RateDocument(msgspec.Struct, frozen=True):
    """The exchange rate that euro were reckoned with."""

    usd_per_eur: float
    as_of: str
    source: str


class ProviderSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Providers under filters.

    Attributes:
        items: those that meet everything, or all but what is not documented of them.
        unlisted: nothing speaks against them, but no price list shows what was asked for; that proves nothing.
        ruled_out: a documented fact or every listed price speaks against them.
        without_data: filters on which nothing is known of any provider; they ruled nothing out.
        rate: null unless euro were asked for.
        prices_as_of: oldest and newest date of the prices shown; prices of different dates are not quite comparable.
    """

    items: list[ProviderDocument]
    unlisted: list[ProviderDocument]
    ruled_out: list[ProviderDocument]
    without_data: list[str]
    rate: RateDocument | None
    prices_as_of: list[str] | None


def search_document(catalog: Catalog, result: SearchResult, language: Language, today: date) -> ProviderSearch:
    """A search in the words of ``language``."""

    def shown(match: ProviderMatch) -> ProviderDocument:
        fields = result.filters.fields
        return provider_document(catalog, match, language, today, fields=fields, rate=result.rate)

    return ProviderSearch(
        items=[shown(match) for match in result.matches],
        unlisted=[shown(match) for match in result.unlisted],
        ruled_out=[shown(match) for match in result.ruled_out],
        without_data=list(result.without_data),
        rate=rate_document(result.rate),
        prices_as_of=list(result.prices_as_of) if result.prices_as_of else None,
    )


def rate_document(rate: EuroRate | None) -> RateDocument | None:
    """The exchange rate, where there is one."""
    return RateDocument(rate.usd_per_eur, rate.as_of, rate.source) if rate else None


def rate_of(filters: Filters, rate: EuroRate) -> EuroRate | None:
    """The rate where the filters are about euro."""
    return rate if filters.currency == "eur" or filters.max_price_eur_hour is not None else None


def provider_document(
    catalog: Catalog,
    match: ProviderMatch,
    language: Language,
    today: date,
    *,
    fields: tuple[str, ...] | None = None,
    rate: EuroRate | None = None,
) -> ProviderDocument:
    """A match in the words of ``language``.

    Args:
        fields: the facts to show; None for all, an empty tuple for none.
    """
    provider = match.provider
    dates = catalog.prices_as_of(provider.id)
    rows = [] if fields == () else facts_document(catalog, provider, language, fields or ())
    return ProviderDocument(
        id=provider.id,
        name=provider.name,
        private=provider.private,
        kubernetes=provider.kubernetes.mode if provider.kubernetes else None,
        product=provider.kubernetes.product if provider.kubernetes else None,
        verdict=match.verdict,
        checks=[check_document(check, language) for check in match.checks],
        not_documented=list(match.not_documented),
        usd_gpu_hour=match.usd_gpu_hour,
        usd_total_hour=match.usd_total_hour,
        usd_month=match.usd_month,
        control_plane_usd_hour=match.control_plane_usd_hour,
        prices_as_of=list(dates) if dates else None,
        offers_found=match.offers_found,
        offers=[offer_document(offer, today, rate) for offer in match.offers],
        facts=rows,
    )


def facts_document(
    catalog: Catalog, provider: Provider, language: Language, fields: tuple[str, ...] = ()
) -> list[FactDocument]:
    """Facts of a provider in the words of ``language``."""
    return [
        FactDocument(
            row.field,
            row.label,
            row.text,
            row.known,
            row.note,
            list(row.sources),
            row.as_of,
            row.dated,
            row.confidence,
        )
        for row in fact_rows(catalog, provider, language, fields)
    ]


def check_document(check: Check, language: Language) -> CheckDocument:
    """A filter's outcome in the words of ``language``."""
    text = verdict_text(check, language)
    return CheckDocument(check.filter, check.wanted, check.verdict, check.reason, check.found, text)


def offer_document(priced: PricedOffer, today: date, rate: EuroRate | None = None) -> OfferDocument:
    """An offer with its price."""
    offer = priced.offer
    countries = countries_of(offer.provider, offer.region)
    return OfferDocument(
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=offer.region,
        countries=sorted(countries) if countries is not None else None,
        gpu_model=offer.gpu_model,
        gpu_count=offer.gpu_count,
        gpu_memory_gib=offer.gpu_memory_gib,
        vcpus=offer.vcpus,
        memory_gib=offer.memory_gib,
        arch=offer.arch,
        purchase=priced.purchase,
        usd_hour=priced.usd_hour,
        usd_gpu_hour=priced.usd_gpu_hour,
        usd_total_hour=priced.usd_total_hour,
        eur_gpu_hour=_euro(priced.usd_gpu_hour, rate),
        eur_total_hour=_euro(priced.usd_total_hour, rate),
        price_line=priced.price_line,
        not_documented=list(priced.unknown),
        as_of=offer.as_of,
        age_days=age_days(offer.as_of, today),
        read=offer.read,
        source=offer.source,
    )


def _euro(usd: float | None, rate: EuroRate | None) -> float | None:
    return None if usd is None or rate is None else round(usd / rate.usd_per_eur, 4)


def age_days(as_of: str | None, today: date) -> int | None:
    """Days since an ISO date; None when it is unknown or no whole date."""
    try:
        return (today - date.fromisoformat(as_of)).days if as_of else None
    except ValueError:
        return None
