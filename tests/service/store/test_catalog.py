"""Fetched prices on record: newest, history, retention, attempts; on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rules.facts.prices import Offer
from service.store import Store, catalog
from service.store.catalog import Attempt, Snapshot

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = Store(database_url)
    await opened.migrate()
    yield opened
    await opened.close()


def offer(price: float, name: str = "p5", as_of: str = "2026-11-30") -> Offer:
    return Offer("aws", name, "us-east-1", "H100", 8.0, 80.0, 192.0, 2048.0, price, None, as_of, "test", "amd64")


def snapshot(*offers: Offer, provider: str = "aws", at: datetime = NOW, version: str | None = "1") -> Snapshot:
    return Snapshot(provider, "gpuhunt", version, at, at, offers)


async def save(store: Store, number: int, taken: Snapshot, keep: int = 10) -> bool:
    async with store.write() as session:
        return await catalog.save(session, taken, id_=f"{number:04}", keep=keep)


async def test_the_newest_prices_of_each_provider_come_back_whole(store: Store) -> None:
    await save(store, 1, snapshot(offer(50)))
    await save(store, 2, snapshot(offer(60), offer(70, "p6"), at=NOW + timedelta(days=1)))
    await save(store, 3, snapshot(offer(1), provider="gcp"))
    async with store.read() as session:
        found = await catalog.latest(session)
        one = await catalog.latest_of(session, "aws")
        none = await catalog.latest_of(session, "azure")
    assert set(found) == {"aws", "gcp"}
    assert found["aws"].offers == (offer(60), offer(70, "p6"))
    assert found["aws"].fetched_at == NOW + timedelta(days=1)
    assert one == found["aws"]
    assert none is None


async def test_unchanged_prices_make_no_history_but_count_as_checked(store: Store) -> None:
    assert await save(store, 1, snapshot(offer(50), offer(60, "p6")))
    later = NOW + timedelta(days=1)
    same = snapshot(offer(60, "p6", "2026-12-01"), offer(50, "p5", "2026-12-01"), at=later, version="2")
    assert not await save(store, 2, same)
    async with store.read() as session:
        (only,) = await catalog.history(session, "aws")
    assert (only.fetched_at, only.checked_at, only.version, only.rows) == (NOW, later, "2", 2)


async def test_only_so_many_snapshots_are_kept_of_each_provider(store: Store) -> None:
    await save(store, 1, snapshot(offer(1), provider="gcp"))
    for number in range(2, 7):
        await save(store, number, snapshot(offer(number), at=NOW + timedelta(days=number)), keep=3)
    async with store.read() as session:
        kept = await catalog.history(session)
    assert [(one.provider, one.fetched_at.day) for one in kept] == [("aws", 6), ("aws", 5), ("aws", 4), ("gcp", 30)]


async def test_the_latest_attempt_takes_the_place_of_the_one_before(store: Store) -> None:
    failed = Attempt("aws", NOW, "failed", "catalog-source-trouble", "no answer\x00 in time")
    done = Attempt("aws", NOW + timedelta(hours=1), "updated")
    async with store.write() as session:
        await catalog.note(session, failed)
    async with store.read() as session:
        assert (await catalog.attempts(session))["aws"] == msgspec.structs.replace(
            failed, error_detail="no answer\ufffd in time"
        )
    async with store.write() as session:
        await catalog.note(session, done)
    async with store.read() as session:
        assert await catalog.attempts(session) == {"aws": done}
