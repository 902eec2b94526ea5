"""Keeping one kind current: list, watch from there, and begin again when that is needed.

What can happen to a watch, by name, and what follows:

================  ======================================================================================================
``ended``         the server ends it after the time that we asked for: watch on from where it was, at once
``silent``        not even a bookmark for a while (they come about once a minute): the connection is dead, or the server
                  lost its past and leaves out what it thinks we know; list anew
``expired``       410, as a status or as an ERROR inside a 200: the past is compacted; list anew
``doubtful``      something came that is older than what is known: list anew
``malformed``     what came is no change of this kind: list anew
``unwatchable``   the watch alone is forbidden: the kind is listed again and again
``refused``       the list is forbidden or not there: the kind is unknown; it is asked for again much later
``no-streaming``  the server has no streaming lists: list page by page, then watch
``trouble``       cut, 401 also with fresh credentials, 429, 5xx, no connection, TLS: watch on from where it was
================  ======================================================================================================

Pauses grow from one second to half a minute, are jittered so that many watches do not come back together, respect
``Retry-After``, and begin small again after a watch that held for a while.

Nothing is queued: a change is decoded and filed before the next one is taken from the connection, so a slow reader
slows the server down and costs no memory. The API server in turn drops watchers that are too slow, which is
``trouble`` or ``ended`` here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, Literal

import msgspec
import structlog

from rules.findings import Unreadable
from service.clusters.discovery import not_an_api_server
from service.clusters.drawer import Drawer, key_of
from service.clusters.listing import TooMany, list_all
from service.clusters.refusals import Refused, Status
from service.clusters.scope import right_to_add
from service.clusters.transport import BUSY, Transport
from service.clusters.wire import Decode, PageInvalid, WatchEvent, decode_event, remembering
from service.errors import ClusterTimeout, ClusterTrouble, ClusterUnavailable

Reason = Literal[
    "loaded",
    "ended",
    "silent",
    "expired",
    "doubtful",
    "malformed",
    "unwatchable",
    "refused",
    "no-streaming",
    "trouble",
]

WATCH_SECONDS = (300.0, 600.0)
"""How long a watch may last; a different time for each, as client-go does, so that they do not all end together."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LONGEST_RETRY_AFTER = 120.0
HELD_SECONDS = 30.0
"""A watch that held so long was well: the pauses begin small again."""

