"""The bot over Socket Mode: a WebSocket to Slack, for services without a public address."""

import asyncio
import logging

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler

from bot.app import BotApp
from bot.client import make_client
from bot.settings import SlackSettingsInvalid

log = logging.getLogger(__name__)

STUCK_AFTER_SECONDS = 30.0


class SocketConnection:
    """A connection that is opened, kept and closed.

    Use it as ``connection = SocketConnection(app)``, ``await connection.start()`` when the service starts and
    ``await connection.stop()`` when it stops. Starting returns at once: while Slack cannot be reached, attempts go on
    in the background and the service works meanwhile.

    Args:
        ping_interval_seconds: between pings; a dead connection is noticed after four of them.
        stuck_after_seconds: how long attempts with one address may fail before a new address is asked for.

    Raises:
        SlackSettingsInvalid: there is no app-level token.
    """

    def __init__(
        self, app: BotApp, *, ping_interval_seconds: float = 10.0, stuck_after_seconds: float = STUCK_AFTER_SECONDS
    ) -> None:
        if not app.settings.app_token:
            raise SlackSettingsInvalid("app_token", "Socket Mode needs an app-level token with connections:write")
        self._app = app
        self._token = app.settings.app_token
        self._ping = ping_interval_seconds
        self._stuck_after = stuck_after_seconds
        self._handler: AsyncSocketModeHandler | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to connect, in the background. Raises nothing when Slack is away."""
        if self._handler is not None:
            return
        client = make_client(self._app.settings)
        handler = AsyncSocketModeHandler(
            self._app,
            app_token=self._token,
            logger=log,
            web_client=client,
            ping_interval=self._ping,
        )
        handler.client.proxy = client.proxy
        self._handler = handler
        self._tasks = [
            asyncio.create_task(_connect(handler), name="slack-socket-connect"),
            asyncio.create_task(self._renew_stuck_address(handler), name="slack-socket-watch"),
        ]

    async def connected(self) -> bool:
        """Whether the connection is up now."""
        return self._handler is not None and bool(await self._handler.client.is_connected())

    async def stop(self, timeout_seconds: float = 10.0) -> None:
        """Close the connection and wait for answers under way."""
        handler, self._handler = self._handler, None
        if handler is None:
            return
        client = handler.client
        client.closed = True
        background = [task for task in (client.message_receiver, client.current_session_monitor) if task is not None]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await client.close()  # type: ignore[no-untyped-call]
        await asyncio.gather(*background, client.message_processor, return_exceptions=True)
        self._tasks = []
        await self._app.drain(timeout_seconds)

    async def _renew_stuck_address(self, handler: AsyncSocketModeHandler) -> None:
        """slack_sdk tries one address for ever once it has it, but Slack's addresses are good for one connection and a
        short time: forgetting it makes the next attempt ask for another."""
        client = handler.client
        while True:
            await asyncio.sleep(self._stuck_after)
            if not await client.is_connected():
                client.wss_uri = None


async def _connect(handler: AsyncSocketModeHandler) -> None:
    await handler.client.connect()  # type: ignore[no-untyped-call]
