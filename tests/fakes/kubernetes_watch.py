"""Watches of the stand-in API server: one JSON object a line, bookmarks, streaming lists, 410 inside a 200."""

import asyncio
import json
from collections.abc import Callable

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


async def watch(
    request: web.Request, state: State, resource: Resource, keep: Callable[[Object], bool], namespace: str | None
) -> web.StreamResponse:
    """Answer ``?watch=true``: events until ``timeoutSeconds`` is over."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)

    async def send(kind: str, item: Object) -> None:
        await response.write(json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n")

    bookmarks = request.query.get("allowWatchBookmarks") == "true"
    asked = request.query.get("resourceVersion", "")
    if request.query.get("sendInitialEvents") == "true":
        items, revision, _, _ = state.page(resource, keep, namespace, 0, "")
        for item in items:
            await send("ADDED", item)
        if bookmarks:
            await send("BOOKMARK", _bookmark(resource, revision, initial_events_end=True))
    else:
        revision = int(asked) if asked.isdigit() and asked != "0" else state.revision
        if revision < state.compacted:
            await send("ERROR", _too_old(revision, state.compacted))
            await response.write_eof()
            return response

    def visible(item: Object) -> bool:
        return keep(item) and (namespace is None or item["metadata"].get("namespace") == namespace)

    stop = request.app[STOP]
    try:
        async with asyncio.timeout(float(request.query.get("timeoutSeconds", "1800"))):
            while not stop.is_set():
                rung = request.app[BELL].next
                for change in state.changes_since(revision, resource):
                    revision = change.revision
                    if visible(change.object):
                        await send(change.type, change.object)
                await rung.wait()
    except TimeoutError:
        if bookmarks:
            await send("BOOKMARK", _bookmark(resource, revision))
    except ConnectionResetError:
        return response
    await response.write_eof()
    return response


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
