"""Deleting what is old. Open findings, open alerts and the notifications of open alerts are never deleted."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import delete, func, update
from sqlalchemy.sql.expression import Executable
from sqlmodel import col, select

from service.store.questions import TEXT_KEPT, unhelpful
from service.store.tables import (
    AlertRow,
    AuditRow,
    FeedbackRow,
    FindingRow,
    OutboxRow,
    QuestionRow,
    SlackEventRow,
)

EVENTS_KEPT = timedelta(days=1)
"""Slack repeats a delivery for about an hour at most."""


class Step(msgspec.Struct, frozen=True):
    """One statement, for a transaction of its own, so that cleaning holds nobody up for long."""

    what: str
    statement: Executable


def steps(now: datetime, *, keep: timedelta, keep_reports: int, keep_questions: timedelta) -> list[Step]:
    """Delete what ended longer ago than ``keep``, all reports but the newest of each cluster, questions older than
    ``keep_questions``, and the text of answered ones after :data:`~service.store.questions.TEXT_KEPT`.

    The order is that of the references: what is deleted first is what the others hang on.
    """
    cutoff = now - keep
    open_alerts = select(AlertRow.id).where(col(AlertRow.state) == "open")
    return [
        Step("slack_events", _old(SlackEventRow, col(SlackEventRow.seen_at) < now - EVENTS_KEPT)),
        Step(
            "outbox",
            _old(
                OutboxRow,
                col(OutboxRow.finished_at) < cutoff,
                col(OutboxRow.state).not_in(("pending", "sending")),
                col(OutboxRow.alert_id).not_in(open_alerts),
            ),
        ),
        Step(
            "alerts",
            _old(
                AlertRow,
                col(AlertRow.state) != "open",
                col(AlertRow.resolved_at) < cutoff,
                col(AlertRow.id).not_in(select(OutboxRow.alert_id)),
            ),
        ),
        Step(
            "findings",
            _old(
                FindingRow,
                col(FindingRow.state) != "open",
                col(FindingRow.resolved_at) < cutoff,
                col(FindingRow.id).not_in(select(AlertRow.finding_id)),
            ),
        ),
        Step("feedback", _old(FeedbackRow, col(FeedbackRow.question_id).in_(_old_questions(now - keep_questions)))),
        Step("questions", _old(QuestionRow, col(QuestionRow.id).in_(_old_questions(now - keep_questions)))),
        Step("question_texts", _answered_texts(now - TEXT_KEPT)),
        Step("audits", _old(AuditRow, col(AuditRow.finished_at) < cutoff)),
        Step("reports", _surplus_reports(keep_reports)),
    ]


def _old(row: Any, *conditions: Any) -> Executable:
    return delete(row).where(*conditions)


def _surplus_reports(keep: int) -> Executable:
    place = func.row_number().over(partition_by=col(AuditRow.cluster), order_by=col(AuditRow.id).desc())
    places = select(AuditRow.id, place.label("place")).where(col(AuditRow.report).is_not(None)).subquery()
    surplus = select(places.c.id).where(places.c.place > keep)
    return update(AuditRow).where(col(AuditRow.id).in_(surplus)).values(report=None)


def _old_questions(cutoff: datetime) -> Any:
    return select(QuestionRow.id).where(col(QuestionRow.asked_at) < cutoff)


def _answered_texts(cutoff: datetime) -> Executable:
    return (
        update(QuestionRow)
        .where(
            col(QuestionRow.outcome) == "answered",
            col(QuestionRow.asked_at) < cutoff,
            col(QuestionRow.text).is_not(None),
            ~unhelpful(),
        )
        .values(text=None)
    )
