"""Questions on record: what stays unanswered, whether answers helped, and what a conversation was about."""

import hashlib
import re
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
from sqlalchemy import exists
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from rules.answers import Answer, Previous, previous
from rules.language import Language
from service.clock import Ids
from service.errors import AnswerUnknown, CursorInvalid, redact
from service.store.cursors import packed, unpacked
from service.store.tables import FeedbackRow, QuestionRow
from service.store.types import to_document, without_nul
from service.views import Unanswered, UnansweredPage, Why

LIMIT = 200
TEXT = 4000
"""Characters of a question that are kept; a pasted log says what it has to say in its first lines."""
TEXT_KEPT = timedelta(days=1)
"""How long the text of an answered question is kept, in case someone says that the answer did not help."""
REMEMBERED = timedelta(hours=24)
"""How long a conversation is taken up again."""

_PEOPLE = (
    (re.compile(r"<@[^>]*>"), "@someone"),
    (re.compile(r"<(?:mailto:)?[^<>@\s|]+@[^<>@\s|]+(?:\|[^>]*)?>"), "<address>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"), "<address>"),
)


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    id: str


def digest(conversation: str) -> str:
    """What is kept of the name of a conversation: it tells two apart, and says nothing of the people in it."""
    return hashlib.sha256(conversation.encode()).hexdigest()[:32]


def anonymous(text: str) -> str:
    """``text`` as it may be kept: without people and secrets, cut to :data:`TEXT` characters."""
    for pattern, replacement in _PEOPLE:
        text = pattern.sub(replacement, text)
    return without_nul(redact(text))[:TEXT]


def record(
    session: AsyncSession, *, text: str, answer: Answer, conversation: str | None, now: datetime, id_: str
) -> None:
    """Put a question and what was read in it on record."""
    outcome = "abstained" if answer.abstain else "asked-back" if answer.clarify else "answered"
    session.add(
        QuestionRow(
            id=id_,
            asked_at=now,
            language=answer.language,
            outcome=outcome,
            text=anonymous(text),
            conversation=None if conversation is None else digest(conversation),
            reading=to_document(previous(answer)),
        )
    )


async def before(session: AsyncSession, conversation: str, now: datetime) -> Previous | None:
    """What the latest message of a conversation was about; None when there was none lately."""
    here = col(QuestionRow.conversation) == digest(conversation)
    lately = col(QuestionRow.asked_at) > now - REMEMBERED
    newest = select(QuestionRow).where(here, lately).order_by(col(QuestionRow.id).desc()).limit(1)
    row = (await session.exec(newest)).first()
    return None if row is None else msgspec.convert(row.reading, Previous)


async def give_feedback(
    session: AsyncSession, answer_id: str, *, helped: bool, comment: str | None, now: datetime, ids: Ids
) -> None:
    """Record that an answer helped somebody, or did not.

    Raises:
        AnswerUnknown: no answer on record has that id.
    """
    row = await session.get(QuestionRow, answer_id) if "\x00" not in answer_id else None
    if row is None:
        raise AnswerUnknown(answer_id)
    kept = anonymous(comment) if comment else None
    session.add(FeedbackRow(id=ids(), question_id=answer_id, given_at=now, helped=helped, comment=kept))


async def unanswered(
    session: AsyncSession, *, language: Language | None, limit: int, cursor: str | None
) -> UnansweredPage:
    """Questions that were not answered, or whose answer did not help, newest first.

    Raises:
        CursorInvalid: not a cursor of this list.
    """
    limit = min(max(limit, 1), LIMIT)
    statement = select(QuestionRow).where((col(QuestionRow.outcome) != "answered") | unhelpful())
    if language is not None:
        statement = statement.where(col(QuestionRow.language) == language)
    if cursor is not None:
        statement = statement.where(col(QuestionRow.id) < _decoded(cursor))
    rows = list(await session.exec(statement.order_by(col(QuestionRow.id).desc()).limit(limit + 1)))
    more = len(rows) > limit
    rows = rows[:limit]
    said = await _feedback(session, [row.id for row in rows])
    items = [_view(row, said.get(row.id, [])) for row in rows]
    return UnansweredPage(items, packed(_Cursor(rows[-1].id)) if more else None)


async def forget(session: AsyncSession, question_id: str) -> None:
    """Take a question off the list and delete what was kept of it.

    Raises:
        AnswerUnknown: no question on record has that id.
    """
    row = await session.get(QuestionRow, question_id) if "\x00" not in question_id else None
    if row is None:
        raise AnswerUnknown(question_id)
    for given in await session.exec(select(FeedbackRow).where(col(FeedbackRow.question_id) == question_id)):
        await session.delete(given)
    await session.flush()
    await session.delete(row)


def unhelpful() -> Any:
    """That somebody said the answer to a question did not help."""
    same = col(FeedbackRow.question_id) == col(QuestionRow.id)
    return exists().where(same, col(FeedbackRow.helped).is_(False))


async def _feedback(session: AsyncSession, ids: list[str]) -> dict[str, list[FeedbackRow]]:
    found: dict[str, list[FeedbackRow]] = {}
    if ids:
        wanted = select(FeedbackRow).where(col(FeedbackRow.question_id).in_(ids)).order_by(col(FeedbackRow.id))
        for row in await session.exec(wanted):
            found.setdefault(row.question_id, []).append(row)
    return found


def _view(row: QuestionRow, said: list[FeedbackRow]) -> Unanswered:
    return Unanswered(
        id=row.id,
        asked_at=row.asked_at,
        language=cast("Language", row.language),
        why="not-helped" if row.outcome == "answered" else cast("Why", row.outcome),
        text=row.text,
        read=msgspec.convert(row.reading, Previous),
        helped=sum(item.helped for item in said),
        not_helped=sum(not item.helped for item in said),
        comments=[item.comment for item in said if item.comment],
    )


def _decoded(cursor: str) -> str:
    decoded = unpacked(cursor, _Cursor)
    if "\x00" in decoded.id:
        raise CursorInvalid(cursor)
    return decoded.id
