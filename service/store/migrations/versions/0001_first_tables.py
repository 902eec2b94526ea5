"""Clusters, audits, findings, alerts, outbox and Slack events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
ACTIVE_AUDIT = sa.text("state IN ('queued', 'running')")
ACTIVE_OUTBOX = sa.text("state IN ('pending', 'sending')")


def upgrade() -> None:
    op.create_table(
        "clusters",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.Column("audited_at", MOMENT, nullable=True),
        sa.Column("gpu_nodes", sa.Integer(), nullable=True),
        sa.Column("failed_at", MOMENT, nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_clusters"),
    )
    op.create_table(
        "slack_events",
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_slack_events"),
    )
    op.create_index("ix_slack_events_seen_at", "slack_events", ["seen_at"], unique=False)

    op.create_table(
        "audits",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("queued_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("report", DOCUMENT, nullable=True),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_audits_cluster_clusters"),
        sa.PrimaryKeyConstraint("id", name="pk_audits"),
    )
    op.create_index("ix_audits_cluster_queued_at", "audits", ["cluster", "queued_at"], unique=False)
    op.create_index("ix_audits_finished_at", "audits", ["finished_at"], unique=False)
    op.create_index(
        "uq_audits_active", "audits", ["cluster"], unique=True, sqlite_where=ACTIVE_AUDIT, postgresql_where=ACTIVE_AUDIT
    )

    op.create_table(
        "findings",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("severity_rank", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("openings", sa.Integer(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.Column("opened_at", MOMENT, nullable=False),
        sa.Column("last_seen", MOMENT, nullable=False),
        sa.Column("resolved_at", MOMENT, nullable=True),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_findings_cluster_clusters"),
        sa.PrimaryKeyConstraint("id", name="pk_findings"),
        sa.UniqueConstraint("cluster", "fingerprint", name="uq_findings_cluster_fingerprint"),
    )
    op.create_index("ix_findings_cluster_state", "findings", ["cluster", "state"], unique=False)
    op.create_index("ix_findings_severity_rank_id", "findings", ["severity_rank", "id"], unique=False)

    op.create_table(
        "alerts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("finding_id", sa.String(), nullable=False),
        sa.Column("opening", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("opened_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("resolved_at", MOMENT, nullable=True),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("message_channel", sa.String(), nullable=True),
        sa.Column("message_ts", sa.String(), nullable=True),
        sa.Column("trouble", sa.Text(), nullable=True),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.name"], name="fk_alerts_cluster_clusters"),
        sa.ForeignKeyConstraint(["finding_id"], ["findings.id"], name="fk_alerts_finding_id_findings"),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.UniqueConstraint("finding_id", "opening", name="uq_alerts_finding_id_opening"),
    )
    op.create_index("ix_alerts_state", "alerts", ["state"], unique=False)

    op.create_table(
        "outbox",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("next_attempt_at", MOMENT, nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", MOMENT, nullable=True),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name="fk_outbox_alert_id_alerts"),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sa.UniqueConstraint("alert_id", "action", name="uq_outbox_alert_id_action"),
    )
    op.create_index(
        "ix_outbox_active",
        "outbox",
        ["channel", "seq"],
        unique=False,
        sqlite_where=ACTIVE_OUTBOX,
        postgresql_where=ACTIVE_OUTBOX,
    )
    op.create_index("ix_outbox_finished_at", "outbox", ["finished_at"], unique=False)


def downgrade() -> None:
    for table in ("outbox", "alerts", "findings", "audits", "slack_events", "clusters"):
        op.drop_table(table)
