"""Prices as the team pays them: its contract prices first, then the bundled offers."""

from collections.abc import Iterable

from rules.facts.prices import ContractPrice as ContractRow
from rules.facts.prices import PriceBook, bundled
from service.settings import ContractPrice


def price_book(contracts: Iterable[ContractPrice]) -> PriceBook:
    """The bundled offers, with ``contracts`` before them."""
    return bundled().with_contract(contract_rows(contracts))


def contract_rows(contracts: Iterable[ContractPrice]) -> list[ContractRow]:
    """Contract prices of the settings as rows of a price book."""
    return [
        ContractRow(
            provider=price.provider,
            instance_type=price.instance_type,
            region=price.region,
            product=price.product,
            spot=price.spot,
            price_usd_hour=price.usd_hour,
            price_usd_gpu_hour=price.usd_gpu_hour,
            as_of=price.as_of.isoformat() if price.as_of else None,
            source=f"contract price: {price.note}" if price.note else "contract price",
        )
        for price in contracts
    ]
