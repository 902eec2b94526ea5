"""Fetched prices, with history, and how the latest attempts went."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "catalog_snapshots",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=True),
        sa.Column("fetched_at", MOMENT, nullable=False),
        sa.Column("checked_at", MOMENT, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("offers", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_catalog_snapshots"),
    )
    op.create_index("ix_catalog_snapshots_provider_id", "catalog_snapshots", ["provider", "id"], unique=False)
    op.create_table(
        "catalog_attempts",
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("attempted_at", MOMENT, nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("provider", name="pk_catalog_attempts"),
    )


def downgrade() -> None:
    op.drop_table("catalog_attempts")
    op.drop_table("catalog_snapshots")
