"""Watches of the stand-in API server: one JSON object a line, bookmarks, streaming lists, 410 inside a 200."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from tests.fakes.kubernetes_state import Object, Resource, State


class Bell:
    """Wakes every watch: rung when the cluster changes and when the server goes away."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def ring(self) -> None:
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    @property
    def next(self) -> asyncio.Event:
        """Set at the next ring."""
        return self._next


BELL = web.AppKey("bell", Bell)
STOP = web.AppKey("stop", asyncio.Event)
"""Set when the server goes away."""


MUTE = b"mute"


class Watches:
    """The open watches, and what tests make them do. Thread-safe.

    Attributes:
        streaming: whether streaming lists are served; False answers as a server without the WatchList feature.
        ring: wakes all watches.
    """

    def __init__(self) -> None:
        self.streaming = True
        self.ring: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._open: list[tuple[str, deque[bytes | None]]] = []

    def number(self, plural: str) -> int:
        """How many watches of a resource are open."""
        with self._lock:
            return sum(plural == name for name, _ in self._open)

    def say(self, plural: str, *events: Object | bytes) -> None:
        """Let the open watches of a resource send these lines."""
        lines = [item if isinstance(item, bytes) else _line(item) for item in events]
        self._order(plural, lines)

    def end(self, plural: str) -> None:
        """End the open watches of a resource, as a server does whose time is over."""
        self._order(plural, [None])

    def mute(self, plural: str) -> None:
        """Let the open watches of a resource say nothing any more, and not end either."""
        self._order(plural, [MUTE])

    def beat(self) -> None:
        """Let every open watch send a bookmark, as the server does about once a minute."""
        self._order("*", [b""])

    def _order(self, plural: str, orders: "list[bytes] | list[None]") -> None:
        with self._lock:
            for name, pending in self._open:
                if plural in ("*", name):
                    pending.extend(orders)
        self.ring()

    @contextmanager
    def opened(self, plural: str) -> "Iterator[deque[bytes | None]]":
        """A watch while it is open: what it is to send; None ends it."""
        entry: tuple[str, deque[bytes | None]] = (plural, deque())
        with self._lock:
            self._open.append(entry)
        try:
            yield entry[1]
        finally:
            with self._lock:
                self._open = [item for item in self._open if item is not entry]


WATCHES = web.AppKey("watches", Watches)


async def watch(
    request: web.Request, state: State, resource: Resource, keep: Callable[[Object], bool], namespace: str | None
) -> web.StreamResponse:
    """Answer ``?watch=true``: events until ``timeoutSeconds`` is over."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)

    async def send(kind: str, item: Object) -> None:
        await response.write(_line({"type": kind, "object": item}))

    bookmarks = request.query.get("allowWatchBookmarks") == "true"
    revision = _asked(request, state)
    if request.query.get("sendInitialEvents") == "true":
        revision = await _send_all(send, state, resource, keep, namespace)
    elif revision < state.compacted:
        await send("ERROR", _too_old(revision, state.compacted))
        await response.write_eof()
        return response

    def visible(item: Object) -> bool:
        return keep(item) and (namespace is None or item["metadata"].get("namespace") == namespace)

    stop = request.app[STOP]
    try:
        async with asyncio.timeout(float(request.query.get("timeoutSeconds", "1800"))):
            with request.app[WATCHES].opened(resource.plural) as orders:
                while not stop.is_set() and not _gone(request):
                    rung = request.app[BELL].next
                    for change in () if MUTE in orders else state.changes_since(revision, resource):
                        revision = change.revision
                        if visible(change.object):
                            await send(change.type, change.object)
                    if await _obeyed(response, orders, _bookmark(resource, revision)):
                        break
                    await rung.wait()
    except TimeoutError:
        if bookmarks:
            await send("BOOKMARK", _bookmark(resource, revision))
    except ConnectionResetError:
        return response
    if stop.is_set() and request.transport is not None:
        request.transport.abort()
    elif not _gone(request):
        await response.write_eof()
    return response


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def _send_all(
    send: Callable[[str, Object], Awaitable[None]],
    state: State,
    resource: Resource,
    keep: Callable[[Object], bool],
    namespace: str | None,
) -> int:
    """A streaming list; its revision."""
    items, revision, _, _ = state.page(resource, keep, namespace, 0, "")
    for item in items:
        await send("ADDED", item)
    await send("BOOKMARK", _bookmark(resource, revision, initial_events_end=True))
    return revision


def _asked(request: web.Request, state: State) -> int:
    asked = request.query.get("resourceVersion", "")
    return int(asked) if asked.isdigit() and asked != "0" else state.revision


async def _obeyed(response: web.StreamResponse, orders: "deque[bytes | None]", bookmark: Object) -> bool:
    """Send what tests want to be sent; whether they want the watch to end."""
    while orders:
        order = orders.popleft()
        if order is None:
            return True
        if order == MUTE:
            orders.append(MUTE)
            return False
        await response.write(order or _line({"type": "BOOKMARK", "object": bookmark}))
    return False


def _line(event: Object) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _bookmark(resource: Resource, revision: int, *, initial_events_end: bool = False) -> Object:
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


def _too_old(revision: int, oldest: int) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"too old resource version: {revision} ({oldest})",
        "reason": "Expired",
        "code": 410,
    }
