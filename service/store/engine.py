"""Connections and transactions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from service.errors import StoreUnavailable
from service.store.migrate import upgrade

BUSY_TIMEOUT_MS = 15_000


class Store:
    """One database: SQLite or PostgreSQL, told apart by the URL alone.

    Every transaction says beforehand whether it writes. On SQLite a writing one begins as ``IMMEDIATE``: it waits for
    the writer before it instead of failing half-way, when what it has read is already out of date.

    Args:
        url: as :func:`service.settings.database_url` gives it.
    """

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self.dialect = parsed.get_backend_name()
        named = self.dialect == "sqlite" and parsed.database and parsed.database != ":memory:"
        self._folder = Path(parsed.database or "").resolve().parent if named else None
        self._engine = _engine(url)
        self._writing = self._engine.execution_options(begin="IMMEDIATE")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A session that only reads."""
        async with AsyncSession(self._engine, expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A session whose work is committed at the end, or undone when an exception leaves the block."""
        async with AsyncSession(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    async def migrate(self) -> None:
        """Bring the tables to the newest form.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        if self._folder is not None and not self._folder.is_dir():
            raise StoreUnavailable(f"there is no folder {self._folder} to keep the SQLite file in")
        try:
            async with self._writing.begin() as connection:
                await connection.run_sync(upgrade)
        except (SQLAlchemyError, OSError) as error:
            raise StoreUnavailable(_why(error)) from error

    async def problem(self) -> str | None:
        """Why the database cannot be used now; None when it can."""
        try:
            async with self._engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
        except (SQLAlchemyError, OSError) as error:
            return str(StoreUnavailable(_why(error)))
        return None

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


def _engine(url: str) -> AsyncEngine:
    if make_url(url).get_backend_name() == "sqlite":
        engine = create_async_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
        _prepare_sqlite(engine.sync_engine)
        return engine
    return create_async_engine(
        url, pool_pre_ping=True, pool_size=5, max_overflow=10, connect_args={"connect_timeout": 10}
    )


def _prepare_sqlite(engine: Engine) -> None:
    """Own the transactions (the driver would begin them late and as readers) and switch on what SQLite leaves off."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={BUSY_TIMEOUT_MS}"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        how = connection.get_execution_options().get("begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {how}")


def _why(error: Exception) -> str:
    """The driver's own words, without SQL and parameters."""
    return " ".join(str(getattr(error, "orig", None) or error).split()) or type(error).__name__
