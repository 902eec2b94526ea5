"""What the GPU nodes of a cluster would cost elsewhere: at every provider that meets the same constraints.

Nodes of one shape are priced together: same GPU, at least as many per machine, spot only where they are spot now. A
provider must have Kubernetes (managed if the cluster is), a fast interconnect if pods ask for one, and the sharing in
use.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rules.advice.model import Demand, Ranked
from rules.advice.ranking import rank
from rules.advice.request import AdviceInvalid, AdviceRequest
from rules.advice.words import say, words
from rules.facts.cluster import ClusterFacts
from rules.facts.model import NodeFacts
from rules.facts.network import fast_network_requests
from rules.facts.offers import HOURS_PER_MONTH, Catalog, FilterInvalid, Filters, gpu_asked
from rules.facts.providers import Provider
from rules.language import Language
from rules.sharing.model import Remark

_SHARING = {"time-slicing": "time_slicing", "mps": "mps", "mig": "mig"}


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are alike. None: unknown.

    Attributes:
        usd_hour_now: of those whose price is known; unpriced: how many are not.
        prices: where the prices come from: basis, source and date.
    """

    provider: str | None
    gpu: str | None
    gpus: int | None
    memory_gib: float | None
    spot: bool
    sharing: str | None
    nodes: int
    usd_hour_now: float
    unpriced: int
    prices: tuple[str, ...]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with all shapes that it can take.

    Attributes:
        usd_month: of all of them, and the control plane's fee as far as known; None where a shape has no price there.
        missing: numbers (from 0) of shapes that it is not known to offer, or only without a price.
        difference_usd_month: against now; None where either is not known in full.
    """

    provider: Provider
    shapes: Mapping[int, Ranked]
    usd_month: float | None
    fee_unknown: bool
    missing: tuple[int, ...]
    unknown: tuple[str, ...]
    doubts: tuple[str, ...]
    difference_usd_month: float | None


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison. usd_month_now counts only nodes with a known price; ``unpriced`` says how many have none."""

    cluster: str
    shapes: tuple[Shape, ...]
    usd_month_now: float | None
    unpriced: int
    managed: bool | None
    rdma: bool
    places: tuple[Place, ...]
    remarks: tuple[Remark, ...]


def elsewhere(facts: ClusterFacts, catalog: Catalog, region: str | None = None) -> Elsewhere:
    """Price a cluster elsewhere.

    Args:
        region: where it may go: a country, ``eu``, ``us``, ``latam`` or a provider's region; None: anywhere.

    Raises:
        AdviceInvalid: there is no such region.
    """
    shapes = _shapes(facts.gpu_nodes)
    managed = _managed(catalog, facts.gpu_nodes)
    rdma = any(fast_network_requests(pod.pod.spec) for pod in facts.gpu_pods)
    unpriced = sum(shape.unpriced for shape in shapes)
    now = sum(shape.usd_hour_now for shape in shapes) * HOURS_PER_MONTH if unpriced < len(facts.gpu_nodes) else None
    found: dict[str, dict[int, Ranked]] = {}
    for number, shape in enumerate(shapes):
        for one in _offered(shape, catalog, region, managed=managed, rdma=rdma):
            if one.provider.kubernetes and one.provider.kubernetes.mode == "none":
                continue
            found.setdefault(one.provider.id, {})[number] = one
    places = [_place(ranked, len(shapes), now if not unpriced else None) for ranked in found.values()]
    places.sort(key=_order)
    remarks = [Remark(key="move_costs"), Remark(key="price_scope")]
    if unpriced:
        remarks.insert(0, Remark(key="nodes_unpriced", values={"nodes": unpriced}))
    if any(shape.gpu is None or shape.gpus is None for shape in shapes):
        remarks.insert(0, Remark(key="shapes_unknown"))
    return Elsewhere(
        cluster=facts.name,
        shapes=shapes,
        usd_month_now=now,
        unpriced=unpriced,
        managed=managed,
        rdma=rdma,
        places=tuple(places),
        remarks=tuple(remarks),
    )


def _shapes(nodes: Iterable[NodeFacts]) -> tuple[Shape, ...]:
    alike: dict[tuple[Any, ...], list[NodeFacts]] = {}
    for node in nodes:
        memory = None if node.gpu_memory_mib is None else round(node.gpu_memory_mib / 1024, 1)
        mode = _SHARING.get(node.sharing.mode or "")
        key = (node.provider, node.product, node.physical_gpus, memory, node.spot is True, mode)
        alike.setdefault(key, []).append(node)
    return tuple(
        Shape(
            provider=provider,
            gpu=gpu,
            gpus=gpus,
            memory_gib=memory,
            spot=spot,
            sharing=sharing,
            nodes=len(members),
            usd_hour_now=sum(node.price.usd_hour for node in members if node.price),
            unpriced=sum(node.price is None for node in members),
            prices=tuple(
                sorted(
                    {f"{p.basis}: {p.source}, {p.as_of or '?'}" for node in members if (p := node.price) is not None}
                )
            ),
        )
        for (provider, gpu, gpus, memory, spot, sharing), members in alike.items()
    )


