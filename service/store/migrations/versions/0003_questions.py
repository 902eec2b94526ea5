"""Questions on record and feedback."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "questions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("language", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("conversation", sa.String(), nullable=True),
        sa.Column("reading", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_questions"),
    )
    op.create_index("ix_questions_asked_at", "questions", ["asked_at"], unique=False)
    op.create_index("ix_questions_outcome", "questions", ["outcome"], unique=False)
    op.create_index("ix_questions_conversation_id", "questions", ["conversation", "id"], unique=False)

    op.create_table(
        "feedback",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("given_at", MOMENT, nullable=False),
        sa.Column("helped", sa.Boolean(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name="fk_feedback_question_id_questions"),
        sa.PrimaryKeyConstraint("id", name="pk_feedback"),
    )
    op.create_index("ix_feedback_question_id", "feedback", ["question_id"], unique=False)


def downgrade() -> None:
    op.drop_table("feedback")
    op.drop_table("questions")
