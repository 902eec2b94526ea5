"""The running service keeps its prices fresh, takes up what is on record, and prices nodes by it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.facts.offers import Filters
from rules.facts.offers_search import find_offers
from service.advisor import GpuAdvisor
from service.catalog.settings import CatalogSettings
from service.settings import ContractPrice, Settings
from tests.fakes.price_catalogs import PriceCatalogs, row

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def advisor(url: str, catalogs: PriceCatalogs, clock: Clock, **more: Any) -> GpuAdvisor:
    wanted = {"providers": ("aws",), **more.pop("catalog", {})}
    settings = Settings(database_url=url, catalog=CatalogSettings(url=catalogs.url, **wanted), **more)
    return GpuAdvisor(settings, connectors=(), rules=(), clock=clock)


def price(served: GpuAdvisor) -> float | None:
    """What a p5.48xlarge node in us-east-1 costs."""
    found = served._audits._judge.prices.find(
        provider="aws", instance_type="p5.48xlarge", region="us-east-1", spot=False, product="H100", gpus=8
    )
    return found.usd_hour if found else None


async def test_prices_are_fetched_when_due_and_nodes_are_priced_by_them(
    database_url: str, catalogs: PriceCatalogs, clock: Clock
) -> None:
    catalogs.publish("aws", "20261129-1", [row("p5.48xlarge", 44.0)])
    served = advisor(database_url, catalogs, clock)
    try:
        await served.open()
        assert price(served) == 55.04, "the bundled price"
        await served.keep_prices_fresh()
        assert price(served) == 44.0
        (offer,) = find_offers(served.catalog(), Filters.of({"providers": "aws", "gpu": "h100"}))
        assert (offer.usd_hour, offer.offer.as_of) == (44.0, "2026-11-29")

        asked = len(catalogs.requests)
        catalogs.publish("aws", "20261130-1", [row("p5.48xlarge", 40.0)])
        await served.keep_prices_fresh()
        assert len(catalogs.requests) == asked, "not due yet"
        clock.now += timedelta(hours=24)
        await served.keep_prices_fresh()
        assert price(served) == 40.0
    finally:
        await served.stop()


async def test_prices_on_record_are_taken_up_at_the_start_and_from_other_replicas(
    database_url: str, catalogs: PriceCatalogs, clock: Clock
) -> None:
    catalogs.publish("aws", "20261129-1", [row("p5.48xlarge", 44.0)])
    first, second = advisor(database_url, catalogs, clock), advisor(database_url, catalogs, clock)
    try:
        await first.open()
        await second.open()
        await first.keep_prices_fresh()
        asked = len(catalogs.requests)
        await second.keep_prices_fresh()
        assert price(second) == 44.0
        third = advisor(database_url, catalogs, clock)
        try:
            await third.open()
            assert price(third) == 44.0
        finally:
            await third.stop()
        assert len(catalogs.requests) == asked, "what one replica has fetched the others need not"
    finally:
        await first.stop()
        await second.stop()


async def test_contract_prices_stay_on_top_of_fetched_ones(
    database_url: str, catalogs: PriceCatalogs, clock: Clock
) -> None:
    catalogs.publish("aws", "20261129-1", [row("p5.48xlarge", 44.0)])
    served = advisor(database_url, catalogs, clock, prices=(ContractPrice(instance_type="p5.48xlarge", usd_hour=30.0),))
    try:
        await served.open()
        await served.keep_prices_fresh()
        assert price(served) == 30.0
        (offer,) = find_offers(served.catalog(), Filters.of({"providers": "aws", "gpu": "h100"}))
        assert (offer.usd_hour, offer.purchase) == (30.0, "contract")
    finally:
        await served.stop()


async def test_where_refreshing_is_off_nobody_is_asked(
    database_url: str, catalogs: PriceCatalogs, clock: Clock
) -> None:
    catalogs.publish("aws", "20261129-1", [row("p5.48xlarge", 44.0)])
    served = advisor(database_url, catalogs, clock, catalog={"refresh": False})
    try:
        await served.open()
        await served.keep_prices_fresh()
        assert price(served) == 55.04
        assert catalogs.requests == []
    finally:
        await served.stop()
