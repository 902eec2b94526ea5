"""Prices of GPU nodes: the lookup that turns a node into money, with its basis and its age."""

from typing import Literal

import msgspec


class Price(msgspec.Struct, frozen=True):
    """Price of a whole node.

    Attributes:
        usd_hour: per hour, for the whole instance, without tax.
        basis: ``contract`` (the team's own price), ``list`` (this type, region and purchase kind), ``other_region`` (this
            type elsewhere) or ``estimate`` (median per GPU of this model, times the number of GPUs).
        as_of: ISO date of the price row, None when unknown.
        source: where the row was read.
    """

    usd_hour: float
    basis: Literal["contract", "list", "other_region", "estimate"]
    as_of: str | None
    source: str


class PriceBook(msgspec.Struct, frozen=True):
    """Offers, indexed for lookup by node."""

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
        """Best price for a node; None when no row bears on it."""
        raise NotImplementedError
