"""Delivering what the outbox holds. What happens to one line is the list :data:`STAGES`: each stage settles the line
with a named reason, or lets it pass to the next.

Lines of one channel go out in the order in which they were written, one after the other: a line waits for the one
before it, also while that one is to be tried again. Before sending, a line is marked as being sent, with a lease;
afterwards, as done. When a process dies in between, nobody knows whether the message was sent: whoever takes the line
over says so to the notifier (``maybe_posted``), which looks for the message before it posts another one. So no message
is lost, and none is sent twice as long as the notifier can search.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from bot.errors import DeliveryPermanent, DeliveryTemporary
from bot.port import AlertView, MessageRef
from rules.language import Language
from service import alerts
from service.clock import Clock
from service.store import Store
from service.store import outbox as outbox_store
from service.store.outbox import Outcome
from service.store.tables import AlertRow, OutboxRow

LEASE = timedelta(seconds=300)
ATTEMPT_SECONDS = 240.0
"""Of one attempt, below the lease: a line is never sent by two."""
FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 300.0

log = structlog.get_logger(__name__)


class Notifier(Protocol):
    """Who tells people; :class:`bot.delivery.SlackDelivery` is one. Errors are those of :mod:`bot.errors`."""

    async def post(self, alert: AlertView, language: Language, *, maybe_posted: bool = False) -> MessageRef:
        """Announce an alert; ``maybe_posted``: look first, an earlier attempt may have done it."""
        ...

    async def update(self, ref: MessageRef, alert: AlertView, language: Language) -> MessageRef:
        """Bring its message up to date; where it is now."""
        ...


class Delivery(msgspec.Struct, frozen=True):
    """One line on its way."""

    line: OutboxRow
    alert: AlertRow
    notifier: Notifier
    language: Language
    now: datetime
    give_up: timedelta

    @property
    def ref(self) -> MessageRef | None:
        """The message of the alert, where there is one."""
        if self.alert.message_channel is None or self.alert.message_ts is None:
            return None
        return MessageRef(self.alert.message_channel, self.alert.message_ts)


Stage = Callable[[Delivery], Awaitable[Outcome | None]]


async def gone_before_said(delivery: Delivery) -> Outcome | None:
    """The trouble is over and nobody was told: then nobody is.

    Where an earlier attempt may have told people of a trouble that is resolved now, the line goes on: better a message
    that says "resolved" at once than one that stays open for ever.
    """
    if delivery.line.action != "post" or delivery.alert.state == "open":
        return None
    if delivery.alert.state == "resolved" and delivery.line.uncertain:
        return None
    return Outcome(state="dropped", reason="gone-before-said")


async def nothing_to_edit(delivery: Delivery) -> Outcome | None:
    """The alert was never posted."""
    if delivery.line.action == "resolve" and delivery.ref is None:
        return Outcome(state="dropped", reason="nothing-to-edit")
    return None


async def too_old(delivery: Delivery) -> Outcome | None:
    """It was tried for long enough."""
    if delivery.line.attempts == 1 or delivery.now - delivery.line.created_at <= delivery.give_up:
        return None
    error = delivery.line.last_error or "the process ended while it was sending"
    return Outcome(state="failed", reason="gave-up", uncertain=delivery.line.uncertain, error=error)


async def say(delivery: Delivery) -> Outcome | None:
    """Post or edit the message."""
    alert, ref = alerts.view(delivery.alert), delivery.ref
    unsure = delivery.line.uncertain
    try:
        async with asyncio.timeout(ATTEMPT_SECONDS):
            if ref is None:
                ref = await delivery.notifier.post(alert, delivery.language, maybe_posted=unsure)
                return Outcome(state="done", reason="posted", ref=ref)
            ref = await delivery.notifier.update(ref, alert, delivery.language)
            return Outcome(state="done", reason="edited", ref=ref)
    except DeliveryPermanent as error:
        return Outcome(state="failed", reason="refused", uncertain=unsure, error=str(error))
    except DeliveryTemporary as error:
        wait = error.retry_after
        return _again(delivery, "try-again", str(error), wait=wait, uncertain=unsure or error.outcome_unknown)
    except TimeoutError:
        return _again(delivery, "try-again", f"no answer within {ATTEMPT_SECONDS:g} s", uncertain=True)
    except Exception as error:
        log.exception("a notification met a fault of gpu-advisor", alert=delivery.alert.id)
        return _again(delivery, "fault", f"{type(error).__name__}: {error}", uncertain=True)


STAGES: Sequence[Stage] = (gone_before_said, nothing_to_edit, too_old, say)


class Outbox:
    """Delivers lines. Several may work on one database.

    Args:
        owner: id of this process, different at every start.
        give_up: how long a line is tried.
    """

    def __init__(
        self, store: Store, notifier: Notifier, *, clock: Clock, owner: str, language: Language, give_up: timedelta
    ) -> None:
        self._store = store
        self._notifier = notifier
        self._clock = clock
        self._owner = owner
        self._language = language
        self._give_up = give_up
        self._busy = asyncio.Lock()

    async def recover(self) -> None:
        """At start: take up what a dead process was sending, and try again what someone had to mend."""
        async with self._store.write() as session:
            if self._store.dialect == "sqlite":
                await outbox_store.release(session, self._clock())
            await outbox_store.revive(session, self._clock())

    async def drain(self) -> list[Outcome]:
        """Deliver everything that is due, in order; what became of each line."""
        outcomes: list[Outcome] = []
        async with self._busy:
            while (outcome := await self._deliver_next()) is not None:
                outcomes.append(outcome)
        return outcomes

    async def release(self) -> None:
        """At the end: give back what this process was sending."""
        async with self._store.write() as session:
            await outbox_store.release(session, self._clock(), owner=self._owner)

    async def _deliver_next(self) -> Outcome | None:
        async with self._store.write() as session:
            claimed = await outbox_store.claim(session, self._owner, self._clock(), LEASE)
        if claimed is None:
            return None
        line, alert = claimed
        delivery = Delivery(line, alert, self._notifier, self._language, self._clock(), self._give_up)
        outcome = await _settled(delivery)
        async with self._store.write() as session:
            if not await outbox_store.settle(session, line, outcome, self._clock()):
                log.warning("a notification was taken over while it was being sent", alert=alert.id)
        level = log.error if outcome.state == "failed" else log.info
        level(
            "notification",
            action=line.action,
            reason=outcome.reason,
            alert=alert.id,
            rule=alert.rule,
            cluster=alert.cluster,
            attempt=line.attempts,
            error=outcome.error,
        )
        return outcome


async def _settled(delivery: Delivery) -> Outcome:
    for stage in STAGES:
        outcome = await stage(delivery)
        if outcome is not None:
            return outcome
    raise AssertionError("the last stage settles every line")


def _again(
    delivery: Delivery, reason: outbox_store.Reason, error: str, *, wait: float | None = None, uncertain: bool
) -> Outcome:
    if wait is None:
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(delivery.line.attempts - 1, 16), LONGEST_WAIT_SECONDS)
    return Outcome(
        state="pending",
        reason=reason,
        retry_at=delivery.now + timedelta(seconds=wait),
        uncertain=uncertain,
        error=error,
    )
