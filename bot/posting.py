"""Posting messages: at most one a second and channel, no duplicates, and never silence because of a layout."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from slack_sdk.web.async_client import AsyncWebClient

from bot.blocks.message import Message
from bot.client import call
from bot.errors import DeliveryError, DeliveryPermanent, DeliveryTemporary
from bot.port import MessageRef

log = logging.getLogger(__name__)

BLOCKS_REFUSED = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments"})
LOOKUP_IMPOSSIBLE = frozenset({"missing_scope", "not_in_channel", "channel_not_found", "thread_not_found"})
PAGE = 200
PAGES = 5
CLOCK_SKEW_SECONDS = 300


class Key(msgspec.Struct, frozen=True):
    """What makes a message findable again: it is posted as the message's metadata.

    Attributes:
        event_type: metadata type.
        id: unique among messages of that type.
    """

    event_type: str
    id: str

    def metadata(self) -> dict[str, Any]:
        """As the Web API takes it."""
        return {"event_type": self.event_type, "event_payload": {"id": self.id}}

    def marks(self, posted: dict[str, Any]) -> bool:
        """Whether ``posted``, a message of a history, carries this key."""
        metadata = posted.get("metadata") or {}
        payload = metadata.get("event_payload") or {}
        return metadata.get("event_type") == self.event_type and payload.get("id") == self.id


class Poster:
    """Posts and updates messages.

    Args:
        client: without retry handlers of its own, see :func:`bot.client.make_client`.
        max_retries: further attempts after temporary trouble.
        max_wait_seconds: longest wait between two attempts; a longer ``Retry-After`` is left to the caller.
        interval_seconds: least time between two paced messages in one channel.
        clock, sleep: monotonic seconds, and waiting for them.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        *,
        max_retries: int = 3,
        max_wait_seconds: float = 30.0,
        interval_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._max_retries = max_retries
        self._max_wait = max_wait_seconds
        self._interval = interval_seconds
        self._clock = clock
        self._sleep = sleep
        self._free_at: dict[str, float] = {}

    async def post(
        self,
        channel: str,
        message: Message,
        key: Key,
        *,
        thread_ts: str | None = None,
        besides: MessageRef | None = None,
        since: float | None = None,
        maybe_posted: bool = False,
        paced: bool = False,
    ) -> MessageRef:
        """Post a message once.

        After an attempt whose outcome is unknown (5xx, time-out, lost connection), and at once when ``maybe_posted``,
        the channel or thread is searched for a message with the same key before another attempt is made. A message
        that is found is edited, since its content may have become old.

        Args:
            channel: id, or name for posting only.
            besides: a message that is not meant although it has the key.
            since: Unix seconds before which the message cannot have been posted; bounds the search.
            paced: keep the interval to the channel's previous paced message.

        Raises:
            DeliveryTemporary: after all attempts, or when Slack wants a longer wait.
            DeliveryPermanent: Slack refuses.
        """
        unsure = maybe_posted

        async def attempt(content: dict[str, Any]) -> MessageRef:
            nonlocal unsure
            if unsure:
                found = await self._find(channel, key, thread_ts, since, besides)
                unsure = False
                if found is not None:
                    return await self.update(found, message, key)
            await self._wait_for_turn(channel, paced=paced)
            try:
                answer = await call(
                    self._client.chat_postMessage(
                        channel=channel,
                        thread_ts=thread_ts,
                        metadata=key.metadata(),
                        unfurl_links=False,
                        unfurl_media=False,
                        **content,
                    )
                )
            except DeliveryTemporary as error:
                unsure = error.outcome_unknown
                raise
            return MessageRef(channel=str(answer["channel"]), ts=str(answer["ts"]))

        try:
            return await self._persist(channel, message, attempt)
        except DeliveryTemporary as error:
            if unsure:
                error.outcome_unknown = True
            raise

    async def update(self, ref: MessageRef, message: Message, key: Key, *, paced: bool = False) -> MessageRef:
        """Replace the content of a message; repeating it is harmless. Raises as :meth:`post` does."""

        async def attempt(content: dict[str, Any]) -> MessageRef:
            await self._wait_for_turn(ref.channel, paced=paced)
            answer = await call(
                self._client.chat_update(channel=ref.channel, ts=ref.ts, metadata=key.metadata(), **content)
            )
            return MessageRef(channel=str(answer["channel"]), ts=str(answer["ts"]))

        return await self._persist(ref.channel, message, attempt)

    async def _persist(
        self, channel: str, message: Message, attempt: Callable[[dict[str, Any]], Awaitable[MessageRef]]
    ) -> MessageRef:
        """Make attempts until one succeeds: again after temporary trouble, as plain text after refused blocks."""
        # an empty list, not an absent one: chat.update keeps the old blocks when none are given
        content: dict[str, Any] = {"text": message.text, "blocks": list(message.blocks)}
        failures = 0
        while True:
            try:
                return await attempt(content)
            except DeliveryPermanent as error:
                if error.reason not in BLOCKS_REFUSED or not content["blocks"]:
                    raise
                log.exception("Slack refused the layout of a message, sending its text only")
                content = {"text": message.text, "blocks": []}
            except DeliveryTemporary as error:
                wait = error.retry_after if error.retry_after is not None else float(2**failures)
                self._free_at[channel] = max(self._free_at.get(channel, 0.0), self._clock() + wait)
                failures += 1
                if failures > self._max_retries or wait > self._max_wait:
                    error.retry_after = wait
                    raise
                log.warning("Slack did not take a message, trying again in %s s: %s", wait, error)

    async def _wait_for_turn(self, channel: str, *, paced: bool) -> None:
        now = self._clock()
        turn = max(now, self._free_at.get(channel, 0.0))
        if paced:
            self._free_at[channel] = turn + self._interval
        if turn > now:
            await self._sleep(turn - now)

    async def _find(
        self, channel: str, key: Key, thread_ts: str | None, since: float | None, besides: MessageRef | None
    ) -> MessageRef | None:
        """The message with ``key``, None when there is none or nobody can tell (then rather twice than never).

        Raises:
            DeliveryTemporary: the search itself met trouble; whether the message is there stays unknown.
        """
        options: dict[str, Any] = {"channel": channel, "include_all_metadata": True, "limit": PAGE}
        if since is not None:
            options["oldest"] = f"{max(0.0, since - CLOCK_SKEW_SECONDS):.6f}"
        cursor = ""
        for _ in range(PAGES):
            if cursor:
                options["cursor"] = cursor
            try:
                if thread_ts:
                    answer = await call(self._client.conversations_replies(ts=thread_ts, **options))
                else:
                    answer = await call(self._client.conversations_history(**options))
            except DeliveryError as error:
                if error.reason not in LOOKUP_IMPOSSIBLE:
                    raise DeliveryTemporary(
                        error.reason, retry_after=getattr(error, "retry_after", None), outcome_unknown=True
                    ) from error
                log.warning("cannot look whether a message was posted, posting it: %s", error)
                return None
            for posted in answer.get("messages") or ():
                if key.marks(posted) and (besides is None or posted["ts"] != besides.ts):
                    return MessageRef(channel=channel, ts=str(posted["ts"]))
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return None
        return None
