"""Refreshing: each provider alone, doubtful catalogues refused, old prices kept; on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.facts.prices import Offer, bundled
from service.catalog.assemble import assemble, merge
from service.catalog.refresh import Refresher
from service.catalog.sanity import doubt
from service.catalog.settings import CatalogSettings
from service.errors import ProviderUnknown
from service.store import Store, catalog
from tests.fakes.price_catalogs import PriceCatalogs, row

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Desk:
    """A refresher with a clock of its own."""

    def __init__(self, store: Store, catalogs: PriceCatalogs) -> None:
        self.store = store
        self.catalogs = catalogs
        self.now = NOW
        self.number = 0

    def refresher(self, **more: Any) -> Refresher:
        wanted = {"providers": ("aws", "gcp", "azure"), **more}
        settings = CatalogSettings(url=self.catalogs.url, **wanted)
        return Refresher(self.store, settings, clock=lambda: self.now, ids=self.next_id)

    def next_id(self) -> str:
        self.number += 1
        return f"{self.number:06}"

    async def refresh(self, *providers: str, accept: bool = False) -> dict[str, str]:
        done = await self.refresher().refresh(providers, accept=accept)
        return {one.provider: one.outcome for one in done}

    async def prices(self) -> dict[str, dict[str, float | None]]:
        async with self.store.read() as session:
            found = await catalog.latest(session)
        return {
            name: {offer.instance_type: offer.price_usd_hour for offer in snapshot.offers}
            for name, snapshot in found.items()
        }


@pytest.fixture
async def desk(database_url: str, catalogs: PriceCatalogs) -> AsyncIterator[Desk]:
    store = Store(database_url)
    await store.migrate()
    yield Desk(store, catalogs)
    await store.close()


async def test_one_failing_source_hurts_no_other_and_keeps_its_old_prices(desk: Desk) -> None:
    for name in ("aws", "gcp", "azure"):
        desk.catalogs.publish(name, "1", [row(f"{name}-h100", 40.0)])
    assert await desk.refresh() == {"aws": "updated", "gcp": "updated", "azure": "updated"}

    desk.now += timedelta(days=1)
    desk.catalogs.publish("aws", "2", [row("aws-h100", 44.0)])
    desk.catalogs.answer("gcp/version", 503)
    assert await desk.refresh() == {"aws": "updated", "gcp": "failed", "azure": "unchanged"}
    assert await desk.prices() == {"aws": {"aws-h100": 44.0}, "gcp": {"gcp-h100": 40.0}, "azure": {"azure-h100": 40.0}}

    async with desk.store.read() as session:
        tried = await catalog.attempts(session)
        (azure,) = await catalog.history(session, "azure")
        aws = await catalog.history(session, "aws")
    assert tried["gcp"].error_code == "catalog-source-trouble"
    assert "503" in str(tried["gcp"].error_detail)
    assert tried["aws"].error_detail is None
    assert (azure.fetched_at, azure.checked_at) == (NOW, desk.now)
    assert [one.version for one in aws] == ["2", "1"]


async def test_a_source_that_breaks_the_reader_is_its_own_trouble(desk: Desk) -> None:
    async def broken(provider: str, *_: Any) -> Any:
        raise RuntimeError(f"{provider} token=abcdef123456")

    settings = CatalogSettings(providers=("aws",))
    refresher = Refresher(desk.store, settings, clock=lambda: NOW, ids=desk.next_id, fetching=broken)
    (done,) = await refresher.refresh()
    assert (done.outcome, done.error_code) == ("failed", "internal-fault")
    assert "abcdef123456" not in str(done.error_detail)


async def test_doubtful_catalogues_are_refused_until_somebody_accepts_them(desk: Desk) -> None:
    desk.catalogs.publish("aws", "1", [row(f"p{number}", 10.0 * number) for number in range(1, 11)])
    assert await desk.refresh("aws") == {"aws": "updated"}
    desk.catalogs.publish("aws", "2", [row("p1", 10.0)])
    assert await desk.refresh("aws") == {"aws": "refused"}
    assert len((await desk.prices())["aws"]) == 10
    assert await desk.refresh("aws", accept=True) == {"aws": "updated"}
    assert await desk.prices() == {"aws": {"p1": 10.0}}


async def test_an_empty_catalogue_is_refused_whoever_accepts_it(desk: Desk) -> None:
    desk.catalogs.publish("aws", "1", [])
    assert await desk.refresh("aws", accept=True) == {"aws": "refused"}
    assert await desk.prices() == {}


async def test_a_refresh_is_due_after_the_hours_of_the_settings(desk: Desk) -> None:
    desk.catalogs.publish("aws", "1", [row("p5", 50.0)])
    refresher = desk.refresher(providers=("aws",), refresh_hours=24)
    assert await refresher.due()
    await refresher.refresh()
    assert not await refresher.due()
    desk.now += timedelta(hours=24)
    assert await refresher.due()
    desk.catalogs.answer("aws/version", 500)
    await refresher.refresh()
    assert not await refresher.due(), "a failed source is not asked again at once"


async def test_a_provider_that_nobody_knows_is_named(desk: Desk) -> None:
    with pytest.raises(ProviderUnknown, match="mars") as caught:
        await desk.refresh("mars")
    assert "aws" in caught.value.known


def offers(*prices: float, name: str = "m", model: str = "H100") -> list[Offer]:
    return [
        Offer("aws", f"{name}{number}", "r", model, 8.0, 80.0, None, None, price, None, "2026-01-01", "s")
        for number, price in enumerate(prices)
    ]


@pytest.mark.parametrize(
    ("new", "fetched", "known", "why"),
    [
        ([], offers(1), [], "no GPU machine"),
        (offers(1, 2), offers(1, 2, 3, 4, 5), [], "2 machine types; the one before held 5"),
        (offers(1, 2, 3, name="x"), offers(1, 2, 3), [], "knows 0 of the 3"),
        (offers(2.1, 4.2), offers(1, 2), [], "2.10 times"),
        (offers(0.4, 0.8), offers(1, 2), [], "0.40 times"),
        (offers(1.9, 3.8), offers(1, 2), [], None),
        (offers(1, 2, 3), offers(1, 2, 3, 4, 5), [], None),
        (offers(4), [], offers(1, name="other"), "per GPU are 4.00 times the bundled ones"),
        (offers(2), [], offers(1, name="other"), None),
        (offers(9), [], offers(1, model="L4"), None),
        (offers(9), [], [], None),
    ],
    ids=range(11),
)
def test_what_is_doubted(new: list[Offer], fetched: list[Offer], known: list[Offer], why: str | None) -> None:
    said = doubt(new, fetched, known)
    assert said is None if why is None else why in str(said)


def test_fetched_prices_take_the_place_of_bundled_ones_of_the_same_gpu_only() -> None:
    new = Offer("gcp", "a3-new", "r", "H100", 8.0, 80.0, None, None, 50.0, None, "2026-11-30", "gpuhunt")
    merged = merge({"gcp": (new,)})
    gcp = [offer for offer in merged if offer.provider == "gcp"]
    assert [offer for offer in gcp if offer.gpu_model.startswith("H100")] == [new]
    assert any(offer.gpu_model == "L4" for offer in gcp)
    others = [offer for offer in merged if offer.provider != "gcp"]
    assert others == [offer for offer in bundled().offers if offer.provider != "gcp"]
    assert assemble({}).book.offers == bundled().offers
