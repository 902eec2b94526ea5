"""One consistent list of one kind, page by page.

- **Consistency.** No ``resourceVersion`` is sent, so the first page is the newest state and the following pages are of
  the same revision. ``resourceVersion=0`` would be cheaper for the server, but ignores ``limit`` and may be old: a node
  could look idle because its new pod is not there yet.
- **A list that expires while it is read (410)** is read again from the start, once. The token for an "inconsistent
  rest" that comes with the 410 is not used: a pod that is replaced meanwhile can be missing from such a list under its
  old and its new name, and its node would look idle. Expiring twice makes the kind unreadable.
"""

from typing import Any

import msgspec

from service.clusters.kinds import KindSpec
from service.clusters.refusals import Refused
from service.clusters.transport import Transport
from service.clusters.wire import Decode, PageInvalid


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
    while True:
        query = [("limit", str(page_size)), *selected, *([("continue", token)] if token else [])]
        page = decode(spec, await transport.get(path, query))
        items.extend(page.items)
        if not page.continue_token:
            return Listed(items, page.resource_version)
        if page.continue_token == token:
            raise PageInvalid("the server gives the same page again and again")
        if spec.max_objects is not None and len(items) >= spec.max_objects:
            raise TooMany(spec.max_objects)
        token = page.continue_token
