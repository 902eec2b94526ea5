"""Deleting what is old. Open findings, open alerts and the notifications of open alerts are never deleted."""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, update
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from service.store.sql import affected
from service.store.tables import AlertRow, AuditRow, FindingRow, OutboxRow, SlackEventRow

EVENTS_KEPT = timedelta(days=1)
"""Slack repeats a delivery for about an hour at most."""


async def clean(session: AsyncSession, now: datetime, *, keep: timedelta, keep_reports: int) -> dict[str, int]:
    """Delete what ended longer ago than ``keep``, and all reports but the newest of each cluster; how many of each."""
    cutoff = now - keep
    open_alerts = select(AlertRow.id).where(col(AlertRow.state) == "open")
    deleted = {
        "slack_events": await affected(
            session, delete(SlackEventRow).where(col(SlackEventRow.seen_at) < now - EVENTS_KEPT)
        ),
        "outbox": await affected(
            session,
            delete(OutboxRow).where(
                col(OutboxRow.finished_at) < cutoff,
                col(OutboxRow.state).not_in(("pending", "sending")),
                col(OutboxRow.alert_id).not_in(open_alerts),
            ),
        ),
        "alerts": await affected(
            session,
            delete(AlertRow).where(
                col(AlertRow.state) != "open",
                col(AlertRow.resolved_at) < cutoff,
                col(AlertRow.id).not_in(select(OutboxRow.alert_id)),
            ),
        ),
        "findings": await affected(
            session,
            delete(FindingRow).where(
                col(FindingRow.state) != "open",
                col(FindingRow.resolved_at) < cutoff,
                col(FindingRow.id).not_in(select(AlertRow.finding_id)),
            ),
        ),
        "audits": await affected(session, delete(AuditRow).where(col(AuditRow.finished_at) < cutoff)),
    }
    place = func.row_number().over(partition_by=col(AuditRow.cluster), order_by=col(AuditRow.id).desc())
    places = select(AuditRow.id, place.label("place")).where(col(AuditRow.report).is_not(None)).subquery()
    surplus = select(places.c.id).where(places.c.place > keep_reports)
    deleted["reports"] = await affected(
        session, update(AuditRow).where(col(AuditRow.id).in_(surplus)).values(report=None)
    )
    return deleted