log = structlog.get_logger(__name__)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How often things are asked for, in seconds.

    Attributes:
        silence: without a byte, after which a watch is dead. Bookmarks come about once a minute.
        stale: for so long a kind counts as current that was not confirmed; beyond ``silence``, so that a watch may be
            begun anew meanwhile.
        poll: between two lists of a kind that is not worth a watch.
        poll_unwatchable: between two lists of a kind that should be watched and cannot be.
        ask_again: until a kind without right or API is asked for again.
    """

    silence: float = 90.0
    stale: float = 120.0
    poll: float = 300.0
    poll_unwatchable: float = 60.0
    ask_again: float = 600.0


class Tools(msgspec.Struct, kw_only=True):
    """What the watches of one cluster share.

    Attributes:
        seats: bounds the lists that are read at the same time.
        changed: called when something that matters is different.
        settled: called when a kind has been read, or has failed, for the first time.
        note: tells people once that something is less than it should be: a key and a sentence; None takes it back.
        monotonic, sleep, random: time in seconds, waiting, and a number from 0 to 1.
        streaming: whether the server has streaming lists; set to False when it says that it has not.
    """

    transport: Transport
    decode: Decode
    page_size: int
    seats: asyncio.Semaphore
    pace: Pace
    changed: Callable[[], None]
    settled: Callable[[], None]
    note: Callable[[str, str | None], None]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    streaming: bool = True

    def about(self, seconds: float) -> float:
        """``seconds``, give or take a quarter."""
        return seconds * (0.75 + 0.5 * self.random())


class _Stop(Exception):
    """A watch is over for a reason."""

    def __init__(self, reason: Reason, *, relist: bool = False) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.relist = relist


class Follower:
    """Keeps one drawer current, for ever.

    Args:
        drawer: where the objects go.
        path: of the list and the watch.
        watched: False lists again and again instead.
    """

    def __init__(self, drawer: Drawer, path: str, tools: Tools, *, watched: bool) -> None:
        self._drawer = drawer
        self._spec = drawer.spec
        self._path = path
        self._tools = tools
        self._watched = watched
        self._failures = 0
        self._retry_after: float | None = None
        self._unwatchable: str | None = None
        self._watch_again = 0.0
        drawer.polled = not watched
        drawer.stale_after = self._patience(watched)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            began = self._tools.monotonic()
            reason = await self.step()
            if self._tools.monotonic() - began >= HELD_SECONDS:
                self._failures = 0
            await self._tools.sleep(self._pause(reason))

    async def step(self) -> Reason:
        """One list, or one watch from its beginning to its end; why it ended."""
        self._retry_after = None
        drawer = self._drawer
        if drawer.unreadable(self._tools.monotonic()) is not None:
            drawer.revision = ""  # a list says at once that all is here; a watch only with its first bookmark
        watching = not drawer.polled and bool(drawer.revision or self._streams())
        try:
            reason = await (self._watch() if watching else self._load())
        except Refused as refused:
            reason = self._refused(refused, watching=watching)
        except _Stop as stop:
            reason = stop.reason
            if stop.relist:
                drawer.revision = ""
        except TooMany as error:
            drawer.refuse(Unreadable(self._spec.kind, "error", str(error)))
            self._tools.changed()
            reason = "refused"
        except PageInvalid as error:
            drawer.revision = ""
            drawer.fail(not_an_api_server(self._tools.transport, f"what it says of {self._spec.resource}: {error}"))
            reason = "malformed"
        except ClusterTrouble as trouble:
            drawer.fail(trouble)
            reason = "trouble"
        if reason not in ("loaded", "ended"):
            log.info("watch", cluster=self._tools.transport.cluster, kind=self._spec.kind, reason=reason)
        self._tools.settled()
        return reason

    def _streams(self) -> bool:
        return self._watched and self._tools.streaming

    async def _load(self) -> Reason:
        tools = self._tools
        async with tools.seats:
            asked = tools.monotonic()
            listed = await list_all(tools.transport, tools.decode, self._spec, self._path, page_size=tools.page_size)
        if self._drawer.replace(listed.items, listed.resource_version, asked):
            tools.changed()
        if self._unwatchable is not None:
            tools.note(f"watch {self._spec.plural}", self._unwatchable)
        return "loaded"

    async def _watch(self) -> Reason:
        """Watch from the drawer's revision; without one, the server first sends what there is (a streaming list)."""
        tools, drawer = self._tools, self._drawer
        opened = False
        initial: dict[Any, Any] | None = None if drawer.revision else {}
        loading = ExitStack()
        if initial is not None:
            await tools.seats.acquire()
            loading.callback(tools.seats.release)
            loading.enter_context(remembering())
        try:
            stream = tools.transport.stream(self._path, self._query(), silence_seconds=tools.pace.silence)
            async with stream as batches:
                opened = True
                tools.note(f"watch {self._spec.plural}", None)
                async for batch in batches:
                    for line in batch:
                        event = decode_event(self._spec, line)
                        if event.type == "ERROR":
                            raise self._error(event.status or Status())
                        if initial is not None:
                            if self._is_complete(initial, event):
                                initial = None
                                loading.close()
                        elif drawer.apply(event, tools.monotonic()):
                            tools.changed()
                        self._check_size(initial)
                    if drawer.doubtful:
                        raise _Stop("doubtful", relist=True)
                    await asyncio.sleep(0)  # lines that are here already would keep everyone else waiting
        except ClusterTimeout as silence:
            if not opened:
                raise
            drawer.fail(silence)
            raise _Stop("silent", relist=True) from silence
        finally:
            loading.close()
        if initial is not None:
            tools.streaming = False  # it ended without the mark that closes the initial objects
            return "no-streaming"
        return "ended"

    def _query(self) -> list[tuple[str, str]]:
        low, high = WATCH_SECONDS
        seconds = low + (high - low) * self._tools.random()
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", f"{seconds:.0f}")]
        if self._spec.selector:
            query.append(("fieldSelector", self._spec.selector))
        if self._drawer.revision:
            return [*query, ("resourceVersion", self._drawer.revision)]
        return [*query, ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]

    def _is_complete(self, initial: dict[Any, Any], event: WatchEvent) -> bool:
        if event.type == "DELETED":
            initial.pop(key_of(event.object), None)
        elif event.type != "BOOKMARK":
            initial[key_of(event.object)] = event.object
        elif event.initial_events_end:
            if self._drawer.replace(initial.values(), event.resource_version, self._tools.monotonic()):
                self._tools.changed()
            self._tools.settled()
            return True
        return False

    def _check_size(self, initial: dict[Any, Any] | None) -> None:
        limit = self._spec.max_objects
        if limit is not None and len(self._drawer.objects if initial is None else initial) > limit:
            raise TooMany(limit)

    def _error(self, status: Status) -> Exception:
        """What an ERROR inside a 200 means."""
        if status.code == 410:
            return _Stop("expired", relist=True)
        transport = self._tools.transport
        self._drawer.revision = ""
        return ClusterUnavailable(
            transport.cluster,
            f"the API server at {transport.server} broke off a watch of {self._spec.resource}: "
            f"{status.code} {status.reason}: {status.message}",
            "It is overloaded or restarting; the watch is begun anew.",
            status.code,
        )

    def _refused(self, refused: Refused, *, watching: bool) -> Reason:
        drawer, tools, spec = self._drawer, self._tools, self._spec
        match refused.status:
            case 410:
                drawer.revision = ""
                return "expired"
            case 400 | 422 if watching and not drawer.revision:
                tools.streaming = False  # servers before 1.32, or with the feature switched off
                return "no-streaming"
            case 403 | 404 | 405 if watching:
                # A right to list may be there without one to watch; the list will tell.
                drawer.revision, drawer.polled = "", True
                drawer.stale_after = self._patience(False)
                self._watch_again = tools.monotonic() + tools.pace.ask_again
                self._unwatchable = f"{spec.plural} are listed again and again: {refused.message}. {self._remedy()}"
                return "unwatchable"
            case 403:
                drawer.refuse(Unreadable(spec.kind, "forbidden", f"{refused.message}. {self._remedy()}"))
            case 404:
                drawer.refuse(Unreadable(spec.kind, "not-found", refused.message))
            case 504 if "too large resource version" in refused.message.lower():
                drawer.revision = ""  # the server lost its past
                self._busy(refused)
                return "trouble"
            case status if status in BUSY:
                self._busy(refused)
                return "trouble"
            case _:
                drawer.revision = ""
                self._busy(refused)
                return "trouble"
        tools.changed()
        return "refused"

    def _busy(self, refused: Refused) -> None:
        transport = self._tools.transport
        self._retry_after = refused.retry_after
        self._drawer.fail(
            ClusterUnavailable(
                transport.cluster,
                f"the API server at {transport.server} answered {refused} ({self._path})",
                "It is overloaded or restarting; it is asked again soon.",
                refused.status,
            )
        )

    def _remedy(self) -> str:
        return right_to_add(self._spec, self._drawer.namespace)

    def _patience(self, watched: bool) -> float:
        pace = self._tools.pace
        between = pace.poll_unwatchable if self._watched else pace.poll
        return pace.stale if watched else 1.25 * between + pace.stale

    def _pause(self, reason: Reason) -> float:
        pace, about = self._tools.pace, self._tools.about
        if reason == "loaded":
            self._failures = 0
            if self._drawer.polled:
                if self._watched and self._tools.monotonic() >= self._watch_again:
                    self._watch_again_now()
                    return 0.0
                return about(pace.poll_unwatchable if self._watched else pace.poll)
            return 0.0
        if reason == "refused":
            if self._watched:  # a right may have come meanwhile, and with it the one to watch
                self._watch_again_now()
            return about(pace.ask_again)
        if reason in ("no-streaming", "unwatchable"):
            return 0.0
        if reason == "ended" and not self._failures:
            self._failures += 1
            return 0.0
        wait = about(min(FIRST_PAUSE * 2.0**self._failures, LONGEST_PAUSE))
        self._failures = min(self._failures + 1, 16)
        return max(wait, min(self._retry_after or 0.0, LONGEST_RETRY_AFTER))

    def _watch_again_now(self) -> None:
        self._drawer.polled, self._unwatchable = False, None
        self._drawer.stale_after = self._patience(True)
