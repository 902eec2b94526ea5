"""One request to one address: bounded in time and size, never redirected, never to where it may not go."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import Self
from urllib.parse import urlsplit

import httpx
import msgspec

from service.clock import utc_now
from service.errors import RegistryTrouble
from service.registry.names import inner_address, is_loopback, named_in, netloc_of
from service.registry.settings import RegistrySettings

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a host name; empty when the name is not known here (a proxy may know it)."""

USER_AGENT = "gpu-advisor (reads image configurations)"
_HTTPS = 443


class Answer(msgspec.Struct, frozen=True):
    """Status, headers and whole body of an answer."""

    status: int
    headers: httpx.Headers
    body: bytes


class Exchange:
    """Sends single requests.

    Args:
        settings: time, number and hosts.
        resolve: how host names become addresses, before anything is sent to them.
    """

    def __init__(self, settings: RegistrySettings, *, resolve: Resolve | None = None) -> None:
        self._settings = settings
        self._resolve = resolve or _system_resolve
        self._slots = asyncio.Semaphore(settings.parallel)
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def send(
        self, method: str, url: str, *, limit: int, accept: str = "*/*", authorization: str | None = None
    ) -> Answer:
        """Send one request and read the answer, whatever its status.

        Args:
            limit: most bytes of a body.

        Raises:
            RegistryTrouble: ``not-allowed``, ``unreachable``, ``timeout``, ``too-large``, ``invalid``.
        """
        where = netloc_of(url)
        headers = {"accept": accept, "accept-encoding": "identity", "user-agent": USER_AGENT}
        if authorization is not None:
            headers["authorization"] = authorization
        async with self._slots:
            try:
                async with asyncio.timeout(self._settings.request_seconds):
                    await self._check(url, where)
                    return await self._exchange(method, url, headers, limit, where)
            except (TimeoutError, httpx.TimeoutException) as error:
                problem = f"no complete answer within {self._settings.request_seconds:g} s"
                raise RegistryTrouble("timeout", where, problem) from error
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, UnicodeError, OSError) as error:
                problem = f"no connection: {str(error) or type(error).__name__}"
                raise RegistryTrouble("unreachable", where, problem) from error

    async def _exchange(self, method: str, url: str, headers: dict[str, str], limit: int, where: str) -> Answer:
        if self._client is None:
            self._client = httpx.AsyncClient(follow_redirects=False, timeout=self._settings.request_seconds)
        async with self._client.stream(method, url, headers=headers) as response:
            if method == "HEAD":
                return Answer(response.status_code, response.headers, b"")
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise RegistryTrouble("invalid", where, "the answer is packed, though it was asked for as it is")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > limit:
                    raise RegistryTrouble("too-large", where, f"the answer is larger than {limit} bytes")
            return Answer(response.status_code, response.headers, bytes(body))

    async def _check(self, url: str, where: str) -> None:
        """Refuse addresses that nobody named: plain HTTP, this machine, its link, with a user in the URL."""
        try:
            parts = urlsplit(url)
            name, port = parts.hostname or "", parts.port or _HTTPS
        except ValueError as error:
            raise RegistryTrouble("invalid", where, "not a usable address") from error
        named = named_in(where, self._settings.hosts)
        if not name or parts.username is not None or parts.scheme not in ("https", "http"):
            raise RegistryTrouble("not-allowed", where, "expected an https address without a user")
        if parts.scheme == "http" and not is_loopback(name):
            raise RegistryTrouble("not-allowed", where, "only https is spoken to other machines")
        if named:
            return
        inner = name if is_loopback(name) else inner_address([name, *await self._resolve(name, port)])
        if inner is not None:
            problem = f"{inner} is this machine or its link; name the host under registry.hosts if that is meant"
            raise RegistryTrouble("not-allowed", where, problem)


async def _system_resolve(name: str, port: int) -> Sequence[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(address[4][0]) for address in found]


def retry_after(headers: httpx.Headers) -> float | None:
    """Seconds of a Retry-After header (a number or a date, RFC 9110); None without a usable one."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text[:9])
    try:
        return max((parsedate_to_datetime(text) - utc_now()).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
