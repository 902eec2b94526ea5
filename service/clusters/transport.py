# mypy: disable-error-code="no-untyped-call"
"""Authenticated GET requests to one API server, as bytes, with retries and timeouts."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import aiohttp
import stamina

from service.clusters.distance import Distance, Gzip
from service.clusters.refusals import Refused
from service.clusters.trouble import connection_trouble
from service.errors import ClusterAnswerInvalid, ClusterUnauthorized, ClusterUnavailable

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient
    from kubernetes.aio.client.rest import RESTResponse

ATTEMPTS = 4
"""For one request, the first one included."""
LONGEST_WAIT_SECONDS = 30.0
"""A server that asks for more patience is reported as unavailable; the next audit comes soon enough."""
CONNECT_SECONDS = 10.0
JSON = "application/json"
SILENCE_SECONDS = 60.0
"""Without a byte. The API server itself gives up on a list after a minute (kube-apiserver --request-timeout)."""

RENEW_SECONDS = 20.0
"""Credentials younger than this that are refused are not good: reading them once more would change nothing."""
LONGEST_LINE = 16 * 2**20
"""Bytes of one change in a watch; etcd takes objects of 1.5 MiB at most."""

BUSY = frozenset({429, 500, 502, 503, 504})
_RESTARTED = (aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError, aiohttp.ClientPayloadError)
"""A connection that had been made broke: a load balancer or an API server restarts. Asking again does no harm."""


Answer = TypeVar("Answer")

Authenticate = Callable[[bool], Awaitable["ApiClient"]]
"""Reads the credentials and gives a client that uses them; True: those it gave before were refused.

Of the official client we use credentials, TLS, proxy and connection pool, never its models: they cost many times more
time and memory than all the rest."""


class Transport:
    """GET requests to the API server of one cluster.

    It may live for long: credentials that rotate are read again when they are refused.

    Args:
        cluster: its configured name, for errors.
        authenticate: called before the first request, and once more after a 401: tokens and certificates rotate, so a
            refusal may only mean that ours are old.
        gzip: accept compressed answers; ``auto`` for those of a server that is far away.
        clock: times the answers; see :class:`~service.clusters.distance.Distance`.
    """

    def __init__(
        self,
        cluster: str,
        authenticate: Authenticate,
        *,
        gzip: Gzip,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.cluster = cluster
        self._authenticate = authenticate
        self._distance = Distance(gzip, clock)
        self._client: ApiClient | None = None
        self._retired: list[ApiClient] = []
        self._renewed_at = -RENEW_SECONDS
        self._lock = asyncio.Lock()

    @property
    def server(self) -> str:
        """Address of the API server, as far as it is known."""
        return "?" if self._client is None else str(self._client.configuration.host)

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, accept: str = JSON) -> bytes:
        """The body of a 200 answer, in one of the formats of ``accept``.

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
                    return await self._with_fresh_credentials(lambda client: self._send(client, path, query, accept))
        except Refused as refused:
            if refused.status == 401:
                raise self._unauthorized(refused) from refused
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

    @asynccontextmanager
    async def stream(
        self, path: str, query: Sequence[tuple[str, str]], *, silence_seconds: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """The lines of a 200 answer as they come, in batches; each batch is what has arrived since the one before.

        Bytes are taken from the connection only as batches are asked for, so a slow reader slows the server down and
        nothing piles up here but the client's buffer of some MiB. A last line without its end is left out. Nothing is
        asked again here: the caller knows where to go on.

        Args:
            silence_seconds: without a byte, after which the connection is taken for dead.

        Raises:
            Refused: any other status.
            ClusterUnauthorized, ClusterUnreachable, ClusterTimeout, ClusterAnswerInvalid: also while it is read.
        """
        answer = None
        try:
            answer = await self._with_fresh_credentials(lambda client: self._open(client, path, query, silence_seconds))
            yield self._lines(answer.response.content)
        except Refused as refused:
            if refused.status == 401:
                raise self._unauthorized(refused) from refused
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise connection_trouble(self.cluster, self.server, error) from error
        finally:
            if answer is not None:
                answer.response.close()  # what is unread is nobody's: the connection is not used again

    async def close(self) -> None:
        """Close the connections; the next request authenticates anew."""
        clients = [*self._retired, *([self._client] if self._client else [])]
        self._client, self._retired = None, []
        for client in clients:
            await client.close()

    async def _with_fresh_credentials(self, send: "Callable[[ApiClient], Awaitable[Answer]]") -> "Answer":
        client = self._client or await self._renew(None)
        try:
            return await send(client)
        except Refused as refused:
            young = time.monotonic() - self._renewed_at < RENEW_SECONDS
            if refused.status != 401 or (young and self._client is client):
                raise
            return await send(await self._renew(client))

    async def _renew(self, stale: "ApiClient | None") -> "ApiClient":
        """A client whose credentials were read after ``stale`` got a 401; requests refused together share it."""
        async with self._lock:
            if self._client is None:
                self._client = await self._authenticate(False)
            elif self._client is stale:
                fresh = await self._authenticate(True)
                for forgotten in self._retired:
                    await forgotten.close()
                self._retired = [self._client]  # others may still be reading from it
                self._client, self._renewed_at = fresh, time.monotonic()
            return self._client

    async def _send(self, client: "ApiClient", path: str, query: Sequence[tuple[str, str]], accept: str) -> bytes:
        answer = await self._open(client, path, query, SILENCE_SECONDS, accept)
        body: bytes = await answer.read()
        return body

    async def _open(
        self,
        client: "ApiClient",
        path: str,
        query: Sequence[tuple[str, str]],
        silence_seconds: float,
        accept: str = JSON,
    ) -> "RESTResponse":
        """The answer when its status is 200; its body is still to come."""
        method, url, headers, _, _ = await client.param_serialize(
            "GET",
            path,
            query_params=list(query),
            header_params={
                "Accept": accept,
                "Accept-Encoding": "gzip" if self._distance.compressed else "identity",
            },
            auth_settings=["BearerToken"],
        )
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds)
        with self._distance.timed():
            answer = await client.call_api(method, url, header_params=headers, _request_timeout=timeout)
        if answer.status != 200:
            raise Refused(answer.status, await answer.read(), answer.headers, datetime.now(UTC))
        return answer

    async def _lines(self, content: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
        rest = b""
        while chunk := await content.readany():
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST_LINE:
                raise ClusterAnswerInvalid(
                    self.cluster,
                    f"the API server at {self.server} sends a change of more than {LONGEST_LINE} bytes",
                    "Look at the proxies between; this is not what an API server says.",
                )
            if lines:
                yield [line for line in lines if line]

    def _unauthorized(self, refused: Refused) -> ClusterUnauthorized:
        return ClusterUnauthorized(
            self.cluster,
            f"the API server at {self.server} does not accept the credentials: {refused.message}",
            "Renew the token, client certificate or login that the kubeconfig names.",
        )


def _how_long_to_wait(error: Exception) -> bool | float:
    """False: do not ask again. True: after the usual growing pause. A number: after so many seconds."""
    if isinstance(error, Refused) and error.status in BUSY:
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= LONGEST_WAIT_SECONDS else False
    if isinstance(error, aiohttp.ClientOSError) and not isinstance(error, aiohttp.ClientConnectorError):
        return error.errno == errno.ECONNRESET
    return isinstance(error, _RESTARTED)
