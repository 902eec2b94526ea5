"""The bot inside the service: its route in HTTP mode, its own connection in Socket Mode."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar, asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from bot.app import BotApp, build_app
from bot.http import events_endpoint
from bot.port import Advisor
from bot.settings import SlackSettings
from bot.socket import SocketConnection

DRAIN_SECONDS = 10.0
"""How long answers under way may take when the service stops."""


class SlackSide:
    """What Slack mode adds to the application.

    Args:
        settings: of Slack; their mode is not ``off``.
        advisor: answers the questions.

    Attributes:
        handlers: routes to register; none in Socket Mode.
    """

    def __init__(self, settings: SlackSettings, advisor: Advisor) -> None:
        self._bot = build_app(advisor, settings)
        self._socket = SocketConnection(self._bot) if settings.mode == "socket" else None
        self.handlers: list[ASGIRouteHandler] = [] if self._socket else [_events(self._bot)]

    @asynccontextmanager
    async def lifespan(self, _: Litestar) -> AsyncIterator[None]:
        """Connect, where the mode is to connect; at the end wait for answers under way."""
        if self._socket is not None:
            await self._socket.start()
        try:
            yield
        finally:
            if self._socket is not None:
                await self._socket.stop(DRAIN_SECONDS)
            else:
                await self._bot.drain(DRAIN_SECONDS)


def _events(bot: BotApp) -> ASGIRouteHandler:
    endpoint = events_endpoint(bot)

    @asgi("/slack/events", is_mount=False, copy_scope=True)
    async def slack_events(scope: Scope, receive: Receive, send: Send) -> None:
        """Slack's deliveries; Bolt checks their signature over the raw body."""
        await endpoint(scope, receive, send)  # type: ignore[arg-type]

    return slack_events
