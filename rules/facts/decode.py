"""Files of ``kubectl get -o json|yaml`` and list pages of the API server, decoded into trimmed objects."""

from typing import Any, Generic, TypeVar

import msgspec

from rules.errors import SnapshotInvalid
from rules.facts.decode_errors import path_of, problem_of
from rules.facts.objects import Event, Node, OtherObject, Pod
from rules.facts.objectset import Objects, newest_timestamp, not_in_snapshot
from rules.facts.pause import collector_paused
from rules.facts.reader import DEFAULT_LIMITS, Limits, SnapshotReader

__all__ = ["Limits", "Objects", "Page", "decode_objects", "decode_page", "newest_timestamp", "not_in_snapshot"]

T = TypeVar("T")


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str | None = None
    resourceVersion: str | None = None  # noqa: N815
    remainingItemCount: int | None = None  # noqa: N815


class _List(msgspec.Struct, Generic[T]):
    kind: str | None = None
    apiVersion: str | None = None  # noqa: N815
    items: list[T] | None = None
    metadata: _ListMeta | None = None
    message: str | None = None


class Page(msgspec.Struct, frozen=True):
    """One page of a list.

    Attributes:
        items: trimmed objects of one kind.
        continue_: token for the next page; empty on the last one.
        resourceVersion: version of the list.
        remaining: items after this page; None when the server does not say.
    """

    items: tuple[Any, ...]
    continue_: str
    resourceVersion: str  # noqa: N815
    remaining: int | None


_PAGES: dict[str, msgspec.json.Decoder[Any]] = {
    "Node": msgspec.json.Decoder(_List[Node]),
    "Pod": msgspec.json.Decoder(_List[Pod]),
    "Event": msgspec.json.Decoder(_List[Event]),
}
_OTHER_PAGE: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_List[OtherObject])


def decode_objects(data: bytes, source: str, limits: Limits = DEFAULT_LIMITS) -> Objects:
    """Decode what kubectl printed.

    What is read: a ``List``, typed lists (``NodeList``; their items may lack kind and apiVersion), single objects,
    several YAML documents, JSON documents one after the other (JSON Lines too), files put together from any of these,
    with the byte order mark of UTF-8 or UTF-16 that Windows shells write, and with warnings of kubectl in between.

    Args:
        data: the file's bytes.
        source: the file's name, for errors.
        limits: what it may cost.

    Raises:
        SnapshotInvalid: it is something else; position and expectation say what and where.
    """
    with collector_paused():
        return SnapshotReader(data, source, limits).read()


def decode_page(data: bytes, kind: str, source: str = "the API server's answer") -> Page:
    """Decode one page of a list of ``kind``, in one pass. Items of built-in kinds get kind and apiVersion of the list.

    Raises:
        SnapshotInvalid: it is not a ``<kind>List``.
    """
    try:
        with collector_paused():
            page = _PAGES.get(kind, _OTHER_PAGE).decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise SnapshotInvalid(source, path_of(str(error)), f"expected a {kind}List; {problem_of(error)}") from error
    if page.kind != f"{kind}List":
        raise SnapshotInvalid(source, "kind", f"expected {kind}List, found {page.kind} {page.message or ''}".rstrip())
    items = page.items or ()
    if kind not in _PAGES:
        version = page.apiVersion or ""
        items = [item if item.kind else msgspec.structs.replace(item, kind=kind, apiVersion=version) for item in items]
    meta = page.metadata or _ListMeta()
    return Page(tuple(items), meta.continue_ or "", meta.resourceVersion or "", meta.remainingItemCount)
