"""Looking again when a followed cluster changes.

The first change after a quiet time is acted on after :data:`SETTLE_SECONDS`, since changes come in flocks (a node and
its pods, a rollout). While changes go on, a cluster is looked at once every ``every_seconds`` at most, and what comes
meanwhile is one change. Timers are monotonic: a clock that jumps neither hurries nor stops them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from service.clusters.model import Followed

SETTLE_SECONDS = 2.0

log = structlog.get_logger(__name__)


class Reactions:
    """Calls ``react`` with the name of a cluster when it has changed.

    Args:
        react: False when it could not act now, because the cluster is being looked at already: it is asked again.
        every_seconds: least time from one call to the next for one cluster.
        monotonic, sleep: time in seconds, and waiting.
    """

    def __init__(
        self,
        react: Callable[[str], Awaitable[bool]],
        *,
        every_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._react = react
        self._every = every_seconds
        self._monotonic = monotonic
        self._sleep = sleep

    async def follow(self, cluster: str, connector: Followed) -> None:
        """React to the changes of one cluster until cancelled."""
        last: float | None = None
        again = False
        while True:
            if not again:
                await connector.changed()
            rest = 0.0 if last is None else last + self._every - self._monotonic()
            await self._sleep(max(SETTLE_SECONDS, rest))
            with suppress(TimeoutError):  # changes up to here are seen by this look
                async with asyncio.timeout(0):
                    await connector.changed()
            last = self._monotonic()
            try:
                again = not await self._react(cluster)
            except Exception:
                again = False
                log.exception("a change was not looked at", cluster=cluster)
