"""One consistent list of one kind, page by page.

- **Consistency.** No ``resourceVersion`` is sent, so the first page is the newest state and the following pages are of
  the same revision. ``resourceVersion=0`` would be cheaper for the server, but ignores ``limit`` and may be old: a node
  could look idle because its new pod is not there yet.
- **A list that expires while it is read (410)** is read again from the start, once. The token for an "inconsistent
  rest" that comes with the 410 is not used: a pod that is replaced meanwhile can be missing from such a list under its
  old and its new name, and its node would look idle. Expiring twice makes the kind unreadable.
- **The next page is on its way while one is decoded**: its token is known before. More requests at once would not help,
  as a page's token is the only way to the page after it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from rules.facts.pause import collector_paused
from service.clusters.kinds import KindSpec
from service.clusters.refusals import Refused
from service.clusters.transport import Transport
from service.clusters.wire import JSON, Decode, PageInvalid, accept, remembering

AT_ONCE = 100
"""Objects that are decoded before the event loop may read again: about as many milliseconds as it takes for a
connection's buffers to run full."""
_OTHER_FORMAT = (406, 415)
"""Not Acceptable and Unsupported Media Type: a server, or something before it, that knows JSON alone."""


class Listed(msgspec.Struct, frozen=True):
    """A whole list: trimmed objects, and the revision at which they were true."""

    items: list[Any]
    resource_version: str


class TooMany(PageInvalid):
    """There are more objects than are read at most."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"there are more than {limit}, and reading stopped there")


async def list_all(transport: Transport, decode: Decode, spec: KindSpec, path: str, *, page_size: int) -> Listed:
    """Every object at ``path``.

    Args:
        path: of the list, see :meth:`~service.clusters.kinds.KindSpec.path`.

    Raises:
        Refused: the server answered with another status; 410 when the list expired twice.
        PageInvalid: the body is not such a list.
        ClusterTrouble: see :meth:`~service.clusters.transport.Transport.get`.
    """
    with collector_paused(), remembering():
        try:
            return await _pages(transport, decode, spec, path, page_size)
        except Refused as refused:
            if refused.status != 410:
                raise
        return await _pages(transport, decode, spec, path, page_size)


async def _pages(transport: Transport, decode: Decode, spec: KindSpec, path: str, page_size: int) -> Listed:
    selected = [("fieldSelector", spec.selector)] if spec.selector else []
    items: list[Any] = []
    token = ""
    coming = _Coming(transport, spec, path)
    try:
        await coming.ask([("limit", str(page_size)), *selected])
        while True:
            page = decode(spec, await coming.body())
            if page.continue_token and page.continue_token == token:
                raise PageInvalid("the server gives the same page again and again")
            token = page.continue_token
            if token and (spec.max_objects is None or len(items) + page_size <= spec.max_objects):
                await coming.ask([("limit", str(page_size)), *selected, ("continue", token)])
            await _take(page.items, items)
            if not token:
                return Listed(items, page.resource_version)
            if spec.max_objects is not None and len(items) >= spec.max_objects:
                raise TooMany(spec.max_objects)
            if not coming.asked:
                await coming.ask([("limit", str(page_size)), *selected, ("continue", token)])
    finally:
        coming.forget()


async def _take(source: Iterable[Any], items: list[Any]) -> None:
    """Move all of ``source`` into ``items``, letting the next page arrive meanwhile."""
    objects = iter(source)
    while some := list(islice(objects, AT_ONCE)):
        items.extend(some)
        await asyncio.sleep(0)


class _Coming:
    """The page that is asked for before the one at hand is decoded: one request at a time, and none in vain."""

    def __init__(self, transport: Transport, spec: KindSpec, path: str) -> None:
        self._transport, self._path, self._accept = transport, path, accept(spec)
        self._task: asyncio.Task[bytes] | None = None

    @property
    def asked(self) -> bool:
        return self._task is not None

    async def ask(self, query: Sequence[tuple[str, str]]) -> None:
        self._task = asyncio.create_task(self._get(query))
        await asyncio.sleep(0)  # so that the request leaves before the decoding begins

    async def body(self) -> bytes:
        task, self._task = self._task, None
        assert task is not None
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            raise

    def forget(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _get(self, query: Sequence[tuple[str, str]]) -> bytes:
        try:
            return await self._transport.get(self._path, query, accept=self._accept)
        except Refused as refused:
            if refused.status not in _OTHER_FORMAT or self._accept == JSON:
                raise
        self._accept = JSON
        return await self._transport.get(self._path, query, accept=self._accept)
