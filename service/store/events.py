"""Event ids that Slack has delivered."""

from datetime import datetime

from sqlmodel.ext.asyncio.session import AsyncSession

from service.store.sql import insert_new
from service.store.tables import SlackEventRow
from service.store.types import without_nul


async def claim(session: AsyncSession, event_id: str, now: datetime) -> bool:
    """True the first time an id is seen, by any replica."""
    return await insert_new(session, SlackEventRow, {"event_id": without_nul(event_id), "seen_at": now})
