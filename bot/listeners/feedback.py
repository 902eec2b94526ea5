"""The buttons under an answer: whether it helped."""

import hashlib
import logging
from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.blocks.answer import HELPED
from bot.client import call
from bot.errors import DeliveryError
from bot.port import Advisor
from bot.words import words
from rules.errors import InputInvalid
from rules.language import LANGUAGES

log = logging.getLogger(__name__)


class Feedback:
    """Passes clicks on to the advisor, each person's once per answer; of the person nothing is kept but a digest that
    recognises the second click."""

    def __init__(self, advisor: Advisor, client: AsyncWebClient) -> None:
        self._advisor = advisor
        self._client = client

    async def handle(self, action: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Record a click and thank for it. Raises nothing but cancellation."""
        language, _, answer = str(action.get("value") or "").partition(":")
        user = str((body.get("user") or {}).get("id") or "")
        if language not in LANGUAGES or not answer:
            log.warning("a click without an answer was dropped")
            return
        helped = action.get("action_id") == HELPED
        w = words()
        try:
            if await self._first(user, answer, helped):
                await self._advisor.feedback(answer, helped=helped)
            said = w.feedback_thanks.in_(language)
        except InputInvalid:
            said = w.feedback_gone.in_(language)
        except Exception:
            log.exception("feedback could not be recorded")
            said = w.error.in_(language)
        await self._tell(body, user, said)

    async def _first(self, user: str, answer: str, helped: bool) -> bool:
        digest = hashlib.sha256(f"{user}:{answer}:{helped}".encode()).hexdigest()[:32]
        return await self._advisor.claim_event(f"feedback:{digest}")

    async def _tell(self, body: Mapping[str, Any], user: str, said: str) -> None:
        container = body.get("container") or {}
        channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or "")
        if not channel or not user:
            return
        message = body.get("message") or {}
        thread = message.get("thread_ts") or container.get("thread_ts")
        try:
            await call(
                self._client.chat_postEphemeral(
                    channel=channel, user=user, text=said, thread_ts=str(thread) if thread else None
                )
            )
        except DeliveryError as error:
            log.info("nobody was thanked for feedback: %s", error)
