"""The database: migrations, types, transactions."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, StatementError

from service.clock import SortableIds
from service.errors import StoreUnavailable
from service.store import Store, migrate
from service.store.migrate import differences
from service.store.tables import AuditRow, ClusterRow, Row

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = Store(database_url)
    yield opened
    await opened.close()


def newest_revision() -> str | None:
    return ScriptDirectory(str(Path(migrate.__file__).parent / "migrations")).get_current_head()


def cluster(name: str, seen: datetime = NOW) -> ClusterRow:
    return ClusterRow(name=name, kind="snapshot", first_seen=seen)


async def test_migrations_make_exactly_the_tables_of_the_models(store: Store) -> None:
    async with store._engine.connect() as connection:
        missing = await connection.run_sync(differences)
    assert len([item for item in missing if isinstance(item, tuple) and item[0] == "add_table"]) == len(
        Row.metadata.tables
    )
    await store.migrate()
    async with store._engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_migrating_again_changes_nothing(store: Store) -> None:
    await store.migrate()
    async with store.write() as session:
        session.add(cluster("lab"))
    await store.migrate()
    async with store.read() as session:
        assert await session.get(ClusterRow, "lab") is not None


async def test_processes_that_start_together_migrate_once(database_url: str) -> None:
    stores = [Store(database_url) for _ in range(4)]
    try:
        await asyncio.gather(*(item.migrate() for item in stores))
        async with stores[0].read() as session:
            connection = await session.connection()
            revisions = (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalars().all()
        assert revisions == [newest_revision()]
    finally:
        for item in stores:
            await item.close()


async def test_a_migration_that_fails_leaves_nothing_behind(store: Store) -> None:
    async with store.write() as session:
        connection = await session.connection()
        await connection.execute(text("CREATE TABLE outbox (something TEXT)"))
    with pytest.raises(StoreUnavailable, match="outbox"):
        await store.migrate()
    async with store.write() as session:
        connection = await session.connection()
        await connection.execute(text("DROP TABLE outbox"))
    await store.migrate()


async def test_moments_come_back_aware_and_in_utc(store: Store) -> None:
    await store.migrate()
    madrid = timezone(timedelta(hours=2))
    given = datetime(2026, 7, 1, 1, 30, 15, 123456, tzinfo=madrid)
    async with store.write() as session:
        session.add(cluster("lab", given))
    async with store.read() as session:
        row = await session.get(ClusterRow, "lab")
    assert row is not None
    assert row.first_seen == given
    assert row.first_seen.utcoffset() == timedelta(0)
    assert row.audited_at is None


async def test_a_moment_without_a_zone_is_refused(store: Store) -> None:
    await store.migrate()
    with pytest.raises(StatementError, match="has no time zone"):
        async with store.write() as session:
            session.add(cluster("lab", datetime(2026, 7, 1)))  # noqa: DTZ001 - that is what is refused


async def test_an_exception_undoes_the_whole_transaction(store: Store) -> None:
    await store.migrate()

    async def broken() -> None:
        async with store.write() as session:
            session.add(cluster("lab"))
            await session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await broken()
    async with store.read() as session:
        assert await session.get(ClusterRow, "lab") is None


async def test_references_are_enforced(store: Store) -> None:
    await store.migrate()
    orphan = AuditRow(
        id="a", cluster="nowhere", state="done", trigger="t", owner="o", queued_at=NOW, lease_until=NOW, report=None
    )
    with pytest.raises(IntegrityError):
        async with store.write() as session:
            session.add(orphan)


async def test_writers_wait_for_each_other_and_readers_for_nobody(store: Store) -> None:
    await store.migrate()
    async with store.write() as session:
        session.add(cluster("counter"))
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        async with store.write() as session:
            row = await session.get(ClusterRow, "counter", with_for_update=True)
            assert row is not None
            begun.set()
            await go_on.wait()
            row.gpu_nodes = (row.gpu_nodes or 0) + 1

    async def quick() -> None:
        async with store.write() as session:
            row = await session.get(ClusterRow, "counter", with_for_update=True)
            assert row is not None
            row.gpu_nodes = (row.gpu_nodes or 0) + 1

    first = asyncio.create_task(slow())
    await begun.wait()
    second = asyncio.create_task(quick())
    async with store.read() as session:
        row = await session.get(ClusterRow, "counter")
        assert row is not None
        assert row.gpu_nodes is None
    go_on.set()
    await asyncio.gather(first, second)
    async with store.read() as session:
        row = await session.get(ClusterRow, "counter")
        assert row is not None
        assert row.gpu_nodes == 2


async def test_sqlite_keeps_a_journal_that_lets_readers_read(tmp_path: object) -> None:
    file = f"{tmp_path}/state.db"
    store = Store(f"sqlite+aiosqlite:///{file}")
    await store.migrate()
    await store.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


@pytest.mark.parametrize(
    "url", ["sqlite+aiosqlite:////nowhere/at/all.db", "postgresql+psycopg://me:topsecret@127.0.0.1:1/none"]
)
async def test_a_database_that_cannot_be_opened_is_a_typed_error(url: str) -> None:
    store = Store(url)
    with pytest.raises(StoreUnavailable) as caught:
        await store.migrate()
    assert "topsecret" not in str(caught.value)
    problem = await store.problem()
    assert problem is not None
    assert "topsecret" not in problem
    await store.close()
    for thread in threading.enumerate():  # of a SQLite connection that could not be opened; it outlives the failure
        if "connection_worker" in thread.name:
            await asyncio.to_thread(thread.join)


def test_ids_sort_in_the_order_of_their_making_whatever_the_clock_does() -> None:
    moments = [NOW, NOW, NOW - timedelta(seconds=5), NOW + timedelta(milliseconds=1), NOW]
    now = iter(moments * 200)
    ids = SortableIds(lambda: next(now))
    made = [ids() for _ in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000
    assert all(item[14] == "7" and item[19] in "89ab" for item in made)


def test_ids_of_two_processes_sort_by_their_clocks_and_differ() -> None:
    early, late = SortableIds(lambda: NOW), SortableIds(lambda: NOW + timedelta(milliseconds=1))
    assert max(early() for _ in range(50)) < min(late() for _ in range(50))
    assert SortableIds(lambda: NOW)() != SortableIds(lambda: NOW)()
