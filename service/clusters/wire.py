"""The wire formats: bodies of lists and lines of watches to trimmed objects."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from rules.errors import SnapshotInvalid
from rules.facts.decode import decode_page
from rules.facts.decode_errors import path_of, problem_of
from rules.facts.objects import Event, Node, OtherObject, Pod
from service.clusters.kinds import KindSpec
from service.clusters.refusals import Status

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
_TYPES = frozenset(get_args(ChangeType))


class Page(msgspec.Struct, frozen=True):
    """One page of a list.

    Attributes:
        items: trimmed objects.
        continue_token: of the next page; "" on the last one.
        resource_version: of the list, the same on all its pages: where a watch takes over. "" when not given.
    """

    items: Sequence[Any]
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
    return Page(page.items, page.continue_, page.resourceVersion)


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
    return WatchEvent(type=kind, object=item, resource_version=item.metadata.resourceVersion or "")
