"""The outbox on record: what is to be said, by whom it is being said, and what became of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, cast

import msgspec
from sqlalchemy import update
from sqlalchemy.orm import aliased
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from bot.port import MessageRef
from service.store.sql import affected
from service.store.tables import AlertRow, OutboxRow
from service.store.types import without_nul
from service.views import Undelivered

ACTIVE = ("pending", "sending")

State = Literal["pending", "done", "dropped", "failed"]
Reason = Literal["posted", "edited", "gone-before-said", "nothing-to-edit", "refused", "gave-up", "try-again", "fault"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one line.

    Attributes:
        ref: the message as it is now; None when there is none, or it is unknown.
        retry_at: set while ``state`` is ``pending``.
        uncertain: the message may be there although no answer came.
        error: what to tell people about a failure.
    """

    state: State
    reason: Reason
    ref: MessageRef | None = None
    retry_at: datetime | None = None
    uncertain: bool = False
    error: str | None = None


async def claim(
    session: AsyncSession, owner: str, now: datetime, lease: timedelta
) -> tuple[OutboxRow, AlertRow] | None:
    """Take the oldest line that is due and first in its channel; None when there is none, or another process was
    quicker (then call again after a while).

    A line that another process took and never finished is taken over when its lease has ended; whether its message
    was sent is then uncertain.
    """
    earlier = aliased(OutboxRow)
    first = ~(
        select(earlier.seq)
        .where(
            col(earlier.channel) == col(OutboxRow.channel),
            col(earlier.state).in_(ACTIVE),
            col(earlier.seq) < col(OutboxRow.seq),
        )
        .exists()
    )
    due = ((col(OutboxRow.state) == "pending") & (col(OutboxRow.next_attempt_at) <= now)) | (
        (col(OutboxRow.state) == "sending") & (col(OutboxRow.lease_until) < now)
    )
    line = (await session.exec(select(OutboxRow).where(due, first).order_by(col(OutboxRow.seq)).limit(1))).first()
    if line is None:
        return None
    unchanged = (
        col(OutboxRow.seq) == line.seq,
        col(OutboxRow.state) == line.state,
        col(OutboxRow.attempts) == line.attempts,
    )
    taken = await affected(
        session,
        update(OutboxRow)
        .where(*unchanged)
        .values(
            state="sending",
            uncertain=line.uncertain or line.state == "sending",
            attempts=line.attempts + 1,
            lease_owner=owner,
            lease_until=now + lease,
        ),
    )
    if not taken:
        return None
    await session.refresh(line)
    return line, (await session.exec(select(AlertRow).where(col(AlertRow.id) == line.alert_id))).one()


async def settle(session: AsyncSession, line: OutboxRow, outcome: Outcome, now: datetime) -> bool:
    """Write the outcome; False when the line was taken over meanwhile (a message that was sent is recorded anyway)."""
    error = without_nul(outcome.error) if outcome.error else None
    mine = (
        col(OutboxRow.seq) == line.seq,
        col(OutboxRow.state) == "sending",
        col(OutboxRow.lease_owner) == line.lease_owner,
        col(OutboxRow.attempts) == line.attempts,
    )
    settled = await affected(
        session,
        update(OutboxRow)
        .where(*mine)
        .values(
            state=outcome.state,
            reason=outcome.reason,
            uncertain=outcome.uncertain,
            next_attempt_at=outcome.retry_at or line.next_attempt_at,
            lease_owner=None,
            lease_until=None,
            finished_at=None if outcome.state == "pending" else now,
            last_error=error,
        ),
    )
    alert: dict[str, str | None] = {}
    if outcome.ref is not None:
        alert |= {"message_channel": outcome.ref.channel, "message_ts": outcome.ref.ts}
    if settled and outcome.state != "pending":
        alert["trouble"] = error if outcome.state == "failed" else None
    if alert:
        await affected(session, update(AlertRow).where(col(AlertRow.id) == line.alert_id).values(**alert))
    return settled == 1


async def release(session: AsyncSession, now: datetime, *, owner: str | None = None) -> int:
    """Give back lines that ``owner`` (None: anyone) was sending and will not finish: their outcome is uncertain."""
    statement = update(OutboxRow).where(col(OutboxRow.state) == "sending")
    if owner is not None:
        statement = statement.where(col(OutboxRow.lease_owner) == owner)
    values = {"state": "pending", "uncertain": True, "next_attempt_at": now, "lease_owner": None, "lease_until": None}
    return await affected(session, statement.values(**values))


async def revive(session: AsyncSession, now: datetime) -> int:
    """Try lines again that failed for good while their alert is still open: the reason may have been mended."""
    still_open = select(AlertRow.id).where(col(AlertRow.state) == "open")
    failed = (
        col(OutboxRow.state) == "failed",
        col(OutboxRow.action) == "post",
        col(OutboxRow.alert_id).in_(still_open),
    )
    values = {"state": "pending", "attempts": 0, "created_at": now, "next_attempt_at": now, "finished_at": None}
    return await affected(session, update(OutboxRow).where(*failed).values(**values))


async def undelivered(session: AsyncSession, clusters: Sequence[str]) -> list[Undelivered]:
    """Lines that failed for good, newest first."""
    statement = (
        select(OutboxRow, AlertRow)
        .where(
            col(OutboxRow.state) == "failed",
            col(AlertRow.id) == col(OutboxRow.alert_id),
            col(AlertRow.cluster).in_(clusters),
        )
        .order_by(col(OutboxRow.seq).desc())
    )
    return [
        Undelivered(
            alert_id=alert.id,
            cluster=alert.cluster,
            rule=alert.rule,
            action=cast("Literal['post', 'resolve']", line.action),
            reason=line.reason or "",
            detail=line.last_error or "",
            since=line.finished_at or line.created_at,
        )
        for line, alert in await session.exec(statement)
    ]
