"""Prices of GPU nodes: the lookup that turns a node into money, with its basis and its age."""

import csv
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import msgspec

from rules.facts.gpu_models import model_key

_DATA = Path(__file__).parent.parent / "data"

Basis = Literal["contract", "list", "other_region", "estimate"]


class Price(msgspec.Struct, frozen=True):
    """Price of a whole node.

    Attributes:
        usd_hour: per hour, for the whole instance, without tax.
        basis: ``contract`` (the team's own price), ``list`` (this type, region and purchase kind), ``other_region``
            (this type elsewhere) or ``estimate`` (median per GPU of this model, times the number of GPUs).
        as_of: ISO date of the price row, the oldest one where several were used; None when unknown.
        source: where the row was read.
    """

    usd_hour: float
    basis: Basis
    as_of: str | None
    source: str


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One row of a price list.

    Attributes:
        region: None when the list does not say; ``all`` when the price is the same everywhere.
        gpu_count: per instance; below 1 for slices of a GPU; None when unknown.
        gpu_memory_gib: nominal, per GPU.
        price_usd_hour, spot_price_usd_hour: of the whole instance; None when the list has none.
        as_of: ISO date; None when the list carries none.
        arch: of the CPU, where the list tells it.
        contract: the price is the team's own.
        read: ISO date on which an undated list was read: the price is that old at least; None where ``as_of`` tells.
    """

    provider: str
    instance_type: str
    region: str | None
    gpu_model: str
    gpu_count: float | None
    gpu_memory_gib: float | None
    vcpus: float | None
    memory_gib: float | None
    price_usd_hour: float | None
    spot_price_usd_hour: float | None
    as_of: str | None
    source: str
    arch: Literal["amd64", "arm64"] | None = None
    contract: bool = False
    read: str | None = None


class ContractPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price of the team's own. What is None fits every node; the row with most words on a node wins.

    Attributes:
        provider, instance_type, region, spot, product: which nodes; ``product`` is a GPU model in any spelling.
        price_usd_hour: for a whole node; or price_usd_gpu_hour: per GPU of the node.
        as_of: ISO date.
        source: what to show as the origin.
    """

    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    spot: bool | None = None
    product: str | None = None
    price_usd_hour: float | None = None
    price_usd_gpu_hour: float | None = None
    as_of: str | None = None
    source: str = "contract price"


class _Asked(msgspec.Struct, frozen=True):
    """A node that a price is looked for; ``model`` is its GPU's :func:`~rules.facts.gpu_models.model_key`."""

    provider: str | None
    instance_type: str | None
    region: str | None
    spot: bool
    model: str | None
    gpus: int | None

    def under(self, row: ContractPrice) -> tuple[int, Price] | None:
        """The price of the node under a contract row and the number of words that fit; None when one does not."""
        model = row.product and (model_key(row.product) or row.product)
        wanted = (
            (row.provider, self.provider),
            (row.instance_type, self.instance_type),
            (row.region, self.region),
            (model, self.model),
        )
        fits = [found is not None and word.lower() == found.lower() for word, found in wanted if word is not None]
        amount = row.price_usd_hour
        if amount is None and row.price_usd_gpu_hour is not None and self.gpus:
            amount = row.price_usd_gpu_hour * self.gpus
        if amount is None or not all(fits) or (row.spot is not None and row.spot != self.spot):
            return None
        return len(fits) + (row.spot is not None), Price(amount, "contract", row.as_of, row.source)


class Shape(msgspec.Struct, frozen=True):
    """GPUs of an instance type: ``gpu_count`` is None when unknown or less than one GPU."""

    provider: str
    gpu_model: str
    gpu_count: int | None


