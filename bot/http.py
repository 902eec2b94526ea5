"""The bot over HTTP: an ASGI endpoint for Slack's requests."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from slack_bolt.async_app import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier

from bot.app import BotApp
from bot.settings import SlackSettingsInvalid

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 1024 * 1024
"""Slack's own requests stay far below; nothing bigger is read before its signature is checked."""


class _TooLarge(Exception):
    pass


class _Disconnected(Exception):
    pass


def events_endpoint(app: BotApp) -> Endpoint:
    """An ASGI application that takes Slack's requests (events, and later commands and buttons).

    It does not look at the path, so it can be mounted anywhere. In Litestar::

        endpoint = events_endpoint(build_app(advisor, settings.slack))

        @asgi("/slack/events", is_mount=False, copy_scope=True)
        async def slack_events(scope: Scope, receive: Receive, send: Send) -> None:
            await endpoint(scope, receive, send)

    Exempt the path from the service's own authentication and CSRF protection: Slack signs each request, and nothing is
    read before its signature and age are checked (401). Other methods than POST get 405, bodies over 1 MiB 413. When
    the service stops, ``await app.drain(10)``.

    Raises:
        SlackSettingsInvalid: there is no signing secret; without it anybody could pose as Slack.
    """
    if not app.settings.signing_secret:
        raise SlackSettingsInvalid("signing_secret", "the HTTP endpoint needs it to tell Slack from others")

    verifier = SignatureVerifier(app.settings.signing_secret)

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise TypeError(f"Slack speaks HTTP here, not {scope['type']}")
        if scope["method"] != "POST":
            await _answer(send, 405, {"allow": ["POST"]}, "")
            return
        try:
            body = await _body(receive)
        except _Disconnected:
            return
        except _TooLarge:
            await _answer(send, 413, {}, "")
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        # Bolt checks this too, but reads the body first, and anybody can send a body that cannot be read
        if not _signed(verifier, body, headers):
            log.warning("a request to the Slack endpoint was refused: its signature is wrong or too old")
            await _answer(send, 401, {"content-type": ["application/json"]}, '{"error": "invalid request"}')
            return
        query = scope.get("query_string", b"").decode("latin-1")
        try:
            request = AsyncBoltRequest(body=body.decode(), query=query, headers=headers)
            response = await app.async_dispatch(request)
        except (ValueError, TypeError, AttributeError):
            log.exception("a signed request of Slack could not be read")
            await _answer(send, 400, {}, "")
            return
        await _answer(send, response.status, dict(response.headers), response.body)

    return endpoint


def _signed(verifier: SignatureVerifier, body: bytes, headers: dict[str, str]) -> bool:
    try:
        return verifier.is_valid_request(body, headers)
    except (ValueError, TypeError):
        # a time stamp that is no number, a signature that is not ASCII, a body that is not UTF-8
        return False


async def _body(receive: Receive) -> bytes:
    chunks = bytearray()
    while True:
        part = await receive()
        if part["type"] == "http.disconnect":
            raise _Disconnected
        chunks += part.get("body", b"")
        if len(chunks) > MAX_BODY:
            raise _TooLarge
        if not part.get("more_body", False):
            return bytes(chunks)


async def _answer(send: Send, status: int, headers: dict[str, Any], text: str) -> None:
    raw = text.encode()
    pairs = [(name.lower(), str(value)) for name, values in headers.items() for value in values]
    pairs = [pair for pair in pairs if pair[0] != "content-length"]
    pairs.append(("content-length", str(len(raw))))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": raw})
