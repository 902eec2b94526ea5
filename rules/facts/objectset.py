"""Sets of Kubernetes objects, and what one can say of a set as a whole."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from rules.facts.kinds import kind_key
from rules.facts.objects import Condition, ContainerStatus, Event, Node, ObjectMeta, OtherObject, Pod
from rules.findings import Unreadable

Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""

TAKE_SNAPSHOT = "kubectl get nodes,pods,events --all-namespaces -o json"
"""How to write a snapshot that the rules can work on."""


class Objects(msgspec.Struct, frozen=True):
    """Decoded Kubernetes objects.

    Attributes:
        others: objects of further kinds by :func:`~rules.facts.kinds.kind_key`.
        kinds: kinds that were read, as ``kind_key`` names them. An empty typed list (``PodList``) is a kind that was
            read; an empty ``List`` says nothing of any kind.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()
    others: Mapping[str, tuple[OtherObject, ...]] = msgspec.field(default_factory=dict)
    kinds: frozenset[str] = frozenset()

    def merge(self, other: "Objects") -> "Objects":
        """Both sets in one. Of two objects with the same kind, namespace and name the one of ``other`` stays."""
        merged = ObjectCollector()
        for objects in (self, other):
            merged.include(objects)
        return merged.finish()


class ObjectCollector:
    """Gathers objects one by one; a later object replaces an earlier one of the same name."""

    def __init__(self) -> None:
        self._nodes: dict[Key, Node] = {}
        self._pods: dict[Key, Pod] = {}
        self._events: dict[Key, Event] = {}
        self._others: dict[str, dict[Key, OtherObject]] = {}
        self._kinds: set[str] = set()

    def saw(self, kind: str) -> None:
        """Note that objects of ``kind`` (a kind key) were read, be there any or not."""
        self._kinds.add(kind)

    def add(self, kind: str, item: Node | Pod | Event | OtherObject) -> None:
        """Add an object of ``kind`` (a kind key)."""
        self._kinds.add(kind)
        key = (item.metadata.namespace or "", item.metadata.name)
        if isinstance(item, Pod):
            self._pods[key] = item
        elif isinstance(item, Node):
            self._nodes[key] = item
        elif isinstance(item, Event):
            self._events[key] = item
        else:
            self._others.setdefault(kind, {})[key] = item

    def include(self, objects: Objects) -> None:
        """Add a whole set."""
        self._kinds |= objects.kinds
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
        )


def not_in_snapshot(kinds: Iterable[str], needed: Iterable[str] = ("Node", "Pod", "Event")) -> tuple[Unreadable, ...]:
    """The ``needed`` kinds that are not among ``kinds``: unknown, never empty."""
    present = frozenset(kinds)
    return tuple(
        Unreadable(kind, "not-in-snapshot", f"the snapshot holds no {kind}; take it with: {TAKE_SNAPSHOT}")
        for kind in needed
        if kind not in present
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
