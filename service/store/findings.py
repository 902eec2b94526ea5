"""Findings on record."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

import msgspec
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from rules.findings import Finding, Severity
from service.clock import Ids
from service.errors import CursorInvalid
from service.judgement import Judged, Standing
from service.store.cursors import packed, unpacked
from service.store.tables import FindingRow
from service.store.types import to_document
from service.views import FindingPage, FindingState, FindingView, Reason

LIMIT = 500
CHUNK = 500


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings are wanted; None and empty do not restrict, ``clusters`` always does.

    ``severity`` is the least one.
    """

    clusters: tuple[str, ...]
    rule: str | None = None
    severity: Severity | None = None
    state: FindingState | None = None

    def mark(self) -> str:
        """Eight characters that tell this query from others, so that a cursor is not used for another one."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:8]


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    mark: str
    rank: int
    id: str


async def known(session: AsyncSession, cluster: str, fingerprints: Iterable[str]) -> dict[str, FindingRow]:
    """Rows by fingerprint: the open ones of the cluster, and those that are named."""
    here = col(FindingRow.cluster) == cluster
    rows = list(await session.exec(select(FindingRow).where(here, col(FindingRow.state) == "open")))
    wanted = sorted({*fingerprints} - {row.fingerprint for row in rows})
    for start in range(0, len(wanted), CHUNK):
        some = col(FindingRow.fingerprint).in_(wanted[start : start + CHUNK])
        rows += await session.exec(select(FindingRow).where(here, some))
    return {row.fingerprint: row for row in rows}


def standing(row: FindingRow) -> Standing:
    """The row as the judgement reads it."""
    return Standing(cast("FindingState", row.state), finding(row))


def finding(row: FindingRow) -> Finding:
    """The finding that the row keeps."""
    return msgspec.convert(row.document, Finding)


def record(
    session: AsyncSession,
    *,
    cluster: str,
    rows: Mapping[str, FindingRow],
    judged: Mapping[str, Judged],
    now: datetime,
    ids: Ids,
) -> dict[str, FindingRow]:
    """Write what became of every finding; gives its row, by fingerprint."""
    written: dict[str, FindingRow] = {}
    for fingerprint, word in judged.items():
        row = rows.get(fingerprint)
        if row is None:
            row = FindingRow(
                id=ids(),
                cluster=cluster,
                fingerprint=fingerprint,
                rule=word.finding.rule,
                severity=word.finding.severity.value,
                severity_rank=word.finding.severity.rank,
                state=word.state,
                openings=1,
                first_seen=now,
                opened_at=now,
                last_seen=now,
                document=to_document(word.finding),
            )
            session.add(row)
        else:
            _change(row, word, now)
        written[fingerprint] = row
    return written


def _change(row: FindingRow, word: Judged, now: datetime) -> None:
    row.state = word.state
    row.reason = word.reason
    if word.change in ("still", "reopened"):
        row.severity = word.finding.severity.value
        row.severity_rank = word.finding.severity.rank
        row.document = to_document(word.finding)
        row.last_seen = now
    if word.change == "reopened":
        row.openings += 1
        row.opened_at = now
        row.resolved_at = None
    if word.change == "closed":
        row.resolved_at = now


async def page(session: AsyncSession, query: Query, *, limit: int, cursor: str | None) -> FindingPage:
    """Findings, heaviest first and newest first among equals.

    Raises:
        CursorInvalid: not a cursor of this query.
    """
    limit = min(max(limit, 1), LIMIT)
    rank, key = col(FindingRow.severity_rank), col(FindingRow.id)
    statement = select(FindingRow).where(col(FindingRow.cluster).in_(query.clusters))
    if query.rule is not None:
        statement = statement.where(col(FindingRow.rule) == query.rule)
    if query.severity is not None:
        statement = statement.where(rank >= query.severity.rank)
    if query.state is not None:
        statement = statement.where(col(FindingRow.state) == query.state)
    if cursor is not None:
        after = _decoded(cursor, query)
        statement = statement.where((rank < after.rank) | ((rank == after.rank) & (key < after.id)))
    rows = list(await session.exec(statement.order_by(rank.desc(), key.desc()).limit(limit + 1)))
    more = len(rows) > limit
    rows = rows[:limit]
    return FindingPage([view(row) for row in rows], _encoded(rows[-1], query) if more else None)


def view(row: FindingRow) -> FindingView:
    """The row as others see it."""
    return FindingView(
        id=row.id,
        cluster=row.cluster,
        rule=row.rule,
        severity=Severity(row.severity),
        state=cast("FindingState", row.state),
        first_seen=row.first_seen,
        opened_at=row.opened_at,
        last_seen=row.last_seen,
        resolved_at=row.resolved_at,
        reason=cast("Reason | None", row.reason),
        finding=finding(row),
    )


def _encoded(row: FindingRow, query: Query) -> str:
    return packed(_Cursor(query.mark(), row.severity_rank, row.id))


def _decoded(cursor: str, query: Query) -> _Cursor:
    decoded = unpacked(cursor, _Cursor)
    if decoded.mark != query.mark() or not 0 <= decoded.rank <= Severity.CRITICAL.rank or "\x00" in decoded.id:
        raise CursorInvalid(cursor)
    return decoded
