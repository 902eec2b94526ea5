"""Prices as the team pays them: its contract prices first, then the bundled offers."""

from collections.abc import Iterable, Mapping

from rules.facts.prices import Price, PriceBook
from service.settings import ContractPrice


class TeamPrices(PriceBook, frozen=True, kw_only=True):
    """Contract prices before the offers of ``rest``.

    A contract price holds for nodes of its provider and instance type in its region, or everywhere when it names none.
    It does not hold for spot nodes, which are billed by the spot market whatever the contract says.
    """

    contracts: Mapping[tuple[str, str, str | None], ContractPrice]
    rest: PriceBook

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
        """The contract price of a node, else what ``rest`` has."""
        if provider is not None and instance_type is not None and spot is not True:
            key = (provider.lower(), instance_type.lower())
            contract = self.contracts.get((*key, region.lower())) if region is not None else None
            contract = contract or self.contracts.get((*key, None))
            if contract is not None:
                source = f"settings: {contract.note}" if contract.note else "settings"
                return Price(usd_hour=contract.usd_hour, basis="contract", as_of=None, source=source)
        return self.rest.find(
            provider=provider, instance_type=instance_type, region=region, spot=spot, product=product, gpus=gpus
        )


def price_book(contracts: Iterable[ContractPrice]) -> PriceBook:
    """The bundled offers, with ``contracts`` before them."""
    from rules.facts.prices import bundled

    rows = {
        (row.provider.lower(), row.instance_type.lower(), row.region.lower() if row.region else None): row
        for row in contracts
    }
    return TeamPrices(contracts=rows, rest=bundled()) if rows else bundled()
