"""The Messages tab of the app: suggested prompts when someone opens it.

With ``agent_view`` (the default of apps since 2026-06-30) there is no ``assistant_thread_started``; ``app_home_opened``
with the tab ``messages`` takes its place: https://docs.slack.dev/ai/migrating-to-agent-messaging/
"""

import logging
from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.client import call
from bot.errors import DeliveryError
from bot.people import UserLanguages
from bot.words import words
from rules.language import Language

log = logging.getLogger(__name__)


class Home:
    """Suggests questions in the user's language."""

    def __init__(self, client: AsyncWebClient, people: UserLanguages, default_language: Language) -> None:
        self._client = client
        self._people = people
        self._default = default_language

    async def handle(self, event: Mapping[str, Any]) -> None:
        """Set the prompts when the Messages tab was opened. Raises nothing but cancellation."""
        channel = event.get("channel")
        if event.get("tab") != "messages" or not channel:
            return
        language = await self._people.of(event.get("user")) or self._default
        w = words()
        try:
            await call(
                self._client.assistant_threads_setSuggestedPrompts(
                    channel_id=str(channel),
                    title=w.prompts_title.in_(language),
                    prompts=[
                        {"title": prompt.title.in_(language), "message": prompt.message.in_(language)}
                        for prompt in w.prompts
                    ],
                )
            )
        except DeliveryError as error:
            log.warning("no prompts are suggested: %s", error)
