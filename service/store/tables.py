"""The tables. Rows stay inside :mod:`service.store`, :mod:`service.audits`, :mod:`service.alerts` and
:mod:`service.outbox`; everyone else sees :mod:`service.views`.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from service.store.types import Document, UtcDateTime

ACTIVE_AUDIT = text("state IN ('queued', 'running')")
ACTIVE_OUTBOX = text("state IN ('pending', 'sending')")


def _moment(*, nullable: bool = False, index: bool = False) -> Column[Any]:
    return Column(UtcDateTime, nullable=nullable, index=index)


def _text(*, nullable: bool = False) -> Column[Any]:
    return Column(Text, nullable=nullable)


class Row(SQLModel):
    """Base of all tables: one metadata with names for constraints, so that migrations can name them."""

    metadata: ClassVar[MetaData] = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class ClusterRow(Row, table=True):
    """A cluster that was configured once, and how its latest audits went.

    Rows of clusters that are no longer configured stay, with their findings; nobody is shown them until they come back.
    """

    __tablename__ = "clusters"

    name: str = Field(primary_key=True)
    kind: str
    first_seen: datetime = Field(sa_column=_moment())
    audited_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    gpu_nodes: int | None = None
    failed_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    error_code: str | None = None
    error_detail: str | None = Field(default=None, sa_column=_text(nullable=True))


class AuditRow(Row, table=True):
    """One audit. The partial unique index is what keeps two replicas from auditing one cluster at once.

    ``lease_until``: its process moves it on while it lives; past it an unfinished audit is taken for interrupted.
    """

    __tablename__ = "audits"
    __table_args__ = (
        Index("ix_audits_cluster_queued_at", "cluster", "queued_at"),
        Index(
            "uq_audits_active",
            "cluster",
            unique=True,
            sqlite_where=ACTIVE_AUDIT,
            postgresql_where=ACTIVE_AUDIT,
        ),
    )

    id: str = Field(primary_key=True)
    cluster: str = Field(foreign_key="clusters.name")
    state: str
    trigger: str
    owner: str
    queued_at: datetime = Field(sa_column=_moment())
    started_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    finished_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True, index=True))
    lease_until: datetime = Field(sa_column=_moment())
    error_code: str | None = None
    error_detail: str | None = Field(default=None, sa_column=_text(nullable=True))
    report: Any = Field(default=None, sa_column=Column(Document, nullable=True))


class FindingRow(Row, table=True):
    """A finding over time. ``openings`` counts how often it opened; ``document`` is the whole finding."""

    __tablename__ = "findings"
    __table_args__ = (
        UniqueConstraint("cluster", "fingerprint"),
        Index("ix_findings_severity_rank_id", "severity_rank", "id"),
        Index("ix_findings_cluster_state", "cluster", "state"),
    )

    id: str = Field(primary_key=True)
    cluster: str = Field(foreign_key="clusters.name")
    fingerprint: str
    rule: str
    severity: str
    severity_rank: int
    state: str
    reason: str | None = None
    openings: int
    first_seen: datetime = Field(sa_column=_moment())
    opened_at: datetime = Field(sa_column=_moment())
    last_seen: datetime = Field(sa_column=_moment())
    resolved_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    document: Any = Field(sa_column=Column(Document, nullable=False))


class AlertRow(Row, table=True):
    """One opening of one finding that people are told about.

    ``channel``: where it is announced, as the settings name it. ``message_channel`` and ``message_ts``: the message,
    once it was posted. ``trouble``: why the latest notification failed for good.
    """

    __tablename__ = "alerts"
    __table_args__ = (UniqueConstraint("finding_id", "opening"),)

    id: str = Field(primary_key=True)
    finding_id: str = Field(foreign_key="findings.id")
    opening: int
    cluster: str = Field(foreign_key="clusters.name")
    fingerprint: str
    rule: str
    severity: str
    state: str = Field(index=True)
    opened_at: datetime = Field(sa_column=_moment())
    updated_at: datetime = Field(sa_column=_moment())
    resolved_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    channel: str
    message_channel: str | None = None
    message_ts: str | None = None
    trouble: str | None = Field(default=None, sa_column=_text(nullable=True))
    document: Any = Field(sa_column=Column(Document, nullable=False))


class OutboxRow(Row, table=True):
    """One thing to say, written in the transaction that makes it true and said afterwards.

    ``seq`` is the order within a ``channel``. ``uncertain``: an attempt ended without an answer, so the message may be
    there already. ``reason``: the named outcome of a finished row.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("alert_id", "action"),
        Index("ix_outbox_active", "channel", "seq", sqlite_where=ACTIVE_OUTBOX, postgresql_where=ACTIVE_OUTBOX),
    )

    seq: int | None = Field(
        default=None,
        sa_column=Column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True),
    )
    alert_id: str = Field(foreign_key="alerts.id")
    action: str
    channel: str
    state: str
    reason: str | None = None
    uncertain: bool = False
    attempts: int = 0
    created_at: datetime = Field(sa_column=_moment())
    next_attempt_at: datetime = Field(sa_column=_moment())
    lease_owner: str | None = None
    lease_until: datetime | None = Field(default=None, sa_column=_moment(nullable=True))
    finished_at: datetime | None = Field(default=None, sa_column=_moment(nullable=True, index=True))
    last_error: str | None = Field(default=None, sa_column=_text(nullable=True))


class QuestionRow(Row, table=True):
    """A question that was asked and what was read in it; never who asked.

    ``text``: redacted; kept while the question counts as unanswered, else only for a day, in case someone says that the
    answer did not help. ``conversation``: digest of the thread that it was asked in.
    """

    __tablename__ = "questions"
    __table_args__ = (Index("ix_questions_conversation_id", "conversation", "id"),)

    id: str = Field(primary_key=True)
    asked_at: datetime = Field(sa_column=_moment(index=True))
    language: str
    outcome: str = Field(index=True)
    text: str | None = Field(default=None, sa_column=_text(nullable=True))
    conversation: str | None = None
    reading: Any = Field(sa_column=Column(Document, nullable=False))


class FeedbackRow(Row, table=True):
    """Whether an answer helped, as one person said."""

    __tablename__ = "feedback"

    id: str = Field(primary_key=True)
    question_id: str = Field(foreign_key="questions.id", index=True)
    given_at: datetime = Field(sa_column=_moment())
    helped: bool
    comment: str | None = Field(default=None, sa_column=_text(nullable=True))


class SlackEventRow(Row, table=True):
    """An event id that Slack has delivered, kept for a while to recognise repeated deliveries."""

    __tablename__ = "slack_events"

    event_id: str = Field(primary_key=True)
    seen_at: datetime = Field(sa_column=_moment(index=True))
