"""Is a fetched catalogue to be believed? A source that is half broken must not take good prices away."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from rules.facts.gpu_models import model_key
from rules.facts.prices import Offer, median

LEAST_TYPES = 0.5
LEAST_SHARED = 0.2
MOST_CHANGE = 2.0
MOST_CHANGE_OF_BUNDLED = 3.0

_Key = TypeVar("_Key")


def doubt(new: Sequence[Offer], fetched: Sequence[Offer], bundled: Sequence[Offer] = ()) -> str | None:
    """Why ``new`` is not believed; None when it is.

    Doubted are an empty catalogue; one that lost more than half of the machine types, or nearly all of the known ones;
    and one whose middle price doubled or halved. Before the first fetch only GPU models can be compared, since bundled
    lists may name machines otherwise, and they are older: prices per GPU may have changed by a factor of three.

    Args:
        fetched: what was fetched before; empty the first time.
        bundled: offers of the provider that come with the package.
    """
    if not new:
        return "it holds no GPU machine"
    if not fetched:
        return _against_bundled(new, bundled)
    names_new = {offer.instance_type for offer in new}
    names_old = {offer.instance_type for offer in fetched}
    if len(names_new) < LEAST_TYPES * len(names_old):
        return f"it holds {len(names_new)} machine types; the one before held {len(names_old)}"
    shared = names_new & names_old
    if len(shared) < LEAST_SHARED * len(names_old):
        return f"it knows {len(shared)} of the {len(names_old)} machine types of the one before"
    change = _change(_by_machine(new), _by_machine(fetched))
    if change is not None and not 1 / MOST_CHANGE <= change <= MOST_CHANGE:
        return f"its prices are {change:.2f} times those of the one before"
    return None


def _against_bundled(new: Sequence[Offer], bundled: Sequence[Offer]) -> str | None:
    change = _change(_by_model(new), _by_model(bundled))
    if change is not None and not 1 / MOST_CHANGE_OF_BUNDLED <= change <= MOST_CHANGE_OF_BUNDLED:
        return f"its prices per GPU are {change:.2f} times the bundled ones"
    return None


def _by_machine(offers: Iterable[Offer]) -> dict[tuple[str, str | None], float]:
    return {(offer.instance_type, offer.region): offer.price_usd_hour for offer in offers if offer.price_usd_hour}


def _by_model(offers: Iterable[Offer]) -> dict[str, float]:
    prices: dict[str, list[float]] = {}
    for offer in offers:
        key = model_key(offer.gpu_model)
        if key is not None and offer.price_usd_hour and offer.gpu_count:
            prices.setdefault(key, []).append(offer.price_usd_hour / offer.gpu_count)
    return {key: median(found) for key, found in prices.items()}


def _change(new: Mapping[_Key, float], old: Mapping[_Key, float]) -> float | None:
    """Middle of new price over old, of what both have; None when there is nothing."""
    ratios = [price / old[key] for key, price in new.items() if key in old]
    return median(ratios) if ratios else None
