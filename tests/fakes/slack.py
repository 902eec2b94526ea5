"""A loopback Slack: the Web API as slack_sdk calls it, signed events, and Socket Mode.

It keeps channels, messages, threads and users, and refuses what Slack refuses: wrong tokens, missing scopes and fields,
channels the bot cannot use, Block Kit beyond its limits. On demand it answers 429, 5xx, nothing, or breaks the
connection before or after it did the work. Tests act as people (:meth:`FakeSlack.says`) and look into channels.

::

    async with FakeSlack() as slack:
        slack.add_channel("C0ALERTS", "gpu-alerts", bot_in=True)
        settings = SlackSettings(bot_token=slack.bot_token, base_url=slack.base_url, ...)
        slack.events_url = "http://127.0.0.1:8000/slack/events"
        ts = await slack.says("U0ANNA", "C0ALERTS", "<@U0BOT> is a node idle?")
        await slack.until(lambda: slack.thread("C0ALERTS", ts))
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from tests.fakes.slack_events import Delivery, Events
from tests.fakes.slack_socket import Sockets
from tests.fakes.slack_web import WebApi

TEAM, APP, BOT_USER, BOT = "T0TEAM", "A0APP", "U0BOT", "B0BOT"
Message = dict[str, Any]


@dataclass
class Channel:
    """A conversation; messages by ts, in the order of posting."""

    id: str
    name: str
    kind: Literal["public", "private", "im"]
    bot_in: bool
    archived: bool = False
    messages: dict[str, Message] = field(default_factory=dict)


@dataclass
class Fault:
    """What a call meets instead of its answer; ``applied``: after the work was done."""

    status: int = 200
    error: str = "internal_error"
    retry_after: int | None = None
    kind: Literal["answer", "hang", "drop"] = "answer"
    applied: bool = False
    body: str | None = None


@dataclass
class Call:
    """A call of the Web API that arrived."""

    method: str
    args: dict[str, Any]
    answer: dict[str, Any] | None = None
    status: int = 200


class FakeSlack:
    """See the module.

    Args:
        scopes: of the bot token; None grants all.
        subscriptions: events that are sent; None sends all.
        clock: Unix seconds, for time stamps of messages and the posting limit.
        ack_seconds: how long an event may stay unanswered.
        sleep: waiting before an event is sent again.
    """

    signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"
    bot_token = "xoxb-loopback-bot"
    app_token = "xapp-loopback-app"

    def __init__(
        self,
        *,
        scopes: frozenset[str] | None = None,
        subscriptions: frozenset[str] | None = None,
        clock: Callable[[], float] = time.time,
        ack_seconds: float = 3.0,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.scopes = scopes
        self.subscriptions = subscriptions
        self.clock = clock
        self.channels: dict[str, Channel] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.calls: list[Call] = []
        self.used_scopes: set[str] = set()
        self.statuses: list[dict[str, Any]] = []
        self.prompts: list[dict[str, Any]] = []
        self.ephemerals: list[Message] = []
        self.limit_posting = False
        self.events_url: str | None = None
        self.events = Events(self, ack_seconds, sleep)
        self.sockets = Sockets(self, ack_seconds)
        self.closing = asyncio.Event()
        self._faults: dict[str, deque[Fault]] = {}
        self._changed = asyncio.Condition()
        self._last_ts = 0
        self._posted_at: dict[str, float] = {}
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.add_user(BOT_USER, is_bot=True)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", WebApi(self).handle)
        app.router.add_get("/link", self.sockets.handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        await self.events.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        await self.sockets.close()
        await self.events.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """Of the Web API."""
        return f"http://127.0.0.1:{self.port}/api/"

    def add_channel(
        self,
        channel_id: str,
        name: str,
        *,
        kind: Literal["public", "private", "im"] = "public",
        bot_in: bool = True,
    ) -> Channel:
        """Make a channel."""
        self.channels[channel_id] = Channel(channel_id, name, kind, bot_in)
        return self.channels[channel_id]

    def add_user(self, user_id: str, *, locale: str = "en-US", is_bot: bool = False) -> None:
        """Make a user."""
        name = user_id.lower()
        self.users[user_id] = {
            "id": user_id,
            "team_id": TEAM,
            "name": name,
            "is_bot": is_bot,
            "locale": locale,
            "deleted": False,
        }

    def fail(
        self,
        method: str,
        error: str = "internal_error",
        *,
        status: int = 200,
        retry_after: int | None = None,
        kind: Literal["answer", "hang", "drop"] = "answer",
        applied: bool = False,
        body: str | None = None,
        times: int = 1,
    ) -> None:
        """Make the next ``times`` calls of a method fail; see :class:`Fault`."""
        if status == 429:
            error = "ratelimited"
        queue = self._faults.setdefault(method, deque())
        queue.extend([Fault(status, error, retry_after, kind, applied, body)] * times)

    def next_fault(self, method: str) -> Fault | None:
        """Take the next fault of a method."""
        queue = self._faults.get(method)
        return queue.popleft() if queue else None

    def too_fast(self, channel: str) -> bool:
        """Whether a post comes within a second of the channel's last one, where that is limited."""
        now = self.clock()
        if self.limit_posting and now - self._posted_at.get(channel, float("-inf")) < 1.0:
            return True
        self._posted_at[channel] = now
        return False

    def new_ts(self) -> str:
        """A time stamp that no other message has."""
        self._last_ts = max(int(self.clock() * 1_000_000), self._last_ts + 1)
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def store(self, channel: Channel, message: Message) -> Message:
        """Put a message into a channel."""
        channel.messages[message["ts"]] = message
        return message

    def find(self, channel: str) -> Channel | None:
        """A channel by id, or by name with or without ``#``."""
        name = channel.removeprefix("#")
        return self.channels.get(channel) or next((item for item in self.channels.values() if item.name == name), None)

    def messages(self, channel: str) -> list[Message]:
        """Messages of a channel that the bot wrote, oldest first."""
        return [item for item in self.channels[channel].messages.values() if item.get("user") == BOT_USER]

    def thread(self, channel: str, ts: str) -> list[Message]:
        """What the bot wrote in the thread of a message."""
        return [item for item in self.messages(channel) if item.get("thread_ts") == ts and item["ts"] != ts]

    def called(self, method: str) -> list[Call]:
        """Calls of a method, in order."""
        return [call for call in self.calls if call.method == method]

    async def says(self, user: str, channel: str, text: str, *, thread_ts: str | None = None, **more: Any) -> str:
        """A person writes; the app hears of it as Slack would tell it. Returns the ts of the message."""
        message = self.write(user, channel, text, thread_ts=thread_ts, **more)
        await self.tell(message, channel)
        return str(message["ts"])

    def write(self, user: str, channel: str, text: str, *, thread_ts: str | None = None, **more: Any) -> Message:
        """Put a person's message into a channel without telling the app."""
        if user not in self.users:
            self.add_user(user)
        message = {"type": "message", "user": user, "text": text, "ts": self.new_ts(), "team": TEAM, **more}
        if thread_ts:
            message["thread_ts"] = thread_ts
        return self.store(self.channels[channel], message)

    async def tell(self, message: Message, channel: str) -> list[Delivery]:
        """Send the events that a message causes: ``message.im`` in direct messages, else ``app_mention``."""
        if self.channels[channel].kind == "im":
            return [await self.emit({**message, "channel": channel, "channel_type": "im", "event_ts": message["ts"]})]
        if f"<@{BOT_USER}>" in message["text"]:
            event = {**message, "type": "app_mention", "channel": channel, "event_ts": message["ts"]}
            return [await self.emit(event)]
        return []

    async def emit(self, event: dict[str, Any], *, event_id: str | None = None) -> Delivery:
        """Send one event, over the socket when one is open, else over HTTP."""
        name = "message.im" if event.get("channel_type") == "im" else str(event["type"])
        if self.subscriptions is not None and name not in self.subscriptions:
            return Delivery(event_id or "", [])
        payload = self.events.payload(event, event_id)
        if self.sockets.open:
            return await self.sockets.deliver(payload)
        return await self.events.deliver(payload)

    async def clicks(self, user: str, channel: str, message: Message, action_id: str) -> Delivery:
        """A person clicks a button of a message; the app hears of it over the socket when one is open, else over
        HTTP.

        Raises:
            LookupError: the message has no such button.
        """
        elements = [
            element
            for block in message.get("blocks", ())
            if block["type"] == "actions"
            for element in block["elements"]
        ]
        element = next((item for item in elements if item.get("action_id") == action_id), None)
        if element is None:
            raise LookupError(f"the message has no button {action_id}")
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower(), "team_id": TEAM},
            "api_app_id": "A0APP",
            "token": "legacy-verification-token",
            "container": {
                "type": "message",
                "message_ts": message["ts"],
                "channel_id": channel,
                "is_ephemeral": False,
                **({"thread_ts": message["thread_ts"]} if "thread_ts" in message else {}),
            },
            "trigger_id": f"{self.new_ts()}.trigger",
            "team": {"id": TEAM, "domain": "loopback"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel, "name": channel.lower()},
            "message": message,
            "actions": [
                {
                    "type": "button",
                    "block_id": "b",
                    "action_id": action_id,
                    "value": element.get("value"),
                    "text": element["text"],
                    "action_ts": self.new_ts(),
                }
            ],
        }
        return await (self.sockets.click(payload) if self.sockets.open else self.events.click(payload))

    async def notify(self) -> None:
        """Wake those who wait with :meth:`until`."""
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], Any], seconds: float = 10.0) -> Any:
        """Wait for a condition, looked at after every call and event; its last value."""
        async with asyncio.timeout(seconds), self._changed:
            return await self._changed.wait_for(condition)
