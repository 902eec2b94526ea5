"""Column types that behave alike on SQLite and PostgreSQL."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import JSON, DateTime, Dialect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: timezone-aware going in, UTC coming out. SQLite has no zones, so it keeps the UTC wall time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a naive value is refused."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone; the store keeps moments, not wall times")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Back to a timezone-aware UTC value."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Document(TypeDecorator[Any]):
    """A JSON document: ``jsonb`` on PostgreSQL, text on SQLite.

    NUL characters, which PostgreSQL cannot hold, become U+FFFD on both.
    """

    impl = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Plain JSON data without NUL."""
        return None if value is None else _without_nul(value)


def to_document(value: Any) -> Any:
    """A struct as plain JSON data."""
    return msgspec.to_builtins(value)


def without_nul(text: str) -> str:
    """``text`` as PostgreSQL can hold it."""
    return text.replace("\x00", "\ufffd")


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return without_nul(value)
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nul(item) for item in value]
    return value
