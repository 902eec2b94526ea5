"""A mirror of the stand-in's cluster whose time tests turn by hand."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from service.clusters import ClusterSettings
from service.clusters.live import LiveConnector
from service.clusters.mirror import ClusterMirror
from service.clusters.model import Collected
from service.clusters.watch import Pace
from service.clusters.wire import decode
from service.errors import ClusterTrouble
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import NOW

PATIENCE_SECONDS = 20.0
"""Real time after which a test gives up."""


class Turned:
    """Monotonic time that goes on when a test turns it, and those who sleep until then."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self.slept.append(seconds)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [woken for when, woken in self._sleepers if when <= self.now]
        self._sleepers = [(when, woken) for when, woken in self._sleepers if when > self.now and not woken.done()]
        for woken in due:
            if not woken.done():
                woken.set_result(None)


class Following:
    """The mirror, its server and its time; use as a context."""

    def __init__(
        self, server: FakeKubernetes, directory: Path, *, pace: Pace | None = None, user: str = "reader", **options: Any
    ) -> None:
        self.server = server
        self.time = Turned()
        self._beaten = self.time.now
        self.file = server.kubeconfig(directory, user=user)
        settings = ClusterSettings(name="lab", kubeconfig=str(self.file), context="fake", **options)
        self.connector = LiveConnector(settings)
        self.mirror = ClusterMirror(
            settings,
            self.connector._open_transport,
            decode,
            pace=pace,
            clock=lambda: NOW,
            monotonic=self.time.monotonic,
            sleep=self.time.sleep,
            chance=lambda: 0.5,
        )

    async def __aenter__(self) -> "Following":
        self.mirror.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.mirror.close()

    async def until(
        self, wanted: Callable[[Collected], object], *, step: float = 0.0, server: Callable[[], object] | None = None
    ) -> Collected:
        """What is collected once ``wanted`` holds of it; ``step`` seconds go by with each look."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                collected = None
                with suppress(ClusterTrouble):  # time may go by faster here than the server speaks
                    collected = await self.mirror.collect()
                if collected is not None and wanted(collected) and (server is None or server()):
                    return collected
                await self._go_on(step)

    async def _go_on(self, step: float) -> None:
        self.time.advance(step)
        if self.time.now - self._beaten > 20:
            self._beaten = self.time.now
            self.server.watches.beat()
        await asyncio.sleep(0.01)

    async def watching(self, *plurals: str) -> Collected:
        """What is collected once watches of these resources are open."""
        return await self.until(
            lambda _: True, step=0.1, server=lambda: all(self.server.watches.number(plural) for plural in plurals)
        )

    async def failing(self, wanted: Callable[[Exception], object], *, step: float = 1.0) -> Exception:
        """The error of collecting once it is the wanted one."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    await self.mirror.collect()
                except Exception as error:
                    if wanted(error):
                        return error
                await self._go_on(step)


def lists(server: FakeKubernetes, plural: str) -> int:
    """How often a resource was listed, pages and streaming lists included."""
    return sum("watch" not in request.query or "sendInitialEvents" in request.query for request in server.asked(plural))


def names(items: Any) -> set[str]:
    return {item.metadata.name for item in items}
