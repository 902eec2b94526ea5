"""Which providers will do, and what they cost in a month: machines over the hours used, and the control plane's fee."""

import math
import re
from collections.abc import Iterator

import msgspec

from rules.advice.doubt import Usual, a_year_before_the_newest, usual
from rules.advice.model import Choice, Demand, Ranked
from rules.advice.request import AdviceRequest
from rules.facts.offers import BUNDLED_RATE, HOURS_PER_MONTH, Catalog, Filters
from rules.facts.offers_match import Asked, PricedOffer, ProviderMatch
from rules.sharing.model import Remark, SharingPlan

_THIRD_PARTIES = re.compile(r"\((community|marketplace)\b")
_MODES = {"mig": "mig", "mps": "mps", "time-slicing": "time_slicing"}


class _Bill(msgspec.Struct, frozen=True):
    offer: PricedOffer
    machines: int | None
    gpus: float
    usd_hour: float


def wishes(
    request: AdviceRequest, choice: Choice | None = None, demand: Demand | None = None, plan: SharingPlan | None = None
) -> Filters:
    """The filters that a provider must meet; without a choice those that hold whatever it will be."""
    cluster = choice in ("managed", "own", "existing")
    several = (request.nodes or 1) > 1
    modes = {use.mode for use in plan.uses} - {"whole"} if plan else set()
    managed = {"managed": True, "own": False}.get(choice or "", request.managed)
    return Filters.of(
        {
            "gpu": list(demand.gpu) if demand else None,
            "vendor": request.vendor,
            "gpu_count": demand.per_machine if demand and demand.per_machine > 1 else None,
            "region": request.region,
            "billing_unit": request.billing_unit,
            "providers": list(request.providers),
            "exclude": list(request.exclude),
            "managed": managed,
            "interconnect": "rdma" if several and request.kind == "training" else None,
            "shared_storage": "rwx"
            if request.storage == "shared" or (several and request.kind == "training")
            else None,
            "sharing": _MODES[min(modes)] if cluster and modes else None,
            "scale_to_zero": True if request.scale_to_zero and cluster else None,
            "feature": ["gang_scheduling"] if several and request.kind == "training" and cluster else [],
        }
    )


def rank(
    request: AdviceRequest, catalog: Catalog, filters: Filters, demand: Demand, *, fee: bool, hours: float
) -> tuple[list[Ranked], list[Ranked]]:
    """Providers that nothing rules out, in order, and those that something does.

    Args:
        fee: whether the provider's control plane is used.
    """
    ordinary = Asked(catalog, msgspec.structs.replace(filters, spot=False), BUNDLED_RATE)
    spot = Asked(catalog, msgspec.structs.replace(filters, spot=True), BUNDLED_RATE) if request.interruptible else None
    plain = Asked(catalog, filters, BUNDLED_RATE)
    found, out = [], []
    for provider in plain.providers():
        match = plain.match(provider)
        if match.verdict == "fails":
            out.append(_ranked(request, match, None, (), fee=fee, hours=hours))
            continue
        offers = list(ordinary.fitting(provider.id)[0])
        if spot is not None and not (provider.spot and provider.spot.available is False):
            offers += spot.fitting(provider.id)[0]
        found.append((match, offers))
    known = usual((one for _, offers in found for one in offers), a_year_before_the_newest(catalog))
    kept = []
    for match, offers in found:
        bill = _cheapest(request, offers, demand, known)
        if bill is None and (not match.offers or request.marketplace is False) and _unlisted(match):
            continue
        doubts = tuple(known.doubts(bill.offer)) if bill else ()
        kept.append(_ranked(request, match, bill, doubts, fee=fee, hours=hours))
    kept.sort(key=_order)
    return _told_apart(kept), out


def _order(one: Ranked) -> tuple[object, ...]:
    return (
        one.offer is None,
        len(one.unknown) + len(one.doubts),
        one.usd_month is None,
        one.usd_month or 0.0,
        one.provider.id,
    )


def _unlisted(match: ProviderMatch) -> bool:
    """Nothing shows that it has such machines at all."""
    about = [check for check in match.checks if check.filter in ("gpu", "vendor")]
    return any(check.verdict == "unknown" for check in about) or not about


def _cheapest(request: AdviceRequest, offers: list[PricedOffer], demand: Demand, known: Usual) -> _Bill | None:
    bills = [bill for offer in offers if (bill := _bill(request, offer, demand)) is not None]
    return min(bills, key=lambda bill: _doubt(bill, known), default=None)


