"""The objects of a live cluster, kept current: an audit costs no request.

**Connections.** A watch over HTTP/1.1 keeps one connection, and the API server keeps a goroutine and a buffer for it;
so only kinds that change the picture within seconds are watched (:data:`WATCHED`), the most important first, and no
more than ``max_watches`` of them. All other kinds change rarely (quotas, classes, policies of operators) or matter
only beside the watched ones (Deployments of GPU pods): they are listed every few minutes, a few at a time. Lists never
take more than ``max_parallel`` connections. With ``namespaces`` every namespaced kind counts once per namespace.

**What is not current is unknown.** Each kind remembers when the server last confirmed it (a list, a change, a
bookmark). One that was not confirmed for longer than :class:`~service.clusters.watch.Pace` allows is unreadable, with
the reason, and so is a kind without right or API. Both are asked for again later, since rights may be added and APIs
installed; which APIs there are is asked now and then.

**Pods are never behind nodes for long.** The two watches are independent, so a node may be seen some milliseconds
before its pods. Nothing is called idle within seconds of its making, so that does no harm; a watch of pods that hangs
while nodes go on would, and is why silence ends a watch.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from rules.findings import Unreadable
from service.clusters.config import ClusterSettings
from service.clusters.discovery import best_version, not_an_api_server, served_versions, server_version
from service.clusters.drawer import Drawer
from service.clusters.kinds import KINDS, KindSpec
from service.clusters.model import Collected
from service.clusters.scope import outside_of, right_to_add, scopes
from service.clusters.transport import Transport
from service.clusters.watch import Follower, Pace, Tools
from service.clusters.wire import Decode
from service.errors import ClusterForbidden, ClusterTimeout, ClusterTrouble

WATCHED = (
    "Node",
    "Pod",
    "DaemonSet",
    "ResourceClaim",
    "ResourceSlice",
    "NodeClaim",
    "Workload",
    "PodGroup",
    "Event",
    "Deployment",
    "ClusterPolicy",
    "Job",
)
"""Kinds that are worth a connection, the most important first."""
DISCOVER_SECONDS = 600.0
LOOK_SECONDS = 5.0
"""How often it is looked whether a kind has become too old to count."""

log = structlog.get_logger(__name__)
_Place = tuple[str, str | None]


class ClusterMirror:
    """Follows one cluster from :meth:`start` to :meth:`close`.

    Args:
        settings: of the cluster.
        open_transport: makes the transport; may take a while.
        decode: wire format of lists.
        pace: how often things are asked for.
        clock: gives the present moment, for what is shown to people only.
        monotonic, sleep, chance: time, waiting and randomness.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        open_transport: Callable[[], Awaitable[Transport]],
        decode: Decode,
        *,
        pace: Pace | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._open_transport = open_transport
        self._decode = decode
        self._pace = pace or Pace()
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._chance = chance
        self._drawers: dict[_Place, Drawer] = {}
        self._followers: dict[_Place, tuple[str, asyncio.Task[None]]] = {}
        self._absent: dict[str, Unreadable] = {}
        self._version: str | None = None
        self._groups: frozenset[str] | None = None
        self._trouble: ClusterTrouble | Exception | None = None
        self._discovered = False
        self._settled = asyncio.Event()
        self._changed = asyncio.Event()
        self._notes: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._transport: Transport | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is less than it should be although everything can be read, one sentence each."""
        return tuple(self._notes[key] for key in sorted(self._notes))

    def start(self) -> None:
        """Begin, in the background."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._discover()), asyncio.create_task(self._look())]

    async def close(self) -> None:
        """End all watches and close their connections."""
        tasks = [*self._tasks, *(task for _, task in self._followers.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks, self._followers = [], {}
        if self._transport is not None:
            await self._transport.close()

    async def changed(self) -> None:
        """Wait until something that matters is different from when it was last waited for."""
        await self._changed.wait()
        self._changed.clear()

    async def collect(self) -> Collected:
        """What is known now; the first time, as soon as every kind was read or has failed once.

        Raises:
            ClusterTrouble, ConfigInvalid: as :meth:`service.clusters.model.Connector.collect` says.
        """
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._settled.wait()
        except TimeoutError:
            pass
        if not self._discovered and self._trouble is not None:
            raise self._trouble
        now, moment = self._monotonic(), self._clock()
        unreadable: dict[str, Unreadable] = {}
        current: dict[str, datetime] = {}
        objects: dict[str, tuple[Any, ...]] = {}
        for spec in KINDS:
            drawers = list(self._of(spec))
            why = self._why_unreadable(spec, drawers, now)
            if why is not None and spec.required:
                self._check_hope(spec, drawers, why, now)
            if why is None or any(drawer.objects for drawer in drawers):
                objects[spec.kind] = tuple(
                    item for drawer in drawers if drawer.unreadable(now) is None for item in drawer.objects.values()
                )
            if why is not None:
                unreadable[spec.kind] = why
            heard = [drawer.heard for drawer in drawers if drawer.heard is not None]
            if heard:
                current[spec.kind] = moment - timedelta(seconds=max(0.0, now - min(heard)))
        return Collected(
            nodes=objects.pop("Node", ()),
            pods=objects.pop("Pod", ()),
            events=objects.pop("Event", ()),
            others=objects,
            read_kinds=frozenset(spec.kind for spec in KINDS if spec.kind not in unreadable),
            unreadable=tuple(unreadable.values()),
            version=self._version,
            api_groups=self._groups,
            current_at=current,
            notes=self.notes,
        )

    def _of(self, spec: KindSpec) -> Iterator[Drawer]:
        for namespace in scopes(spec, self._settings.namespaces):
            drawer = self._drawers.get((spec.kind, namespace))
            if drawer is not None:
                yield drawer

    def _why_unreadable(self, spec: KindSpec, drawers: list[Drawer], now: float) -> Unreadable | None:
        if spec.kind in self._absent:
            return self._absent[spec.kind]
        if not drawers:
            return Unreadable(spec.kind, "error", f"{spec.plural} were not read so far")
        why = next((why for drawer in drawers if (why := drawer.unreadable(now)) is not None), None)
        return why or outside_of(spec, self._settings.namespaces)

    def _check_hope(self, spec: KindSpec, drawers: list[Drawer], why: Unreadable, now: float) -> None:
        """Raise the error for a cluster of which nothing can be said: without nodes, or with the rights of some
        namespaces, when nothing at all is current."""
        everything = list(self._drawers.values())
        if self._settings.namespaces:
            if any(drawer.unreadable(now) is None for drawer in everything):
                return
            drawers = everything
        cluster = self._settings.name
        trouble = next((drawer.trouble for drawer in drawers if drawer.trouble is not None), None)
        if trouble is not None:
            raise trouble
        if why.reason == "forbidden":
            detail, _, _ = why.detail.partition(". Add to ")
            raise ClusterForbidden(cluster, detail, right_to_add(spec, None), spec.rbac_rule)
        if why.reason == "not-found" and self._transport is not None:
            raise not_an_api_server(self._transport, f"it has no {spec.plural}: {why.detail}")
        raise ClusterTimeout(cluster, why.detail, "It may be overloaded or far away; raise timeout_seconds.")

    async def _discover(self) -> None:
        """Ask which APIs there are, now and then, and follow what is there."""
        failures = 0
        while True:
            try:
                transport = self._transport or await self._open_transport()
                self._transport = transport
                self._version = await server_version(transport)
                served = await served_versions(transport)
            except Exception as error:
                if not isinstance(error, ClusterTrouble):
                    log.warning("a cluster cannot be followed", cluster=self._settings.name, error=str(error))
                self._trouble = error
                if not self._discovered:
                    self._settled.set()
                    self._changed.set()
                await self._sleep(min(2.0**failures, 30.0) * (0.75 + 0.5 * self._chance()))
                failures = min(failures + 1, 16)
                continue
            self._trouble, failures = None, 0
            self._groups = None if served is None else frozenset(served)
            if not self._discovered:
                self._settled.clear()
            self._follow(transport, {spec.kind: best_version(spec, served) for spec in KINDS})
            self._discovered = True
            await self._sleep(DISCOVER_SECONDS * (0.75 + 0.5 * self._chance()))

    def _follow(self, transport: Transport, versions: dict[str, str | None]) -> None:
        if not self._discovered:
            self._tools = self._make_tools(transport)
        watched = self._watched(versions)
        for spec in KINDS:
            version = versions[spec.kind]
            if version is None:
                detail = f"this API server does not serve the API group {spec.group}"
                self._absent[spec.kind] = Unreadable(spec.kind, "not-found", detail)
            elif self._absent.pop(spec.kind, None) is not None:
                self._changed.set()
            for namespace in scopes(spec, self._settings.namespaces):
                self._follow_one((spec.kind, namespace), spec, version, watched=(spec.kind, namespace) in watched)

    def _follow_one(self, place: _Place, spec: KindSpec, version: str | None, *, watched: bool) -> None:
        known = self._followers.get(place)
        if known is not None and known[0] == version and not known[1].done():
            return
        if known is not None:
            known[1].cancel()
            del self._followers[place]
            del self._drawers[place]
        if version is None:
            return
        drawer = self._drawers[place] = Drawer(spec, place[1], stale_after=self._pace.stale)
        follower = Follower(drawer, spec.path(version, place[1]), self._tools, watched=watched)
        task = asyncio.create_task(follower.run(), name=f"watch {self._settings.name} {spec.resource}")
        task.add_done_callback(_complain)
        self._followers[place] = (version, task)

    def _watched(self, versions: dict[str, str | None]) -> frozenset[_Place]:
        """The places that are worth a connection, within the bound."""
        specs = {spec.kind: spec for spec in KINDS}
        wanted = [
            (kind, namespace)
            for kind in WATCHED
            if versions[kind] is not None
            for namespace in scopes(specs[kind], self._settings.namespaces)
        ]
        return frozenset(wanted[: self._settings.max_watches])

    def _make_tools(self, transport: Transport) -> Tools:
        return Tools(
            transport=transport,
            decode=self._decode,
            page_size=self._settings.page_size,
            seats=asyncio.Semaphore(self._settings.max_parallel),
            pace=self._pace,
            changed=self._changed.set,
            settled=self._look_settled,
            note=self._note,
            monotonic=self._monotonic,
            sleep=self._sleep,
            random=self._chance,
        )

    def _look_settled(self) -> None:
        if all(drawer.settled for drawer in self._drawers.values()):
            self._settled.set()

    def _note(self, key: str, sentence: str | None) -> None:
        if sentence is None:
            self._notes.pop(key, None)
        elif self._notes.get(key) != sentence:
            self._notes[key] = sentence
            log.warning("a cluster is followed less closely", cluster=self._settings.name, what=sentence)

    async def _look(self) -> None:
        """A kind that becomes unknown, or known again, is a change although nothing comes."""
        before: frozenset[_Place] = frozenset()
        while True:
            await self._sleep(LOOK_SECONDS)
            now = self._monotonic()
            unknown = frozenset(place for place, drawer in self._drawers.items() if drawer.unreadable(now) is not None)
            if unknown != before:
                before = unknown
                self._changed.set()


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a watch met a fault of gpu-advisor", exc_info=task.exception())
