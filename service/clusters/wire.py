"""The wire formats: bodies of lists and lines of watches to trimmed objects.

Nodes and pods are nearly all of a large cluster, so they are asked for as protobuf: fewer bytes, decoded faster. All
other kinds, and whatever the server does not give as protobuf, come as JSON; custom resources have no other format. A
body of protobuf begins with four bytes that no JSON begins with, so it says itself what it is.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from rules.errors import SnapshotInvalid
from rules.facts.decode import decode_page
from rules.facts.decode_errors import path_of, problem_of
from rules.facts.objects import Event, Node, OtherObject, Pod
from rules.facts.trim import Shelf, trim_node, trim_pod
from service.clusters.kinds import KindSpec
from service.clusters.refusals import Status

if TYPE_CHECKING:
    from service.clusters.protobuf.decode import ProtobufDecoder

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
_TYPES = frozenset(get_args(ChangeType))


class Page(msgspec.Struct, frozen=True):
    """One page of a list.

    Attributes:
        items: trimmed objects; to be taken once. They may be decoded only as they are taken, which raises PageInvalid.
        continue_token: of the next page; "" on the last one.
        resource_version: of the list, the same on all its pages: where a watch takes over. "" when not given.
    """

    items: Iterable[Any]
    continue_token: str
    resource_version: str = ""


class WatchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One change that a watch tells of.

    Attributes:
        type: as the server spells it.
        object: the trimmed object as it is now (DELETED: as it was at last); None for BOOKMARK and ERROR.
        resource_version: of the object, or the one that a bookmark brings; "" for ERROR.
        initial_events_end: a bookmark that ends the initial objects of a streaming list (KEP-3157).
        status: what an ERROR says; None for all others.
    """

    type: ChangeType
    object: Any = None
    resource_version: str = ""
    initial_events_end: bool = False
    status: Status | None = None


class PageInvalid(Exception):
    """The body is not the list (or the change) that was asked for; the message says where it stops being one."""


Decode = Callable[[KindSpec, bytes], Page]
"""Turns a body into trimmed objects. Rules and collection do not know the wire format behind it."""


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename={"resource_version": "resourceVersion"}):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_CHANGE = msgspec.json.Decoder(_Change)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)
_STATUS = msgspec.json.Decoder(Status)
_OBJECTS: dict[str, msgspec.json.Decoder[Any]] = {
    "Node": msgspec.json.Decoder(Node),
    "Pod": msgspec.json.Decoder(Pod),
    "Event": msgspec.json.Decoder(Event),
}
_OTHER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(OtherObject)

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_AS_PROTOBUF = frozenset({"Node", "Pod"})
_MAGIC = b"k8s\0"


class _Shared:
    """What objects of all clusters have in common, so that they hold it once."""

    shelf = Shelf()
    lists = 0
    changes = Shelf(1_000)  # small, as it is kept: a changed object shares most with what it was before
    protobuf: "ProtobufDecoder | None" = None


def forget() -> None:
    """Let go of what was remembered to be shared; the objects that share it go on sharing it."""
    _Shared.shelf, _Shared.protobuf = Shelf(), None


@contextmanager
def remembering() -> Iterator[None]:
    """While lists are read: what their objects share is forgotten when the last of the lists is complete."""
    _Shared.lists += 1
    try:
        yield
    finally:
        _Shared.lists -= 1
        if not _Shared.lists:
            forget()


def accept(spec: KindSpec) -> str:
    """The formats to ask for, best first."""
    return f"{PROTOBUF},{JSON}" if spec.kind in _AS_PROTOBUF and not spec.group else JSON


def decode(spec: KindSpec, body: bytes) -> Page:
    """One page, in the format that it came in.

    Raises:
        PageInvalid: it is not a list of that kind; also while its items are taken.
    """
    if body[:4] != _MAGIC:
        return decode_json(spec, body)
    if _Shared.protobuf is None:
        from service.clusters.protobuf.decode import ProtobufDecoder

        _Shared.protobuf = ProtobufDecoder(_Shared.shelf)
    page = _Shared.protobuf.page(spec.kind, body)
    return Page(page, page.continue_token, page.resource_version)


def _trimmed(items: Iterable[Any]) -> Iterable[Any]:
    shelf = _Shared.shelf
    for item in items:
        yield _trim(item, shelf)


def _trim(item: Any, shelf: Shelf) -> Any:
    if isinstance(item, Pod):
        return trim_pod(item, shelf)
    return trim_node(item, shelf) if isinstance(item, Node) else item


def decode_json(spec: KindSpec, body: bytes) -> Page:
    """One page as JSON.

    Raises:
        PageInvalid: it is not a list of that kind.
    """
    try:
        page = decode_page(body, spec.kind)
    except SnapshotInvalid as error:
        where = f"{error.position}: " if error.position else ""
        raise PageInvalid(f"{where}{error.expected}") from error
    items = _trimmed(page.items) if spec.kind in _AS_PROTOBUF else page.items
    return Page(items, page.continue_, page.resourceVersion)


def decode_event(spec: KindSpec, line: bytes) -> WatchEvent:
    """One line of a watch as JSON.

    Raises:
        PageInvalid: it is not a change of an object of that kind.
    """
    try:
        change = _CHANGE.decode(line)
        if change.type not in _TYPES:
            raise PageInvalid(f"type: expected a kind of change, found {change.type!r}")
        kind: Any = change.type
        if kind == "ERROR":
            return WatchEvent(type=kind, status=_STATUS.decode(change.object))
        if kind == "BOOKMARK":
            meta = _BOOKMARK.decode(change.object).metadata
            ended = (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true"
            return WatchEvent(type=kind, resource_version=meta.resource_version, initial_events_end=ended)
        item = _OBJECTS.get(spec.kind, _OTHER).decode(change.object)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        where = path_of(str(error))
        raise PageInvalid(f"{f'{where}: ' if where else ''}expected a change; {problem_of(error)}") from error
    item = _trim(item, _Shared.changes)
    return WatchEvent(type=kind, object=item, resource_version=item.metadata.resourceVersion or "")
