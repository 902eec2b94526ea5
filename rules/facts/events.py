"""Events in one form, whichever of the two APIs they come from."""

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.facts.objects import Event, EventObject
from rules.findings import ObjectRef

_NEVER = datetime.min.replace(tzinfo=UTC)


def event_time(event: Event) -> datetime | None:
    """When it was seen last: of a series its last occurrence."""
    series = event.series.lastObservedTime if event.series else None
    return series or event.lastTimestamp or event.eventTime or event.firstTimestamp or event.metadata.creationTimestamp


def event_message(event: Event) -> str:
    """Its text: ``message`` in the core API, ``note`` in events.k8s.io."""
    return event.message or event.note or ""


def event_reporter(event: Event) -> str:
    """The component that reports it, for example ``default-scheduler``."""
    source = event.source.component if event.source else None
    return event.reportingComponent or event.reportingController or source or ""


def event_object(event: Event) -> ObjectRef | None:
    """What it is about."""
    about: EventObject | None = event.involvedObject or event.regarding
    return ObjectRef(about.kind, about.namespace or "", about.name) if about else None


def index_events(events: Iterable[Event]) -> dict[ObjectRef, tuple[Event, ...]]:
    """Events by object, oldest first."""
    found: dict[ObjectRef, list[Event]] = {}
    for event in events:
        ref = event_object(event)
        if ref is not None:
            found.setdefault(ref, []).append(event)
    return {ref: tuple(sorted(group, key=lambda event: event_time(event) or _NEVER)) for ref, group in found.items()}
