"""Audits and clusters on record."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

import msgspec
from sqlalchemy import func, update
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from rules.findings import Report
from service.store.sql import affected, insert_new
from service.store.tables import AuditRow, ClusterRow, FindingRow
from service.store.types import to_document, without_nul
from service.views import AuditError, AuditState, AuditView

ACTIVE = ("queued", "running")
INTERRUPTED = AuditError("interrupted", "gpu-advisor stopped before the audit was finished; the next one starts anew")


async def remember_cluster(session: AsyncSession, name: str, kind: str, now: datetime) -> None:
    """Make sure that the cluster has a row, and that it says how it is read now."""
    if not await insert_new(session, ClusterRow, {"name": name, "kind": kind, "first_seen": now}):
        await affected(session, update(ClusterRow).where(col(ClusterRow.name) == name).values(kind=kind))


async def claim(session: AsyncSession, row: AuditRow) -> bool:
    """Queue ``row`` unless an audit of its cluster is queued or running, here or in another replica."""
    await interrupt(session, row.queued_at, clusters=[row.cluster])
    return await insert_new(session, AuditRow, row.model_dump())


async def active(session: AsyncSession, cluster: str) -> AuditRow | None:
    """The audit of ``cluster`` that is queued or running."""
    statement = select(AuditRow).where(col(AuditRow.cluster) == cluster, col(AuditRow.state).in_(ACTIVE))
    return (await session.exec(statement)).first()


async def interrupt(
    session: AsyncSession,
    now: datetime,
    *,
    clusters: Sequence[str] | None = None,
    owner: str | None = None,
    everyone: bool = False,
) -> int:
    """Mark unfinished audits as failed, because their process is gone: those past their lease, those of ``owner``, or
    those of ``everyone``. Returns how many."""
    statement = update(AuditRow).where(col(AuditRow.state).in_(ACTIVE))
    if clusters is not None:
        statement = statement.where(col(AuditRow.cluster).in_(clusters))
    if owner is not None:
        statement = statement.where(col(AuditRow.owner) == owner)
    elif not everyone:
        statement = statement.where(col(AuditRow.lease_until) < now)
    return await affected(
        session,
        statement.values(state="failed", finished_at=now, error_code=INTERRUPTED.code, error_detail=INTERRUPTED.detail),
    )


async def renew(session: AsyncSession, audit_ids: Iterable[str], until: datetime) -> int:
    """Move the lease of unfinished audits on."""
    mine = (col(AuditRow.id).in_(list(audit_ids)), col(AuditRow.state).in_(ACTIVE))
    return await affected(session, update(AuditRow).where(*mine).values(lease_until=until))


async def begin(session: AsyncSession, audit_id: str, now: datetime, lease_until: datetime) -> bool:
    """From queued to running; False when the audit was taken away (its lease ended)."""
    waiting = (col(AuditRow.id) == audit_id, col(AuditRow.state) == "queued")
    values = {"state": "running", "started_at": now, "lease_until": lease_until}
    return await affected(session, update(AuditRow).where(*waiting).values(**values)) == 1


async def finish(
    session: AsyncSession,
    audit_id: str,
    now: datetime,
    *,
    report: Report | None = None,
    error: AuditError | None = None,
) -> bool:
    """From running to done (with the report) or failed (with the error); False when the audit was taken away."""
    values = {
        "state": "done" if error is None else "failed",
        "finished_at": now,
        "report": None if report is None else to_document(report),
        "error_code": None if error is None else error.code,
        "error_detail": None if error is None else without_nul(error.detail),
    }
    mine = (col(AuditRow.id) == audit_id, col(AuditRow.state).in_(ACTIVE))
    return await affected(session, update(AuditRow).where(*mine).values(**values)) == 1


async def cluster_done(session: AsyncSession, name: str, now: datetime, gpu_nodes: int | None) -> None:
    """The latest audit of the cluster was complete. ``gpu_nodes`` is None when nodes could not be read."""
    values = {
        "audited_at": now,
        "gpu_nodes": gpu_nodes,
        "failed_at": None,
        "error_code": None,
        "error_detail": None,
    }
    await affected(session, update(ClusterRow).where(col(ClusterRow.name) == name).values(**values))


async def cluster_failed(session: AsyncSession, name: str, now: datetime, error: AuditError) -> None:
    """The latest audit of the cluster failed; what was known of it stays."""
    values = {"failed_at": now, "error_code": error.code, "error_detail": without_nul(error.detail)}
    await affected(session, update(ClusterRow).where(col(ClusterRow.name) == name).values(**values))


async def started_elsewhere(session: AsyncSession, cluster: str, owner: str, since: datetime) -> bool:
    """True when another process audits the cluster now or began a complete audit after ``since``."""
    statement = select(AuditRow.id).where(
        col(AuditRow.cluster) == cluster,
        col(AuditRow.owner) != owner,
        col(AuditRow.state).in_(ACTIVE) | ((col(AuditRow.state) == "done") & (col(AuditRow.started_at) > since)),
    )
    return (await session.exec(statement.limit(1))).first() is not None


async def clusters(session: AsyncSession, names: Iterable[str]) -> dict[str, ClusterRow]:
    """Rows of clusters, by name."""
    rows = await session.exec(select(ClusterRow).where(col(ClusterRow.name).in_(list(names))))
    return {row.name: row for row in rows}


async def open_counts(session: AsyncSession) -> dict[str, dict[str, int]]:
    """Number of open findings by cluster and severity, heaviest severity first."""
    statement = (
        select(FindingRow.cluster, FindingRow.severity, func.count())
        .where(col(FindingRow.state) == "open")
        .group_by(col(FindingRow.cluster), col(FindingRow.severity), col(FindingRow.severity_rank))
        .order_by(col(FindingRow.severity_rank).desc())
    )
    counts: dict[str, dict[str, int]] = {}
    for cluster, severity, number in await session.exec(statement):
        counts.setdefault(cluster, {})[severity] = number
    return counts


def view(row: AuditRow) -> AuditView:
    """The row as others see it."""
    return AuditView(
        id=row.id,
        cluster=row.cluster,
        state=cast("AuditState", row.state),
        trigger=row.trigger,
        queued_at=row.queued_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error=AuditError(row.error_code, row.error_detail or "") if row.error_code else None,
        report=msgspec.convert(row.report, Report) if row.report is not None else None,
    )
