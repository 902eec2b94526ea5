"""Sets of Kubernetes objects, and what one can say of a set as a whole."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from rules.facts.kinds import kind_key
from rules.facts.objects import Condition, ContainerStatus, Event, Node, ObjectMeta, OtherObject, Pod
from rules.findings import Unreadable

Item = TypeVar("Item", bound="Node | Pod | Event | OtherObject")

Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""

TAKE_SNAPSHOT = (
    "kubectl get nodes,pods,events,daemonsets,deployments,statefulsets,jobs,cronjobs,pvc,pv,storageclasses,pdb,hpa,"
    "resourcequotas,priorityclasses,apiservices -A -o json"
)
"""How to write a snapshot that the rules can work on."""


class Objects(msgspec.Struct, frozen=True):
    """Decoded Kubernetes objects.

    Attributes:
        others: objects of further kinds by :func:`~rules.facts.kinds.kind_key`.
        kinds: kinds that were read completely, as ``kind_key`` names them. An empty typed list (``PodList``) is a kind
            that was read; an empty ``List`` says nothing of any kind.
        partial: kinds of which some objects are here and others may be missing, with the reason; see
            :mod:`rules.facts.completeness`.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    others: Mapping[str, tuple[OtherObject, ...]] = msgspec.field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    partial: Mapping[str, str] = msgspec.field(default_factory=dict)

    def merge(self, other: "Objects") -> "Objects":
        """Both sets in one. Of two objects with the same kind, namespace and name the newer one stays, by their
        resourceVersion; where that does not tell, the fuller one; else the one of ``other``."""
        merged = ObjectCollector()
        for objects in (self, other):
            merged.include(objects)
        return merged.finish()


class ObjectCollector:
    """Gathers objects one by one; of two of the same name the newer or fuller one stays, else the later one."""

    def __init__(self) -> None:
        self._nodes: dict[Key, Node] = {}
        self._pods: dict[Key, Pod] = {}
        self._events: dict[Key, Event] = {}
        self._others: dict[str, dict[Key, OtherObject]] = {}
        self._kinds: set[str] = set()
        self._partial: dict[str, str] = {}

    def saw(self, kind: str) -> None:
        """Note that objects of ``kind`` (a kind key) were read, be there any or not."""
        self._kinds.add(kind)

    def saw_some(self, kind: str, why: str) -> None:
        """Note that objects of ``kind`` are here, but perhaps not all of them."""
        self._partial.setdefault(kind, why)

    def add(self, kind: str, item: Node | Pod | Event | OtherObject) -> None:
        """Add an object of ``kind`` (a kind key)."""
        if isinstance(item, Pod):
            _put(self._pods, item)
        elif isinstance(item, Node):
            _put(self._nodes, item)
        elif isinstance(item, Event):
            _put(self._events, item)
        else:
            _put(self._others.setdefault(kind, {}), item)

    def include(self, objects: Objects) -> None:
        """Add a whole set."""
        self._kinds |= objects.kinds
        for kind, why in objects.partial.items():
            self.saw_some(kind, why)
        for node in objects.nodes:
            self.add("Node", node)
        for pod in objects.pods:
            self.add("Pod", pod)
        for event in objects.events:
            self.add("Event", event)
        for kind, others in objects.others.items():
            # Namesakes of Kubernetes' own kinds keep their own drawer.
            for other in others:
                self.add(kind_key(other.apiVersion, other.kind) if other.kind else kind, other)

    def finish(self) -> Objects:
        """What was gathered."""
        return Objects(
            nodes=tuple(self._nodes.values()),
            pods=tuple(self._pods.values()),
            events=tuple(self._events.values()),
            others={kind: tuple(items.values()) for kind, items in self._others.items()},
            kinds=frozenset(self._kinds),
            partial={kind: why for kind, why in self._partial.items() if kind not in self._kinds},
        )


def _put(kept: "dict[Key, Item]", item: "Item") -> None:
    key = (item.metadata.namespace or "", item.metadata.name)
    known = kept.get(key)
    if known is None or not _outranks(known, item):
        kept[key] = item


