"""Which of our languages a Slack user reads, from their Slack settings."""

import asyncio
import logging
import time
from collections.abc import Callable

from slack_sdk.web.async_client import AsyncWebClient

from bot.client import call
from bot.errors import DeliveryError
from rules.language import LANGUAGES, Language

log = logging.getLogger(__name__)

KEPT_SECONDS = 24 * 3600
KEPT_AFTER_FAILURE_SECONDS = 600
MOST_KEPT = 5000


class UserLanguages:
    """Asks Slack once per user and day. Trouble means "not known", never an error, and never a long wait.

    Args:
        timeout_seconds: longest wait for one answer.
        clock: monotonic seconds.
    """

    def __init__(
        self, client: AsyncWebClient, *, timeout_seconds: float = 3.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._timeout = timeout_seconds
        self._clock = clock
        self._known: dict[str, tuple[Language | None, float]] = {}

    async def of(self, user: str | None) -> Language | None:
        """Language of a user id; None when unknown or none of ours."""
        if not user:
            return None
        language, until = self._known.get(user, (None, 0.0))
        if self._clock() < until:
            return language
        kept = KEPT_SECONDS
        try:
            async with asyncio.timeout(self._timeout):
                answer = await call(self._client.users_info(user=user, include_locale=True))
            language = from_locale(str((answer.get("user") or {}).get("locale") or ""))
        except (DeliveryError, TimeoutError) as error:
            log.warning("language of a user is not known: %s", str(error) or "time-out")
            kept = KEPT_AFTER_FAILURE_SECONDS
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        self._known[user] = (language, self._clock() + kept)
        return language


def from_locale(locale: str) -> Language | None:
    """The language of a locale such as ``es-LA``, where it is one of ours."""
    name = locale.replace("_", "-").split("-")[0].lower()
    return next((language for language in LANGUAGES if language == name), None)
