"""GPU nodes of which most GPUs are paid for and not requested.

Only nodes whose units are whole cards are judged, and only what is requested: use is not in the API. A quarter is the
limit of the topic; a day leaves out nodes between two jobs.
"""

from collections.abc import Iterator
from functools import cache

import msgspec

from rules.checks._kit import Value, age, found, gpus, holders, names, note, of
from rules.checks._workloads import serves
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.gpu_models import model_key
from rules.facts.prices import Offer, Price, bundled
from rules.findings import Cost, Finding, Severity

SHARE = 0.25
LONG_SECONDS = 24 * 3600
EXPENSIVE_USD_HOUR = 10.0


class Small(msgspec.Struct, frozen=True):
    """A large node with small requests.

    Attributes:
        pods: that hold GPUs of it.
        used, cards: GPUs requested and there.
        smaller: an instance type of the provider with fewer of the same GPU that would do; None when none is listed.
        serving: whether all of the pods serve.
        cost: of the GPUs that nobody requests.
    """

    node: NodeFacts
    pods: tuple[PodFacts, ...]
    used: int
    cards: int
    smaller: str | None
    serving: bool
    cost: Cost


def oversized(facts: ClusterFacts) -> Iterator[Small]:
    """Ready nodes older than a day of whose cards a quarter at most, and at least one, is requested. Machines without a
    price are left out: nobody can rent a smaller one of what they own."""
    for node in facts.gpu_nodes:
        pods, cards = holders(node), node.physical_gpus or 0
        used = sum(item.requested for item in node.resources)
        if node.ready is not True or cards < 2 or not 0 < used <= cards * SHARE or not _whole(node):
            continue
        if (
            node.price is None
            or (age(facts, node.since) or 0) < LONG_SECONDS
            or any(not pod.gpu_requests for pod in pods)
        ):
            continue
        serving = all(serves(facts, pod) for pod in pods)
        smaller = _smaller(node.provider, node.product, node.gpu_memory_mib, used, cards)
        yield Small(node, pods, used, cards, smaller, serving, _cost(node.price, (cards - used) / cards))


def _whole(node: NodeFacts) -> bool:
    """Whether every unit that the node offers is a whole card."""
    offered = [item for item in node.resources if item.allocatable]
    whole = all(item.form == "device" for item in offered)
    return (
        whole
        and node.sharing.mode in (None, "none")
        and sum(item.capacity or 0 for item in offered) == node.physical_gpus
    )


def _cost(price: Price, unused: float) -> Cost:
    return Cost(round(price.usd_hour * unused, 4), None, price.basis, price.as_of, price.source)


@cache
def _smaller(provider: str | None, product: str | None, memory_mib: int | None, used: int, cards: int) -> str | None:
    """The cheapest listed type of the provider with the same GPU that has at least ``used`` of them and fewer than
    ``cards``."""
    model = model_key(product) if product else None
    if model is None or provider is None:
        return None
    fits = [
        offer
        for offer in bundled().offers
        if offer.provider == provider
        and offer.gpu_count is not None
        and used <= offer.gpu_count < cards
        and offer.price_usd_hour
        and model_key(offer.gpu_model) == model
        and _same_memory(memory_mib, offer)
    ]
    return (
        min(fits, key=lambda offer: (offer.gpu_count or 0, offer.price_usd_hour or 0)).instance_type if fits else None
    )


def _same_memory(memory_mib: int | None, offer: Offer) -> bool:
    if not memory_mib or not offer.gpu_memory_gib:
        return True
    return abs(memory_mib / 1024 - offer.gpu_memory_gib) < 0.15 * offer.gpu_memory_gib


def finding(small: Small) -> Finding:
    """What there is to say of the node: both rules say it in the same values."""
    node, cost = small.node, small.cost
    rate, price_date = Value(cost.usd_hour, "USD/h", cost.source), Value(cost.as_of, "date", cost.source)
    return found(
        Severity.HIGH if cost.usd_hour >= EXPENSIVE_USD_HOUR else Severity.MEDIUM,
        node.ref,
        *(pod.ref for pod in small.pods),
        identity=str(node.ref),
        remedy="default" if small.smaller else "no_smaller",
        notes=[note("unused", usd_hour=rate, price_basis=cost.basis, price_date=price_date)],
        cost=cost,
        node=node.name,
        used=of(small.used, "requests of the pods"),
        cards=gpus(small.cards),
        pods=names(pod.ref for pod in small.pods),
        gpu=node.product,
        instance_type=node.instance_type,
        smaller=of(small.smaller, "price lists of the provider"),
    )