def _outranks(one: "Item", other: "Item") -> bool:
    """Whether ``one`` is the newer of two readings of an object, or the fuller one where their versions do not tell.

    Versions of one resource in one cluster are numbers that grow (Kubernetes API concepts, resource versions, 1.35).
    """
    versions = (one.metadata.resourceVersion or "", other.metadata.resourceVersion or "")
    if all(version.isdecimal() for version in versions) and versions[0] != versions[1]:
        return int(versions[0]) > int(versions[1])
    return len(msgspec.json.encode(one)) > len(msgspec.json.encode(other))


def not_in_snapshot(
    kinds: Iterable[str],
    needed: Iterable[str] = ("Node", "Pod", "Event"),
    partial: Mapping[str, str] | None = None,
) -> tuple[Unreadable, ...]:
    """What is unknown, never empty: the ``needed`` kinds that are not among ``kinds``, and the ``partial`` ones."""
    present, some = frozenset(kinds), partial or {}
    missing = [kind for kind in needed if kind not in present]
    return tuple(
        Unreadable(
            kind,
            "not-in-snapshot",
            f"perhaps not all objects of kind {kind} are in the snapshot: {some[kind]}; take it with: {TAKE_SNAPSHOT}"
            if kind in some
            else f"the snapshot holds no {kind}; take it with: {TAKE_SNAPSHOT}",
        )
        for kind in dict.fromkeys((*missing, *sorted(some.keys() - present)))
    )


def newest_timestamp(objects: Objects) -> datetime | None:
    """The newest moment that any object speaks of: the snapshot was taken then or a little later.

    Heartbeats, transitions, events, creations, starts and ends of containers, lease renewals. Not the deletion
    timestamp, which lies in the future while a pod has its grace period (Kubernetes API conventions, metadata).
    """
    return max(filter(None, _timestamps(objects)), default=None)


def _timestamps(objects: Objects) -> Iterator[datetime | None]:
    for node in objects.nodes:
        yield node.metadata.creationTimestamp
        yield from _of_conditions(node.status.conditions if node.status else None)
        for taint in (node.spec.taints if node.spec else None) or ():
            yield taint.timeAdded
    for pod in objects.pods:
        yield pod.metadata.creationTimestamp
        if pod.status is not None:
            yield pod.status.startTime
            yield from _of_conditions(pod.status.conditions)
            for status in (*(pod.status.containerStatuses or ()), *(pod.status.initContainerStatuses or ())):
                yield from _of_container(status)
    for event in objects.events:
        yield event.metadata.creationTimestamp
        yield event.lastTimestamp
        yield event.eventTime
        yield event.series.lastObservedTime if event.series else None
    for others in objects.others.values():
        for other in others:
            yield from _of_other(other.metadata, other.spec, other.status)


def _of_conditions(conditions: list[Condition] | None) -> Iterator[datetime | None]:
    for condition in conditions or ():
        yield condition.lastHeartbeatTime
        yield condition.lastTransitionTime


def _of_container(status: ContainerStatus) -> Iterator[datetime | None]:
    for state in (status.state, status.lastState):
        if state is not None and state.running is not None:
            yield state.running.startedAt
        if state is not None and state.terminated is not None:
            yield state.terminated.startedAt
            yield state.terminated.finishedAt


def _of_other(
    metadata: ObjectMeta, spec: dict[str, Any] | None, status: dict[str, Any] | None
) -> Iterator[datetime | None]:
    yield metadata.creationTimestamp
    if spec:
        yield parse_time(spec.get("renewTime"))
    conditions = status.get("conditions") if status else None
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict):
            yield parse_time(condition.get("lastTransitionTime"))
            yield parse_time(condition.get("lastHeartbeatTime"))


def parse_time(value: object) -> datetime | None:
    """An RFC 3339 time with a zone; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.astimezone(UTC) if parsed.tzinfo is not None and 1 < parsed.year < 9999 else None
