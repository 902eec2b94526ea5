# mypy: disable-error-code="no-untyped-call"
"""Authenticated GET requests to one API server, as bytes, with retries and timeouts."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
import stamina

from service.clusters.refusals import Refused
from service.clusters.trouble import connection_trouble
from service.errors import ClusterUnauthorized, ClusterUnavailable

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient

ATTEMPTS = 4
"""For one request, the first one included."""
LONGEST_WAIT_SECONDS = 30.0
"""A server that asks for more patience is reported as unavailable; the next audit comes soon enough."""
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
"""Without a byte. The API server itself gives up on a list after a minute (kube-apiserver --request-timeout)."""

BUSY = frozenset({429, 500, 502, 503, 504})
_RESTARTED = (aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError, aiohttp.ClientPayloadError)
"""A connection that had been made broke: a load balancer or an API server restarts. Asking again does no harm."""


Authenticate = Callable[[bool], Awaitable["ApiClient"]]
"""Reads the credentials and gives a client that uses them; True: those it gave before were refused.

Of the official client we use credentials, TLS, proxy and connection pool, never its models: they cost many times more
time and memory than all the rest."""


class Transport:
    """GET requests to the API server of one cluster.

    Args:
        cluster: its configured name, for errors.
        authenticate: called before the first request, and once more after a 401: tokens and certificates rotate, so a
            refusal may only mean that ours are old.
        gzip: accept compressed answers.
    """

    def __init__(self, cluster: str, authenticate: Authenticate, *, gzip: bool) -> None:
        self.cluster = cluster
        self._authenticate = authenticate
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip" if gzip else "identity"}
        self._client: ApiClient | None = None
        self._retired: list[ApiClient] = []
        self._lock = asyncio.Lock()

    @property
    def server(self) -> str:
        """Address of the API server, as far as it is known."""
        return "?" if self._client is None else str(self._client.configuration.host)

    async def get(self, path: str, query: Sequence[tuple[str, str]] = ()) -> bytes:
        """The body of a 200 answer.

        429 and 5xx are asked again, after as long as ``Retry-After`` says, and so is a connection that broke.

        Raises:
            Refused: any other status, among them 403, 404 and 410, which mean something to the caller.
            ClusterUnauthorized, ClusterUnavailable, ClusterUnreachable, ClusterTimeout, ClusterAnswerInvalid
        """
        try:
            async for attempt in stamina.retry_context(
                on=_how_long_to_wait, attempts=ATTEMPTS, timeout=None, wait_initial=0.2, wait_max=5.0, wait_jitter=0.3
            ):
                with attempt:
                    return await self._get_with_fresh_credentials(path, query)
        except Refused as refused:
            if refused.status == 401:
                raise ClusterUnauthorized(
                    self.cluster,
                    f"the API server at {self.server} does not accept the credentials: {refused.message}",
                    "Renew the token, client certificate or login that the kubeconfig names.",
                ) from refused
            if refused.status in BUSY:
                raise ClusterUnavailable(
                    self.cluster,
                    f"the API server at {self.server} answered {refused} ({path})",
                    "It is overloaded or restarting; the next audit tries again.",
                    refused.status,
                ) from refused
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise connection_trouble(self.cluster, self.server, error) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Close the connections; the next request authenticates anew."""
        clients = [*self._retired, *([self._client] if self._client else [])]
        self._client, self._retired = None, []
        for client in clients:
            await client.close()

    async def _get_with_fresh_credentials(self, path: str, query: Sequence[tuple[str, str]]) -> bytes:
        client = self._client or await self._renew(None)
        try:
            return await self._send(client, path, query)
        except Refused as refused:
            if refused.status != 401 or (self._retired and self._client is client):
                raise
            return await self._send(await self._renew(client), path, query)

    async def _renew(self, stale: "ApiClient | None") -> "ApiClient":
        """A client whose credentials were read after ``stale`` got a 401; requests refused together share it."""
        async with self._lock:
            if self._client is None:
                self._client = await self._authenticate(False)
            elif self._client is stale:
                fresh = await self._authenticate(True)
                self._retired.append(self._client)  # others may still be reading from it
                self._client = fresh
            return self._client

    async def _send(self, client: "ApiClient", path: str, query: Sequence[tuple[str, str]]) -> bytes:
        method, url, headers, _, _ = await client.param_serialize(
            "GET", path, query_params=list(query), header_params=dict(self._headers), auth_settings=["BearerToken"]
        )
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        answer = await client.call_api(method, url, header_params=headers, _request_timeout=timeout)
        body: bytes = await answer.read()
        if answer.status != 200:
            raise Refused(answer.status, body, answer.headers, datetime.now(UTC))
        return body


def _how_long_to_wait(error: Exception) -> bool | float:
    """False: do not ask again. True: after the usual growing pause. A number: after so many seconds."""
    if isinstance(error, Refused) and error.status in BUSY:
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= LONGEST_WAIT_SECONDS else False
    if isinstance(error, aiohttp.ClientOSError) and not isinstance(error, aiohttp.ClientConnectorError):
        return error.errno == errno.ECONNRESET
    return isinstance(error, _RESTARTED)
