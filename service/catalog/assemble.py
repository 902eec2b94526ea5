"""One catalogue of what there is: bundled offers, fetched ones over them, private providers, contract prices on top."""

from collections.abc import Iterable, Mapping

import msgspec

from rules.facts.gpu_models import model_key
from rules.facts.offers import Catalog
from rules.facts.prices import ContractPrice, Offer, PriceBook, bundled
from rules.facts.providers import Provider, bundled_providers
from service.catalog.settings import PrivateProvider, facts_of


def assemble(
    fetched: Mapping[str, Iterable[Offer]],
    private: Iterable[PrivateProvider] = (),
    contracts: Iterable[ContractPrice] = (),
) -> Catalog:
    """The catalogue, and its book of prices for nodes.

    Where offers of a provider were fetched, its bundled offers of the same GPU models go: they are older, and may be
    under other names. Those of other models stay, with their date.

    Args:
        fetched: offers by provider.
    """
    own = list(private)
    providers = {**bundled_providers(), **{one.id: _provider(one) for one in own}}
    replaced = {one.id for one in own}
    merged = merge({name: tuple(rows) for name, rows in fetched.items()})
    offers = [offer for offer in merged if offer.provider not in replaced]
    offers += [offer for one in own for offer in _offers(one)]
    book = PriceBook(tuple(offers)).with_contract(contracts)
    # nodes are priced by the contract rows, offers carry the contract price themselves
    return Catalog(providers, PriceBook(book.contracted(), book.contract))


def merge(fetched: Mapping[str, tuple[Offer, ...]]) -> tuple[Offer, ...]:
    """Bundled offers with fetched ones in their place."""
    if not fetched:
        return bundled().offers
    models = {name: {_model(offer) for offer in rows} for name, rows in fetched.items()}
    kept = [offer for offer in bundled().offers if _model(offer) not in models.get(offer.provider, ())]
    return (*kept, *(offer for rows in fetched.values() for offer in rows))


def _model(offer: Offer) -> str:
    return model_key(offer.gpu_model) or offer.gpu_model


def _provider(private: PrivateProvider) -> Provider:
    named = {"id": private.id, "name": private.name or private.id, "private": True}
    return msgspec.convert({**named, **facts_of(private)}, Provider)


def _offers(private: PrivateProvider) -> Iterable[Offer]:
    return (
        Offer(
            provider=private.id,
            instance_type=one.instance_type,
            region=one.region,
            gpu_model=one.gpu,
            gpu_count=float(one.gpu_count),
            gpu_memory_gib=one.gpu_memory_gib,
            vcpus=one.vcpus,
            memory_gib=one.memory_gib,
            price_usd_hour=one.usd_hour,
            spot_price_usd_hour=one.spot_usd_hour,
            as_of=private.as_of.isoformat(),
            source="settings",
            arch=one.arch,
            contract=True,
        )
        for one in private.offers
    )
