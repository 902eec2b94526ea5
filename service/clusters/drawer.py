"""What a mirror holds of one kind in one place: its objects, how far they are current, and why not further."""

from collections.abc import Iterable
from typing import Any

import msgspec

from rules.facts.objects import Condition, Node
from rules.facts.trim import reusing
from rules.findings import Unreadable
from service.clusters.kinds import KindSpec
from service.clusters.wire import WatchEvent
from service.errors import ClusterTrouble

Key = tuple[str, str]
"""Namespace ("" where there is none) and name."""

QUIET = frozenset({"Event"})
"""Kinds whose changes are no reason to look again: an event comes with a change of the object that it is about."""


class Drawer:
    """The objects of one kind, of the whole cluster or of one namespace.

    Time is monotonic seconds: the wall clock may jump.

    Args:
        spec: the kind.
        namespace: None for the whole cluster.

    Attributes:
        objects: what is known, by key. An object that did not change stays the same instance over lists, so that what
            was derived from it can be kept.
        revision: up to which all changes are in; "" before the first list and when the next step must be a list.
        heard: when the server last confirmed that nothing is missing up to then; None before the first list.
        doubtful: a change came that should not have come; what else did not come is not known.
        trouble: the latest failure, while it lasts.
        refused: why the kind cannot be read at all, at present.
        settled: there was a first list, or a first failure.
        polled: it is listed again and again instead of watched.
        stale_after: seconds after which what is held counts as unknown.
    """

    def __init__(self, spec: KindSpec, namespace: str | None = None, *, stale_after: float) -> None:
        self.spec = spec
        self.namespace = namespace
        self.objects: dict[Key, Any] = {}
        self.revision = ""
        self.heard: float | None = None
        self.doubtful = False
        self.trouble: ClusterTrouble | None = None
        self.refused: Unreadable | None = None
        self.settled = False
        self.polled = False
        self.stale_after = stale_after

    def replace(self, items: Iterable[Any], revision: str, now: float) -> bool:
        """Take a whole list; whether anything that matters is different from before."""
        before, fresh = self.objects, {}
        different = self.heard is None
        for item in items:
            key = key_of(item)
            old = before.get(key)
            if old is not None and _same_version(old, item):
                fresh[key] = old
                continue
            different = different or old is None or matters(old, item)
            fresh[key] = item
        different = different or before.keys() != fresh.keys()
        self.objects, self.revision, self.doubtful = fresh, revision, False
        self.confirm(now)
        return different and self.spec.kind not in QUIET

    def apply(self, event: WatchEvent, now: float) -> bool:
        """Take a change; whether it matters.

        The changes of one watch come in the order of their revisions. One that does not is left out: it is older than
        what is known. And since a server that tells old things (it was restored from a backup, or something between us
        repeats itself) may have kept new ones to itself, the drawer is doubtful until it is listed anew.
        """
        if self._is_old(event):
            self.doubtful = True
            return False
        self.confirm(now)
        self.revision = event.resource_version or self.revision
        if event.type == "BOOKMARK":
            return False
        key = key_of(event.object)
        if event.type == "DELETED":
            gone = self.objects.pop(key, None) is not None
            return gone and self.spec.kind not in QUIET
        old = self.objects.get(key)
        self.objects[key] = event.object if old is None else reusing(old, event.object)
        return self.spec.kind not in QUIET and (old is None or matters(old, event.object))

    def confirm(self, now: float) -> None:
        """The server says that what is here is all there is."""
        self.heard, self.trouble, self.refused, self.settled = now, None, None, True

    def fail(self, trouble: ClusterTrouble) -> None:
        """Note a failure; what is held stays, and grows old."""
        self.trouble, self.settled = trouble, True

    def refuse(self, why: Unreadable) -> None:
        """Nothing can be read of the kind at present: what was held is not true any more."""
        self.refused, self.trouble, self.settled = why, None, True
        self.objects, self.revision, self.heard = {}, "", None

    def unreadable(self, now: float) -> Unreadable | None:
        """Why the kind is unknown; None while it is current."""
        if self.refused is not None:
            return self.refused
        if self.heard is not None and now - self.heard <= self.stale_after:
            return None
        where = f" in the namespace {self.namespace}" if self.namespace else ""
        said = f"{self.trouble.detail}. {self.trouble.remedy}" if self.trouble else "no answer yet"
        if self.heard is None:
            return Unreadable(self.spec.kind, "error", f"{self.spec.plural}{where} were not read so far: {said}")
        age = f"{now - self.heard:.0f} s"
        return Unreadable(self.spec.kind, "error", f"{self.spec.plural}{where} are not current since {age}: {said}")

    def _is_old(self, event: WatchEvent) -> bool:
        known, new = self.revision, event.resource_version
        if not (known.isdecimal() and new.isdecimal()):
            return False  # an opaque version does not tell
        if event.type == "BOOKMARK":
            return int(new) < int(known)
        return int(new) <= int(known)


def key_of(item: Any) -> Key:
    """The key of an object in its drawer."""
    return item.metadata.namespace or "", item.metadata.name


def matters(old: Any, new: Any) -> bool:
    """Whether two versions of an object differ in more than their version and the heartbeats of a node."""
    return bool(_bare(old) != _bare(new))


def _bare(item: Any) -> Any:
    metadata = msgspec.structs.replace(item.metadata, resourceVersion=None, generation=None)
    if isinstance(item, Node) and item.status is not None:
        conditions = [_without_heartbeat(condition) for condition in item.status.conditions or ()]
        status = msgspec.structs.replace(item.status, conditions=conditions, images=None)
        return msgspec.structs.replace(item, metadata=metadata, status=status)
    return msgspec.structs.replace(item, metadata=metadata)


def _without_heartbeat(condition: Condition) -> Condition:
    return msgspec.structs.replace(condition, lastHeartbeatTime=None)


def _same_version(old: Any, new: Any) -> bool:
    version = new.metadata.resourceVersion
    return version is not None and version == old.metadata.resourceVersion and old.metadata.uid == new.metadata.uid