class PriceBook(msgspec.Struct, frozen=True, dict=True):
    """Offers, indexed for lookup by node."""

    offers: tuple[Offer, ...] = ()
    contract: tuple[ContractPrice, ...] = ()

    def with_contract(self, rows: Iterable[ContractPrice]) -> "PriceBook":
        """This book with the team's own prices on top of those it has."""
        book = PriceBook(self.offers, (*self.contract, *rows))
        book.__dict__.update({name: index for name, index in self.__dict__.items() if name.startswith("_by_")})
        return book

    def contracted(self) -> tuple[Offer, ...]:
        """The offers at the prices that the team pays: contract prices in place of listed ones, where they bear on a
        machine. A contract that does not say whether it holds for spot takes the place of both."""
        if not self.contract:
            return self.offers
        wanted = {((row.provider or "").lower(), (row.instance_type or "").lower()) for row in self.contract}
        return tuple(
            self._contracted(offer)
            if wanted & {("", ""), (offer.provider, ""), ("", name), (offer.provider, name)}
            else offer
            for offer in self.offers
            for name in (offer.instance_type.lower(),)
        )

    def _contracted(self, offer: Offer) -> Offer:
        whole = offer.gpu_count is not None and offer.gpu_count >= 1 and offer.gpu_count == int(offer.gpu_count)
        for spot in (False, True):
            asked = _Asked(
                provider=offer.provider,
                instance_type=offer.instance_type,
                region=offer.region,
                spot=spot,
                model=model_key(offer.gpu_model) or offer.gpu_model,
                gpus=int(offer.gpu_count or 0) if whole else None,
            )
            own = self._own(asked)
            if own is not None:
                name = "spot_price_usd_hour" if spot else "price_usd_hour"
                offer = msgspec.structs.replace(
                    offer, **{name: own.usd_hour}, as_of=own.as_of, source=own.source, contract=True
                )
        return offer

    def _own(self, asked: _Asked) -> Price | None:
        found = [price for row in self.contract if (price := asked.under(row)) is not None]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def find(
        self,
        *,
        provider: str | None,
        instance_type: str | None,
        region: str | None,
        spot: bool | None,
        product: str | None,
        gpus: int | None,
    ) -> Price | None:
        """Best price for a node; None when no row bears on it.

        A contract price comes first. Then the newest list price of the type in the region, then the median over other
        regions, then the median price per GPU of the model at this provider (else at all of them) times ``gpus``.

        Without a provider there is no estimate: such nodes are mostly owned, and a rent of them would be made up. An
        instance type that only one provider has tells the provider.

        A spot node gets spot prices only: an on-demand price would overstate what it costs by an unknown factor, so
        without a spot price the price is unknown. ``spot=None`` (nothing tells) is priced as on-demand.

        Args:
            provider: id of the catalogue.
            product: GPU model as labels spell it.
            gpus: physical GPUs of the node.
        """
        asked = _Asked(provider, instance_type, region, bool(spot), product and (model_key(product) or product), gpus)
        own = self._own(asked)
        if own is not None:
            return own
        if provider is None:
            provider = self.provider_of(instance_type)
        if provider is None:
            return None
        rows = self._by_type.get((provider, (instance_type or "").lower()), ())
        listed = _listed(rows, region, bool(spot))
        if listed is not None or spot:
            return listed
        return self._estimate(provider, product or (rows[0].gpu_model if rows else None), gpus)

    def provider_of(self, instance_type: str | None) -> str | None:
        """The provider that has ``instance_type``, when exactly one has."""
        providers = self._by_name.get((instance_type or "").lower(), set())
        return next(iter(providers)) if len(providers) == 1 else None

    def shape(self, provider: str | None, instance_type: str | None) -> Shape | None:
        """What an instance type has; None when no price list knows it, or several providers have one of that name."""
        provider = provider or self.provider_of(instance_type)
        rows = self._by_type.get((provider or "", (instance_type or "").lower()), ())
        if not rows:
            return None
        amount = next((row.gpu_count for row in rows if row.gpu_count is not None), None)
        whole = int(amount) if amount is not None and amount >= 1 and amount == int(amount) else None
        return Shape(rows[0].provider, rows[0].gpu_model, whole)

    def _estimate(self, provider: str, product: str | None, gpus: int | None) -> Price | None:
        key = model_key(product) if product else None
        if key is None or not gpus:
            return None
        rows = self._by_model.get(key, ())
        here = [row for row in rows if row.provider == provider]
        used = here or rows
        if not used:
            return None
        per_gpu = median((row.price_usd_hour or 0) / (row.gpu_count or 1) for row in used)
        whose = provider if here else f"{len({row.provider for row in rows})} providers"
        source = f"median of {len(used)} prices per {key.upper()} GPU of {whose}"
        return Price(round(per_gpu * gpus, 4), "estimate", _oldest(used), source)

    @cached_property
    def _by_type(self) -> dict[tuple[str, str], list[Offer]]:
        index: dict[tuple[str, str], list[Offer]] = {}
        for offer in self.offers:
            index.setdefault((offer.provider, offer.instance_type.lower()), []).append(offer)
        return index

    @cached_property
    def _by_name(self) -> dict[str, set[str]]:
        index: dict[str, set[str]] = {}
        for provider, name in self._by_type:
            index.setdefault(name, set()).add(provider)
        return index

    @cached_property
    def _by_model(self) -> dict[str, list[Offer]]:
        """Rows from which a price per whole GPU can be worked out."""
        index: dict[str, list[Offer]] = {}
        for offer in self.offers:
            if offer.price_usd_hour and offer.gpu_count and offer.gpu_count >= 1:
                key = model_key(offer.gpu_model)
                if key is not None:
                    index.setdefault(key, []).append(offer)
        return index


