"""From findings to alerts. Which findings are announced is the list :data:`STAGES`; each stage lets a finding pass or
gives the named reason why it is not announced.

An alert is one opening of one finding. It is written in the transaction of the audit, together with the line in the
outbox that makes someone say it, so that there is never one without the other. Later audits that confirm the finding
bring the numbers of the alert up to date and say nothing. When the finding is resolved, a second line edits the
message. When it is withdrawn (rule switched off, finding exempted), nothing is said: the trouble is not mended.

Every open and confirmed finding without an alert is looked at in every audit, not only a new one: so a team that adds
Slack, or lowers ``alerts.min_severity``, hears of what is open.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
import structlog
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from bot.port import AlertView
from rules.findings import Finding
from service import unreadable
from service.clock import Ids
from service.judgement import Judged
from service.settings import AlertSettings
from service.store.tables import AlertRow, FindingRow, OutboxRow
from service.store.types import to_document

Silence = Literal["no-channel", "rule-not-announced", "below-min-severity"]
Decision = (
    Literal["announced", "already-announced", "resolved", "withdrawn", "not-confirmed", "never-announced"] | Silence
)

log = structlog.get_logger(__name__)


class Announcing(msgspec.Struct, frozen=True):
    """What the stages may look at. ``channel`` is None when nobody can be told."""

    channel: str | None
    settings: AlertSettings


Stage = Callable[[Finding, Announcing], Silence | None]


def channel_missing(_finding: Finding, how: Announcing) -> Silence | None:
    """Nobody can be told."""
    return "no-channel" if how.channel is None else None


def rule_not_announced(finding: Finding, how: Announcing) -> Silence | None:
    """``alerts.rules`` names others; what cannot be read is announced as ``alerts.unreadable`` says."""
    if finding.rule in unreadable.IDS:
        return None if how.settings.unreadable else "rule-not-announced"
    chosen = how.settings.rules
    return "rule-not-announced" if chosen and finding.rule not in chosen else None


def below_min_severity(finding: Finding, how: Announcing) -> Silence | None:
    """Lighter than ``alerts.min_severity``."""
    return "below-min-severity" if finding.severity.rank < how.settings.min_severity.rank else None


STAGES: Sequence[Stage] = (channel_missing, rule_not_announced, below_min_severity)


async def follow(
    session: AsyncSession,
    *,
    judged: Mapping[str, Judged],
    rows: Mapping[str, FindingRow],
    how: Announcing,
    now: datetime,
    ids: Ids,
) -> dict[str, Decision]:
    """Bring alerts and outbox in line with what became of the findings, in the caller's transaction.

    Args:
        rows: the findings as they are now, by fingerprint, as ``judged`` is.
    """
    await session.flush()
    alerts = await _alerts(session, rows)
    decisions: dict[str, Decision] = {}
    lines: list[OutboxRow] = []
    for fingerprint, word in judged.items():
        row = rows[fingerprint]
        alert = alerts.get((row.id, row.openings))
        decision = _decide(word, alert, how)
        decisions[fingerprint] = decision
        tell = log.info if decision in ("announced", "resolved", "withdrawn") else log.debug
        tell("alert", decision=decision, rule=row.rule, cluster=row.cluster, fingerprint=fingerprint)
        if decision == "announced" and how.channel is not None:
            alert = _opened(row, how.channel, now, ids)
            session.add(alert)
            lines.append(_line(alert, "post", now))
        elif alert is None:
            continue
        elif decision == "already-announced":
            alert.document = to_document(word.finding)
            alert.severity = word.finding.severity.value
            alert.updated_at = now
        elif decision in ("resolved", "withdrawn"):
            alert.state = decision
            alert.resolved_at = alert.updated_at = now
            if decision == "resolved":
                lines.append(_line(alert, "resolve", now))
    await session.flush()
    session.add_all(lines)
    return decisions


def _decide(word: Judged, alert: AlertRow | None, how: Announcing) -> Decision:
    if word.change == "kept":
        return "not-confirmed"
    if word.change == "closed":
        if alert is None:
            return "never-announced"
        return "resolved" if word.state == "resolved" else "withdrawn"
    if alert is not None:
        return "already-announced"
    return next((reason for stage in STAGES if (reason := stage(word.finding, how))), "announced")


async def _alerts(session: AsyncSession, rows: Mapping[str, FindingRow]) -> dict[tuple[str, int], AlertRow]:
    """Open alerts of the findings, by finding and opening."""
    if not rows:
        return {}
    cluster = next(iter(rows.values())).cluster
    found = await session.exec(select(AlertRow).where(col(AlertRow.cluster) == cluster, col(AlertRow.state) == "open"))
    return {(alert.finding_id, alert.opening): alert for alert in found}


def _opened(row: FindingRow, channel: str, now: datetime, ids: Ids) -> AlertRow:
    return AlertRow(
        id=ids(),
        finding_id=row.id,
        opening=row.openings,
        cluster=row.cluster,
        fingerprint=row.fingerprint,
        rule=row.rule,
        severity=row.severity,
        state="open",
        channel=channel,
        opened_at=now,
        updated_at=now,
        document=row.document,
    )


def _line(alert: AlertRow, action: Literal["post", "resolve"], now: datetime) -> OutboxRow:
    return OutboxRow(
        alert_id=alert.id, action=action, channel=alert.channel, state="pending", created_at=now, next_attempt_at=now
    )


def view(row: AlertRow) -> AlertView:
    """The alert as the bot shows it. ``opened_at`` is when people were told, not when the trouble began."""
    return AlertView(
        id=row.id,
        cluster=row.cluster,
        finding=msgspec.convert(row.document, Finding),
        state=row.state,
        opened_at=row.opened_at.timestamp(),
        updated_at=row.updated_at.timestamp(),
        resolved_at=row.resolved_at.timestamp() if row.resolved_at else None,
    )