def _doubt(bill: _Bill, known: Usual) -> tuple[object, ...]:
    offer = bill.offer
    name = (offer.offer.instance_type, offer.offer.region or "")
    return (len(offer.unknown) + len(list(known.doubts(offer))), bill.usd_hour, bill.gpus, *name)


def _bill(request: AdviceRequest, offer: PricedOffer, demand: Demand) -> _Bill | None:
    if request.marketplace is False and _THIRD_PARTIES.search(offer.offer.instance_type):
        return None
    if offer.price_line:
        if offer.usd_gpu_hour is None:
            return None
        return _Bill(offer, None, demand.gpus, offer.usd_gpu_hour * demand.gpus)
    count, price = offer.offer.gpu_count, offer.offer.price_usd_hour
    if offer.purchase == "spot":
        price = offer.offer.spot_price_usd_hour
    if price is None or count is None or count < demand.per_machine:
        return None
    machines = demand.machines or math.ceil(demand.gpus / count)
    return _Bill(offer, machines, machines * count, machines * price)


def _ranked(
    request: AdviceRequest,
    match: ProviderMatch,
    bill: _Bill | None,
    doubts: tuple[str, ...],
    *,
    fee: bool,
    hours: float,
) -> Ranked:
    of_cluster = match.control_plane_usd_hour if fee else None
    fee_month = None if of_cluster is None else of_cluster * HOURS_PER_MONTH
    machines_month = bill.usd_hour * hours if bill else None
    month = None if machines_month is None else machines_month + (fee_month or 0.0)
    limit = limit_of(request, hours)
    over = month - limit if month is not None and limit is not None and month > limit else None
    ranked = Ranked(
        provider=match.provider,
        checks=match.checks,
        offer=bill.offer if bill else None,
        machines=bill.machines if bill else None,
        gpus=bill.gpus if bill else None,
        usd_hour=bill.usd_hour if bill else None,
        machines_usd_month=machines_month,
        fee_usd_month=fee_month,
        fee_unknown=fee and of_cluster is None,
        usd_month=month,
        doubts=doubts,
        over_budget_usd=over,
        reasons_for=(),
        reasons_against=(),
    )
    return msgspec.structs.replace(
        ranked, reasons_for=tuple(_for(ranked, fee=fee)), reasons_against=tuple(_against(ranked))
    )


def limit_of(request: AdviceRequest, hours: float) -> float | None:
    """The budget of a month; the tighter one where there are two."""
    limits = [request.budget_usd_month]
    if request.budget_usd_hour is not None:
        limits.append(request.budget_usd_hour * hours)
    return min((limit for limit in limits if limit is not None), default=None)


def _for(ranked: Ranked, *, fee: bool) -> Iterator[Remark]:
    provider = ranked.provider
    if ranked.checks and not ranked.unknown:
        yield Remark(key="meets_all")
    if ranked.offer and ranked.offer.purchase == "contract":
        yield Remark(key="contract_price")
    if fee and ranked.fee_usd_month == 0:
        yield Remark(key="no_fee")
    if provider.drivers and provider.drivers.model in ("preinstalled_image", "gpu_operator_managed"):
        yield Remark(key="drivers_come")
    if provider.billing and provider.billing.unit in ("second", "minute"):
        yield Remark(key=f"billed_by_{provider.billing.unit}")


def _against(ranked: Ranked) -> Iterator[Remark]:
    offer = ranked.offer
    if offer is None:
        yield Remark(key="no_price")
    for doubt in ranked.doubts:
        yield Remark(key=doubt)
    if offer is not None and offer.purchase == "spot":
        notice = ranked.provider.spot.notice_seconds if ranked.provider.spot else None
        yield Remark(key="spot_notice", values={"seconds": notice}) if notice else Remark(key="spot_notice_unknown")
    if ranked.fee_unknown:
        yield Remark(key="fee_unknown")
    if ranked.over_budget_usd is not None:
        yield Remark(key="over_budget", values={"usd": ranked.over_budget_usd})
    if ranked.provider.drivers and ranked.provider.drivers.model == "self_install":
        yield Remark(key="drivers_yours")


def cheapest(kept: list[Ranked]) -> Ranked | None:
    """The one with the lowest price of a month that is not doubtful; a doubtful one where there is no other."""
    priced = [one for one in kept if one.usd_month is not None]
    return min(priced, key=lambda one: (bool(one.doubts), one.usd_month or 0.0, one.provider.id), default=None)


def _told_apart(kept: list[Ranked]) -> list[Ranked]:
    """The cheapest is named, wherever in the order it stands."""
    least = cheapest(kept)
    if least is None:
        return kept
    said = msgspec.structs.replace(least, reasons_for=(Remark(key="cheapest"), *least.reasons_for))
    return [said if one is least else one for one in kept]