def _listed(rows: Sequence[Offer], region: str | None, spot: bool) -> Price | None:
    priced = [(row, amount) for row in rows if (amount := row.spot_price_usd_hour if spot else row.price_usd_hour)]
    newest: dict[str | None, list[tuple[Offer, float]]] = {}
    for row, amount in priced:
        best = newest.setdefault(row.region, [])
        if best and (row.as_of or "") > (best[0][0].as_of or ""):
            best.clear()
        if not best or (row.as_of or "") == (best[0][0].as_of or ""):
            best.append((row, amount))
    exact = newest.get(region) if region is not None else None
    exact = exact or newest.get("all")
    if exact is not None:
        return Price(median(amount for _, amount in exact), "list", exact[0][0].as_of, exact[0][0].source)
    if not newest:
        return None
    # Government regions have prices of their own; they stand in for nothing else.
    public = {name: best for name, best in newest.items() if "gov" not in (name or "")}
    elsewhere = [pair for best in (public or newest).values() for pair in best]
    sources = {row.source for row, _ in elsewhere}
    regions = len({row.region for row, _ in elsewhere})
    source = sources.pop() if len(sources) == 1 else f"median of {regions} other regions"
    return Price(
        median(amount for _, amount in elsewhere), "other_region", _oldest([row for row, _ in elsewhere]), source
    )


def median(amounts: Iterable[float]) -> float:
    """Middle of at least one amount; the mean of the two middle ones when their number is even."""
    ordered = sorted(amounts)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _oldest(rows: Iterable[Offer]) -> str | None:
    """The oldest date; None as soon as one is unknown."""
    dates = [row.as_of for row in rows]
    return None if None in dates else min(filter(None, dates), default=None)


@cache
def bundled() -> PriceBook:
    """The price lists that come with the package (``rules/data/offers.csv``), read on first use."""
    with (_DATA / "offers_sources.csv").open(encoding="utf-8", newline="") as file:
        sources = {number: (source, read) for number, source, read in csv.reader(file)}
    with (_DATA / "offers.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return PriceBook(tuple(_offer(row, sources) for row in rows))


def _offer(row: list[str], sources: dict[str, tuple[str, str]]) -> Offer:
    provider, name, region, model, *numbers, as_of, source = row
    gpus, gpu_memory, vcpus, memory, price, spot = [float(number) if number else None for number in numbers]
    where, read = sources[source]
    return Offer(
        provider,
        name,
        region or None,
        model,
        gpus,
        gpu_memory,
        vcpus,
        memory,
        price,
        spot,
        as_of or None,
        where,
        read=None if as_of else read,
    )
