"""The outermost layer: request id, access log, and the gate (token, host, origin) in front of every route.

It wraps the whole application instead of being Litestar middleware because those run after routing only: here an
unknown path is logged too, and answers 401 to a caller without the token.
"""

import hmac
import re
import time
import uuid
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.problems import MEDIA_TYPE, Problem, problem

OPEN_PATHS = frozenset({"/health/live", "/health/ready", "/slack/events"})
"""Served without token and host check: probes cannot know a token, and Slack signs what it sends."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.get_logger("gpu_advisor.http")


def is_loopback(host: str | None) -> bool:
    """True when ``host`` (a name or address, without brackets) is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


class Front:
    """Names and logs each request, sets the headers that every response carries, and turns faults into no trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        given = _header(scope, b"x-request-id")
        request_id = given if given and _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())
        scope["state"]["request_id"] = request_id
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        path = scope["path"]
        started = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_marked)
            finally:
                write = log.debug if path.startswith(("/health/", "/metrics")) else log.info
                write(
                    "request",
                    method=scope["method"],
                    path=path,
                    status=status,
                    milliseconds=round((time.perf_counter() - started) * 1000, 1),
                )


class Gate:
    """Lets a request in, or answers it with a problem.

    With a token (always, when bound elsewhere than to loopback) every path but :data:`OPEN_PATHS` demands it.
    Without one the service listens on loopback only, where the browser is the danger: a page of another site can send
    requests to 127.0.0.1. So the ``Host`` must be a loopback name (against DNS rebinding, where the page's own name
    resolves to 127.0.0.1) and an ``Origin``, where there is one, too (against plain cross-site posts). A token makes
    both needless, as a foreign page does not know it.

    Args:
        app: what is behind the gate.
        token: the bearer token, None on loopback without one.
    """

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b'Bearer realm="gpu-advisor"')] if refusal.status == 401 else []
        await _answer(send, refusal, headers)

    def _refusal(self, scope: HTTPScope) -> Problem | None:
        request_id = scope["state"]["request_id"]
        if self._token is not None:
            scheme, _, given = (_header(scope, b"authorization") or "").partition(" ")
            if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token):
                return None
            return problem(
                401,
                "token-missing" if not given else "token-wrong",
                "Unauthorized",
                "Send the token of the settings: Authorization: Bearer <token>.",
                request_id=request_id,
            )
        host = _header(scope, b"host") or ""
        if not is_loopback(_host_name(f"//{host}")):
            return problem(
                421,
                "host-not-allowed",
                "Misdirected Request",
                f"This service answers to localhost only, not to {host!r}. To serve another name, set a token.",
                request_id=request_id,
            )
        origin = _header(scope, b"origin")
        if origin is not None and not is_loopback(_host_name(origin)):
            return problem(
                403,
                "origin-not-allowed",
                "Forbidden",
                f"Pages of {origin!r} may not call this service. To allow other clients, set a token.",
                request_id=request_id,
            )
        return None


def _header(scope: HTTPScope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def _host_name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def _answer(send: Send, document: Problem, headers: Iterable[tuple[bytes, bytes]]) -> None:
    body = msgspec.json.encode(document)
    await send(
        {
            "type": "http.response.start",
            "status": document.status,
            "headers": [
                (b"content-type", MEDIA_TYPE.encode()),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
