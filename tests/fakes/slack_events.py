"""Signed events over HTTP, sent again when they are not acknowledged in time.

Source: https://docs.slack.dev/apis/events-api/ and https://docs.slack.dev/authentication/verifying-requests-from-slack/
"""

import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp

if TYPE_CHECKING:
    from tests.fakes.slack import FakeSlack

RETRY_AFTER_SECONDS = (0.0, 60.0, 300.0)


@dataclass
class Attempt:
    """One delivery: the answer's status (0: none in time, or no connection) and body."""

    status: int
    body: str
    seconds: float


@dataclass
class Delivery:
    """What became of an event."""

    event_id: str
    attempts: list[Attempt]

    @property
    def acknowledged(self) -> bool:
        """Whether the last attempt was answered with 2xx."""
        return bool(self.attempts) and 200 <= self.attempts[-1].status < 300


class Events:
    """The Events API of the loopback Slack."""

    def __init__(self, slack: "FakeSlack", ack_seconds: float, sleep: Callable[[float], Any]) -> None:
        self._slack = slack
        self._ack_seconds = ack_seconds
        self.sleep = sleep
        self._numbers = itertools.count(1)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Get ready to send."""
        self._session = aiohttp.ClientSession()

    async def close(self) -> None:
        """Stop sending."""
        if self._session is not None:
            await self._session.close()

    def payload(self, event: dict[str, Any], event_id: str | None = None) -> dict[str, Any]:
        """The outer document of an event."""
        return {
            "token": "legacy-verification-token",
            "team_id": "T0TEAM",
            "api_app_id": "A0APP",
            "event": event,
            "type": "event_callback",
            "event_id": event_id or f"Ev{next(self._numbers):010d}",
            "event_time": int(self._slack.clock()),
            "authorizations": [
                {
                    "enterprise_id": None,
                    "team_id": "T0TEAM",
                    "user_id": "U0BOT",
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": False,
            "event_context": "4-opaque",
        }

    def sign(self, body: str, timestamp: int) -> str:
        """The value of ``X-Slack-Signature``."""
        key = self._slack.signing_secret.encode()
        return "v0=" + hmac.new(key, f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()

    async def deliver(self, payload: dict[str, Any]) -> Delivery:
        """Send an event until it is acknowledged, four times at most."""
        delivery = Delivery(str(payload["event_id"]), [])
        reason = ""
        for number in range(len(RETRY_AFTER_SECONDS) + 1):
            if number:
                await self.sleep(RETRY_AFTER_SECONDS[number - 1])
            retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason} if number else {}
            attempt, no_retry = await self._attempt(json.dumps(payload), retry)
            delivery.attempts.append(attempt)
            if delivery.acknowledged or no_retry:
                break
            reason = "http_timeout" if attempt.status == 0 else "http_error"
        await self._slack.notify()
        return delivery

    async def _attempt(self, body: str, headers: dict[str, str]) -> tuple[Attempt, bool]:
        started = time.monotonic()
        try:
            status, text, answer_headers = await self.send(body, headers=headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            return Attempt(0, repr(error), time.monotonic() - started), False
        return Attempt(status, text, time.monotonic() - started), answer_headers.get("X-Slack-No-Retry") == "1"

    async def send(
        self,
        body: str,
        *,
        timestamp: int | None = None,
        signature: str | None = None,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, str, Any]:
        """Send one request as it is; signed rightly and now unless told otherwise."""
        assert self._session is not None
        assert self._slack.events_url is not None
        moment = int(time.time()) if timestamp is None else timestamp
        sent = {
            "Content-Type": content_type,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": str(moment),
            "X-Slack-Signature": self.sign(body, moment) if signature is None else signature,
            **(headers or {}),
        }
        limit = aiohttp.ClientTimeout(total=self._ack_seconds)
        async with self._session.post(
            self._slack.events_url, data=body.encode(), headers=sent, timeout=limit
        ) as answer:
            return answer.status, await answer.text(), answer.headers

    async def click(self, payload: dict[str, Any]) -> Delivery:
        """Send an interaction: a form with the field ``payload``, once; Slack shows an error when it is late."""
        body = urlencode({"payload": json.dumps(payload)})
        started = time.monotonic()
        status, text, _ = await self.send(body, content_type="application/x-www-form-urlencoded")
        await self._slack.notify()
        return Delivery("", [Attempt(status, text, time.monotonic() - started)])

    async def verify_url(self) -> bool:
        """The handshake that Slack makes when an address is saved: the challenge must come back."""
        status, text, _ = await self.send(json.dumps({"type": "url_verification", "token": "t", "challenge": "c-123"}))
        return status == 200 and "c-123" in text
