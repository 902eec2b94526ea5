"""Reading all kinds of one API server: pages, concurrency, deadline, and what a refusal means.

Choices that are made here:

- **Lists** are consistent, see :mod:`service.clusters.listing`.
- **Absent APIs** are found by discovery (``/apis``), because a reader without rights gets 403 for a group that does not
  exist. Only where discovery itself is refused are they asked for blindly.
- **A kind that cannot be read is unknown**, and the others go on; only without nodes is there nothing to say.
- **Some namespaces only** (``namespaces``): what is there is read, and counts as a part; nodes may stay unknown then.
  Only when nothing at all can be read is there nothing to say.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from rules.findings import Unreadable
from service.clusters.config import ClusterSettings
from service.clusters.discovery import best_version, not_an_api_server, served_versions, server_version
from service.clusters.kinds import KINDS, KindSpec
from service.clusters.listing import list_all
from service.clusters.model import Collected
from service.clusters.refusals import Refused
from service.clusters.scope import outside_of, right_to_add, scopes
from service.clusters.transport import Transport
from service.clusters.wire import Decode, PageInvalid
from service.errors import (
    ClusterAnswerInvalid,
    ClusterForbidden,
    ClusterTimeout,
    ClusterTrouble,
    ClusterUnauthorized,
    ClusterUnavailable,
)


async def collect(transport: Transport, settings: ClusterSettings, decode: Decode) -> Collected:
    """Read every kind of :data:`~service.clusters.kinds.KINDS`.

    Raises:
        ClusterUnauthorized, ClusterForbidden, ClusterUnreachable, ClusterTimeout, ClusterUnavailable,
        ClusterAnswerInvalid: the nodes could not be read.
    """
    reading = _Collection(transport, settings, decode)
    try:
        async with asyncio.timeout(settings.timeout_seconds) as deadline:
            await reading.run()
    except TimeoutError:
        if not deadline.expired():
            raise
        reading.give_up()
    except ExceptionGroup as group:
        raise _first(group) from group
    return reading.result()


class _Collection:
    def __init__(self, transport: Transport, settings: ClusterSettings, decode: Decode) -> None:
        self._transport = transport
        self._settings = settings
        self._decode = decode
        self._seats = asyncio.Semaphore(settings.max_parallel)
        self._version: str | None = None
        self._groups: frozenset[str] | None = None
        self._objects: dict[str, Sequence[Any]] = {}
        self._unreadable: dict[str, Unreadable] = {}
        self._troubles: list[ClusterTrouble] = []

    async def run(self) -> None:
        self._version = await server_version(self._transport)
        served = await served_versions(self._transport)
        self._groups = None if served is None else frozenset(served)
        async with asyncio.TaskGroup() as group:
            for spec in KINDS:
                version = best_version(spec, served)
                if version is None:
                    self._note(spec, "not-found", f"this API server does not serve the API group {spec.group}")
                else:
                    group.create_task(self._read(spec, version))

    def give_up(self) -> None:
        """Time is over: what is complete counts, the rest is unknown."""
        seconds = f"{self._settings.timeout_seconds:g} seconds"
        for spec in KINDS:
            if spec.kind in self._objects or spec.kind in self._unreadable:
                continue
            trouble = ClusterTimeout(
                self._transport.cluster,
                f"the API server at {self._transport.server} did not send all {spec.plural} within {seconds}",
                "It may be overloaded or far away; raise timeout_seconds, or set gzip: true for a slow line.",
            )
            if self._needs(spec):
                raise trouble
            self._troubles.append(trouble)
            self._note(spec, "error", f"no complete answer within {seconds}")

    def result(self) -> Collected:
        if not self._objects and self._troubles:
            raise self._troubles[0]
        for spec in KINDS:
            outside = outside_of(spec, self._settings.namespaces)
            if spec.kind in self._objects and outside is not None:
                self._unreadable.setdefault(spec.kind, outside)
        objects = {kind: tuple(items) for kind, items in self._objects.items()}
        return Collected(
            nodes=objects.pop("Node", ()),
            pods=objects.pop("Pod", ()),
            events=objects.pop("Event", ()),
            others=objects,
            read_kinds=frozenset(self._objects.keys() - self._unreadable.keys()),
            unreadable=tuple(self._unreadable[spec.kind] for spec in KINDS if spec.kind in self._unreadable),
            version=self._version,
            api_groups=self._groups,
        )

    async def _read(self, spec: KindSpec, version: str) -> None:
        items: list[Any] = []
        for namespace in scopes(spec, self._settings.namespaces):
            if await self._read_in(spec, version, namespace, items) or items:
                self._objects[spec.kind] = items

    async def _read_in(self, spec: KindSpec, version: str, namespace: str | None, items: list[Any]) -> bool:
        """Add the objects of one namespace, or of all; False when they cannot be read, which is noted."""
        path = spec.path(version, namespace)
        async with self._seats:
            try:
                listed = await list_all(self._transport, self._decode, spec, path, page_size=self._settings.page_size)
                items.extend(listed.items)
            except Refused as refused:
                self._refused(spec, refused, namespace)
            except PageInvalid as error:
                self._failed(
                    spec, not_an_api_server(self._transport, f"the list of {spec.resource} cannot be read: {error}")
                )
            except ClusterUnauthorized:
                raise
            except ClusterTrouble as trouble:
                self._failed(spec, trouble)
            else:
                return True
        return False

    def _needs(self, spec: KindSpec) -> bool:
        """Whether nothing can be said without the kind."""
        return spec.required and not self._settings.namespaces

    def _refused(self, spec: KindSpec, refused: Refused, namespace: str | None) -> None:
        match refused.status:
            case 403 if self._needs(spec):
                raise ClusterForbidden(
                    self._transport.cluster,
                    refused.message,
                    right_to_add(spec, namespace),
                    spec.rbac_rule,
                ) from refused
            case 403:
                self._note(spec, "forbidden", f"{refused.message}. {right_to_add(spec, namespace)}")
            case 404 if self._needs(spec):
                raise not_an_api_server(self._transport, f"it has no {spec.plural}: {refused.message}") from refused
            case 404:
                self._note(spec, "not-found", refused.message)
            case 410:
                trouble: ClusterTrouble = ClusterUnavailable(
                    self._transport.cluster,
                    f"the list of {spec.resource} expired twice while it was read",
                    "Raise page_size, or set gzip: true for a slow line.",
                    refused.status,
                )
                self._failed(spec, trouble)
            case _:
                trouble = ClusterAnswerInvalid(
                    self._transport.cluster,
                    f"the API server at {self._transport.server} answered {refused} to a list of {spec.resource}",
                    "This should not happen; report it with the version of the API server.",
                )
                self._failed(spec, trouble)

    def _failed(self, spec: KindSpec, trouble: ClusterTrouble) -> None:
        if self._needs(spec):
            raise trouble
        self._troubles.append(trouble)
        self._note(spec, "error", f"{trouble.detail}. {trouble.remedy}")

    def _note(self, spec: KindSpec, reason: Any, detail: str) -> None:
        self._unreadable[spec.kind] = Unreadable(spec.kind, reason, detail)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The exception to report of several at once: typed trouble before anything else."""
    found = [error for error in group.exceptions if not isinstance(error, ExceptionGroup)]
    return next((error for error in found if isinstance(error, ClusterTrouble)), found[0])
