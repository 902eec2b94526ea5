"""Statements that SQLAlchemy spells per dialect."""

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import Executable
from sqlmodel.ext.asyncio.session import AsyncSession

from service.store.tables import Row


def table(row: type[Row]) -> Table:
    """The table of a row class."""
    return Row.metadata.tables[str(row.__tablename__)]


async def insert_new(session: AsyncSession, row: type[Row], values: Mapping[str, Any]) -> bool:
    """Insert a row unless a unique constraint already holds another one; False when it does."""
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return await affected(session, insert(table(row)).values(**values).on_conflict_do_nothing()) == 1


async def affected(session: AsyncSession, statement: Executable) -> int:
    """Run a statement that changes rows; how many it changed."""
    connection = await session.connection()
    # without the option the number is lost where SQLAlchemy adds a RETURNING to an INSERT
    result = await connection.execute(statement, execution_options={"preserve_rowcount": True})
    return cast("CursorResult[Any]", result).rowcount