def _managed(catalog: Catalog, nodes: Iterable[NodeFacts]) -> bool | None:
    """True where the provider of every node has nothing but a managed service, or its node pools show on the node; else
    it is not known, and nothing is asked of others."""
    return (
        all([_in_managed_pool(catalog.providers.get(node.provider or ""), node) for node in nodes] or [False]) or None
    )


def _in_managed_pool(provider: Provider | None, node: NodeFacts) -> bool:
    mode = provider.kubernetes.mode if provider and provider.kubernetes else None
    if mode != "both" or provider is None or provider.node_identity is None:
        return mode == "managed"
    return any(label.partition("=")[0] in node.labels for label in provider.node_identity.pool_labels)


def _offered(
    shape: Shape, catalog: Catalog, region: str | None, *, managed: bool | None, rdma: bool
) -> Iterable[Ranked]:
    if shape.gpu is None or shape.gpus is None:
        return ()
    try:
        gpu_asked(shape.gpu)
    except FilterInvalid:
        return ()
    filters = Filters.of(
        {
            "gpu": shape.gpu,
            "gpu_count": shape.gpus if shape.gpus > 1 else None,
            "min_vram_gb": shape.memory_gib,
            "managed": managed,
            "interconnect": "rdma" if rdma else None,
            "sharing": shape.sharing,
            "region": region,
        }
    )
    demand = Demand(gpu=(shape.gpu,), gpus=shape.gpus * shape.nodes, per_machine=shape.gpus)
    request = AdviceRequest(kind="batch", interruptible=shape.spot)
    try:
        return rank(request, catalog, filters, demand, fee=managed is True, hours=HOURS_PER_MONTH)[0]
    except FilterInvalid as error:
        raise AdviceInvalid(error.filter, str(error)) from error


def _place(ranked: Mapping[int, Ranked], shapes: int, now: float | None) -> Place:
    any_one = next(iter(ranked.values()))
    missing = tuple(number for number in range(shapes) if number not in ranked or ranked[number].usd_month is None)
    month = None
    if not missing:
        month = sum(one.machines_usd_month or 0.0 for one in ranked.values()) + (any_one.fee_usd_month or 0.0)
    return Place(
        provider=any_one.provider,
        shapes=ranked,
        usd_month=month,
        fee_unknown=any_one.fee_unknown,
        missing=missing,
        unknown=tuple(dict.fromkeys(name for one in ranked.values() for name in one.unknown)),
        doubts=tuple(dict.fromkeys(name for one in ranked.values() for name in one.doubts)),
        difference_usd_month=None if month is None or now is None else month - now,
    )


def _order(place: Place) -> tuple[object, ...]:
    doubts = len(place.unknown) + len(place.doubts)
    return (len(place.missing), doubts, place.usd_month or 0.0, place.provider.id)


def document(found: Elsewhere, language: Language) -> dict[str, Any]:
    """The comparison as plain data for JSON, with its sentences in ``language``."""
    return {
        "cluster": found.cluster,
        "usd_month_now": _rounded(found.usd_month_now),
        "unpriced": found.unpriced,
        "managed": found.managed,
        "rdma": found.rdma,
        "shapes": [
            {
                **msgspec.structs.asdict(shape),
                "usd_hour_now": round(shape.usd_hour_now, 4),
                "prices": list(shape.prices),
            }
            for shape in found.shapes
        ],
        "places": [
            {
                "id": place.provider.id,
                "name": place.provider.name,
                "usd_month": _rounded(place.usd_month),
                "difference_usd_month": _rounded(place.difference_usd_month),
                "fee_unknown": place.fee_unknown,
                "missing": list(place.missing),
                "not_documented": list(place.unknown),
                "doubts": [words().remarks[name].in_(language) for name in place.doubts],
                "machines": [_machines(number, one) for number, one in sorted(place.shapes.items())],
            }
            for place in found.places
        ],
        "remarks": [{"key": remark.key, "text": say(remark, language)} for remark in found.remarks],
    }


def _machines(number: int, one: Ranked) -> dict[str, Any]:
    offer = one.offer.offer if one.offer else None
    return {
        "shape": number,
        "machines": one.machines,
        "instance_type": offer.instance_type if offer else None,
        "region": offer.region if offer else None,
        "purchase": one.offer.purchase if one.offer else None,
        "usd_hour": _rounded(one.usd_hour),
        "price_as_of": offer.as_of if offer else None,
        "price_read": offer.read if offer else None,
        "price_source": offer.source if offer else None,
    }


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 4)
