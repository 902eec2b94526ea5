"""Searching the catalogue: which providers meet the filters, at what price, and what is not documented of each."""

from collections.abc import Callable, Sequence

import msgspec

from rules.facts.offers import BUNDLED_RATE, Catalog, EuroRate, Filters
from rules.facts.offers_checks import checks
from rules.facts.offers_match import Asked, PricedOffer, ProviderMatch, known_provider

__all__ = ["PricedOffer", "ProviderMatch", "SearchResult", "compare", "find_offers", "known_provider", "search"]

_NOTHING = Filters()


class SearchResult(msgspec.Struct, frozen=True):
    """What a search found.

    Attributes:
        matches: providers that meet everything, or everything but what is not documented of them; and where prices or
            machines were asked for, some list shows them. Without an order asked for: fewest unknowns first, then
            on-demand prices before spot prices, then the cheapest.
        unlisted: nothing speaks against them, but no list shows what was asked for.
        ruled_out: a documented fact, or every listed price, speaks against them.
        without_data: filters on which nothing is known of any provider; they ruled nothing out.
        rate: that amounts in euro were reckoned with; None when none was.
        prices_as_of: oldest and newest date of the prices shown: prices of different dates are not quite comparable.
    """

    filters: Filters
    matches: tuple[ProviderMatch, ...]
    unlisted: tuple[ProviderMatch, ...]
    ruled_out: tuple[ProviderMatch, ...]
    without_data: tuple[str, ...]
    rate: EuroRate | None
    prices_as_of: tuple[str, str] | None


def search(catalog: Catalog, filters: Filters, rate: EuroRate = BUNDLED_RATE) -> SearchResult:
    """Every provider under the filters.

    Raises:
        FilterInvalid: a filter names a provider or GPU that does not exist, or no region anybody has.
    """
    asked = Asked(catalog, filters, rate)
    found = [asked.match(provider) for provider in asked.providers()]
    matches: list[ProviderMatch] = []
    unlisted: list[ProviderMatch] = []
    ruled_out: list[ProviderMatch] = []
    for match in found:
        if match.verdict == "fails":
            ruled_out.append(match)
        elif asked.offer_filters and not match.offers and not _documented(match):
            unlisted.append(match)
        else:
            matches.append(match)
    order = _order(filters)
    dates = [one.offer.as_of for match in matches for one in match.offers if one.offer.as_of]
    return SearchResult(
        filters=filters,
        matches=tuple(sorted(matches, key=order)),
        unlisted=tuple(sorted(unlisted, key=order)),
        ruled_out=tuple(sorted(ruled_out, key=order)),
        without_data=tuple(
            dict.fromkeys(
                check.wanted if check.filter == "feature" else check.filter
                for match in found
                for check in match.checks
                if check.reason == "no_data"
            )
        ),
        rate=rate if filters.currency == "eur" or filters.max_price_eur_hour is not None else None,
        prices_as_of=(min(dates), max(dates)) if dates else None,
    )


def find_offers(catalog: Catalog, filters: Filters, rate: EuroRate = BUNDLED_RATE) -> list[PricedOffer]:
    """Every offer that fits, of providers that nothing documented rules out; in the order asked for, else by price.

    Raises:
        FilterInvalid: see :func:`search`.
    """
    asked = Asked(catalog, filters, rate)
    found = [
        offer
        for provider in asked.providers()
        if all(check.verdict != "fails" for check in checks(provider, filters))
        for offer in asked.fitting(provider.id)[0]
    ]
    by_name = filters.sort == "name"
    sign = -1 if filters.sort == "price_desc" else 1

    def key(one: PricedOffer) -> tuple[object, ...]:
        name = (one.offer.provider, one.offer.instance_type, one.offer.region or "", one.purchase)
        price = one.usd_gpu_hour if one.usd_gpu_hour is not None else one.usd_hour
        return name if by_name else (one.usd_gpu_hour is None, sign * (price or 0), *name)

    return sorted(found, key=key)


def compare(
    catalog: Catalog, ids: Sequence[str], filters: Filters = _NOTHING, rate: EuroRate = BUNDLED_RATE
) -> tuple[ProviderMatch, ...]:
    """These providers side by side, in their order, whatever the filters say of them.

    Raises:
        FilterInvalid: one is not known.
    """
    asked = Asked(catalog, filters, rate)
    chosen = {provider.id: provider for provider in (known_provider(catalog, name) for name in ids)}
    return tuple(map(asked.match, chosen.values()))


def _documented(match: ProviderMatch) -> bool:
    """Whether documentation shows what no price list does: every filter of machines and prices is met by it."""
    return all(check.verdict == "meets" for check in match.checks if check.filter in _OF_OFFERS)


_OF_OFFERS = frozenset(
    {"gpu", "vendor", "gpu_count", "min_vram_gb", "region", "arch", "bare_metal", "spot", "commitment"}
    | {"max_price_usd_hour", "max_price_eur_hour", "max_total_usd_hour"}
)


def _order(filters: Filters) -> Callable[[ProviderMatch], tuple[object, ...]]:
    sign = -1 if filters.sort == "price_desc" else 1
    total = filters.nodes is not None or filters.gpu_count is not None or filters.max_total_usd_hour is not None

    def key(match: ProviderMatch) -> tuple[object, ...]:
        if filters.sort == "name":
            return (match.provider.name.lower(),)
        price = match.usd_total_hour if total else match.usd_gpu_hour
        unmet = len(match.not_documented) if filters.sort is None else 0
        spot = filters.spot is None and bool(match.offers) and match.offers[0].purchase == "spot"
        return (unmet, price is None, spot, sign * (price or 0.0), match.provider.id)

    return key
