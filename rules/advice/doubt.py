"""Prices that are not to be taken at their word: old ones, and those far below what others ask for the same GPU.

Lists collect marketplace bids, slips and offers of long ago. Such a price is shown, with its doubt, and never decides.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from rules.facts.offers import Catalog
from rules.facts.offers_match import PricedOffer
from rules.facts.prices import median

LOW = 0.4
"""Below this share of the median a price is taken for a slip or a bid."""


class Usual(msgspec.Struct, frozen=True):
    """What is usual.

    Attributes:
        per_gpu: median over providers by purchase, per GPU-hour.
        since: ISO date; a year before the newest price of the catalogue. Empty: no price has a date.
    """

    per_gpu: Mapping[str, float]
    since: str

    def doubts(self, one: PricedOffer) -> Iterator[str]:
        """``price_line``, ``price_old`` and ``price_low``, as far as they apply."""
        if one.price_line:
            yield "price_line"
        date = one.offer.as_of or one.offer.read
        if date is not None and date < self.since:
            yield "price_old"
        usual = self.per_gpu.get(one.purchase)
        comparable = usual is not None and one.purchase != "contract" and one.usd_gpu_hour is not None
        if comparable and (one.usd_gpu_hour or 0.0) < (usual or 0.0) * LOW:
            yield "price_low"


def usual(offers: Iterable[PricedOffer], since: str) -> Usual:
    """What these offers of alike GPUs usually cost: every provider counts once, with its lowest price."""
    least: dict[tuple[str, str], float] = {}
    for one in offers:
        if one.usd_gpu_hour:
            of_provider = (one.purchase, one.offer.provider)
            least[of_provider] = min(one.usd_gpu_hour, least.get(of_provider, one.usd_gpu_hour))
    amounts: dict[str, list[float]] = {}
    for (purchase, _), amount in least.items():
        amounts.setdefault(purchase, []).append(amount)
    return Usual({purchase: median(found) for purchase, found in amounts.items()}, since)


def a_year_before_the_newest(catalog: Catalog) -> str:
    """The catalogue's own sense of time: its newest price, less a year."""
    newest = max((offer.as_of or offer.read or "" for offer in catalog.book.offers), default="")
    return f"{int(newest[:4]) - 1}{newest[4:]}" if newest else ""
