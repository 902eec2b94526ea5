"""Fetched prices on record."""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import delete
from sqlmodel import col, func, select
from sqlmodel.ext.asyncio.session import AsyncSession

from rules.facts.prices import Offer
from service.store.catalog_tables import CatalogAttemptRow, CatalogSnapshotRow
from service.store.types import without_nul


class Snapshot(msgspec.Struct, frozen=True):
    """Prices of a provider as a source had them.

    Attributes:
        fetched_at: when they were first seen; checked_at: when they were last seen unchanged.
    """

    provider: str
    source: str
    version: str | None
    fetched_at: datetime
    checked_at: datetime
    offers: tuple[Offer, ...]


class SnapshotView(msgspec.Struct, frozen=True):
    """A snapshot without its prices."""

    provider: str
    source: str
    version: str | None
    fetched_at: datetime
    checked_at: datetime
    rows: int


class Attempt(msgspec.Struct, frozen=True):
    """The latest attempt at a provider; the error is None when it went well."""

    provider: str
    attempted_at: datetime
    outcome: str
    error_code: str | None = None
    error_detail: str | None = None


def digest(offers: Iterable[Offer]) -> str:
    """A hash of the prices alone: the same whatever their order, date and source."""
    rows = sorted(msgspec.json.encode(msgspec.structs.replace(offer, as_of=None, source="")) for offer in offers)
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


async def latest(session: AsyncSession) -> dict[str, Snapshot]:
    """The newest snapshot of each provider, by provider."""
    newest = select(func.max(CatalogSnapshotRow.id)).group_by(col(CatalogSnapshotRow.provider))
    rows = await session.exec(select(CatalogSnapshotRow).where(col(CatalogSnapshotRow.id).in_(newest)))
    return {row.provider: _snapshot(row) for row in rows}


async def latest_of(session: AsyncSession, provider: str) -> Snapshot | None:
    """The newest snapshot of a provider; None before its first."""
    row = await _newest_row(session, provider)
    return _snapshot(row) if row is not None else None


async def save(session: AsyncSession, snapshot: Snapshot, *, id_: str, keep: int) -> bool:
    """Put a snapshot on record; False when the prices are those of the newest one, which then counts as checked.

    Args:
        id_: greater than those before it.
        keep: newest snapshots that are kept of the provider.
    """
    mark = digest(snapshot.offers)
    before = await _newest_row(session, snapshot.provider)
    if before is not None and before.digest == mark:
        before.checked_at = snapshot.checked_at
        before.version = snapshot.version
        session.add(before)
        return False
    session.add(
        CatalogSnapshotRow(
            id=id_,
            provider=snapshot.provider,
            source=snapshot.source,
            version=snapshot.version,
            fetched_at=snapshot.fetched_at,
            checked_at=snapshot.checked_at,
            rows=len(snapshot.offers),
            digest=mark,
            offers=zlib.compress(msgspec.json.encode(snapshot.offers)),
        )
    )
    await session.flush()
    row = CatalogSnapshotRow
    old = select(row.id).where(col(row.provider) == snapshot.provider).order_by(col(row.id).desc()).offset(keep)
    surplus = list(await session.exec(old))
    if surplus:
        await session.exec(delete(row).where(col(row.id).in_(surplus)))
    return True


async def history(session: AsyncSession, provider: str | None = None) -> list[SnapshotView]:
    """Snapshots on record, newest first; of all providers when None."""
    row = CatalogSnapshotRow
    wanted = select(row.provider, row.source, row.version, row.fetched_at, row.checked_at, row.rows)  # type: ignore[call-overload]
    if provider is not None:
        wanted = wanted.where(col(row.provider) == provider)
    return [SnapshotView(*found) for found in await session.exec(wanted.order_by(col(row.id).desc()))]


async def note(session: AsyncSession, attempt: Attempt) -> None:
    """Put the latest attempt at a provider on record, in place of the one before."""
    await session.merge(
        CatalogAttemptRow(
            provider=attempt.provider,
            attempted_at=attempt.attempted_at,
            outcome=attempt.outcome,
            error_code=attempt.error_code,
            error_detail=without_nul(attempt.error_detail) if attempt.error_detail else None,
        )
    )


async def attempts(session: AsyncSession) -> dict[str, Attempt]:
    """The latest attempt at each provider, by provider."""
    rows: Sequence[CatalogAttemptRow] = list(await session.exec(select(CatalogAttemptRow)))
    return {
        row.provider: Attempt(row.provider, row.attempted_at, row.outcome, row.error_code, row.error_detail)
        for row in rows
    }


async def _newest_row(session: AsyncSession, provider: str) -> CatalogSnapshotRow | None:
    row = CatalogSnapshotRow
    found = await session.exec(select(row).where(col(row.provider) == provider).order_by(col(row.id).desc()).limit(1))
    return found.first()


def _snapshot(row: CatalogSnapshotRow) -> Snapshot:
    offers = msgspec.json.decode(zlib.decompress(row.offers), type=tuple[Offer, ...])
    return Snapshot(row.provider, row.source, row.version, row.fetched_at, row.checked_at, offers)
