"""What happens by itself: audits, deliveries and cleaning, on APScheduler.

Jobs live in memory. They follow from the settings and are made anew at every start: a stored job would keep a removed
cluster or an old interval alive, and APScheduler 3 does not let two processes share a job store, which two replicas
would do. What has to survive a restart (audits under way, notifications to be sent) is on record in the database.

APScheduler goes by the clock on the wall. When that jumps (a machine whose clock was wrong is put right, one that was
suspended wakes up), jobs would wait until the old time has come again: so the runs to come are moved with the clock.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from service.clock import Clock, utc_now

OUTBOX_SECONDS = 5
CLEAN_SECONDS = 3600
PRICES_SECONDS = 1800
PRICES_AFTER_SECONDS = 120
"""After the start, so that a service that is tried out or restarted in a loop asks nobody for prices."""
STAGGER_SECONDS = 2.0
LOOK_AT_CLOCK_SECONDS = 15.0
JUMP_SECONDS = 5.0
"""Smaller ones (a clock that is slewed) do no harm."""

log = structlog.get_logger(__name__)


class Schedule:
    """The jobs of one process.

    A job never runs twice at once; runs that were missed (the machine slept, the loop was busy) become one run, made up
    for within one interval. First audits begin at once, one every two seconds, so that many clusters do not start
    together; the order of the clusters gives the places, so that they keep them over restarts.

    Args:
        clusters: names, in the order of the settings.
        later: those whose first audit is a whole interval away, because they were just audited.
        audit: audits one cluster, from beginning to end.
        deliver: sends what is due; None when nobody is to be told.
        clean: deletes what is old.
        prices: keeps prices fresh; None to leave them.
        clock: the clock on the wall, which APScheduler goes by.
        monotonic, sleep: time that does not jump, in seconds, and waiting by it.
    """

    def __init__(
        self,
        clusters: Sequence[str],
        *,
        interval_seconds: int,
        audit: Callable[[str], Awaitable[object]],
        deliver: Callable[[], Awaitable[object]] | None,
        clean: Callable[[], Awaitable[object]],
        prices: Callable[[], Awaitable[object]] | None = None,
        later: Sequence[str] = (),
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clusters = clusters
        self._interval = interval_seconds
        self._audit = audit
        self._deliver = deliver
        self._clean = clean
        self._prices = prices
        self._later = later
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._clock_watch: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether jobs are run."""
        return bool(self._scheduler.running)

    def start(self, now: datetime) -> None:
        """Begin. ``now`` is the real time, since APScheduler goes by the real clock; a moment in the past means runs
        that were missed since."""
        step = min(STAGGER_SECONDS, self._interval / max(len(self._clusters), 1))
        for place, cluster in enumerate(self._clusters):
            wait = self._interval if cluster in self._later else 0
            self._add(
                f"audit {cluster}", self._interval, now + timedelta(seconds=wait + place * step), self._audited, cluster
            )
        if self._deliver is not None:
            self._add("deliver", OUTBOX_SECONDS, now, self._delivered)
        self._add("clean", CLEAN_SECONDS, now + timedelta(seconds=60), self._cleaned)
        if self._prices is not None:
            after = now + timedelta(seconds=PRICES_AFTER_SECONDS)
            self._add("prices", PRICES_SECONDS, after, self._kept_fresh)
        self._scheduler.start()
        self._clock_watch = asyncio.create_task(self._watch_clock(), name="clock")

    async def stop(self) -> None:
        """End; runs under way are cancelled."""
        if self._clock_watch is not None:
            self._clock_watch.cancel()
            await asyncio.gather(self._clock_watch, return_exceptions=True)
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # the scheduler stops in a callback of the loop

    async def _watch_clock(self) -> None:
        wall, steady = self._clock(), self._monotonic()
        while True:
            await self._sleep(LOOK_AT_CLOCK_SECONDS)
            now, since = self._clock(), self._monotonic() - steady
            jump = now - wall - timedelta(seconds=since)
            wall, steady = now, steady + since
            if abs(jump.total_seconds()) >= JUMP_SECONDS:
                log.warning("the clock has jumped", seconds=round(jump.total_seconds()))
                for job in self._scheduler.get_jobs():
                    if job.next_run_time is not None:
                        job.modify(next_run_time=job.next_run_time + jump)

    def _add(
        self, name: str, seconds: int, first: datetime, job: Callable[..., Awaitable[None]], *arguments: str
    ) -> None:
        self._scheduler.add_job(
            job,
            IntervalTrigger(seconds=seconds, start_date=first, timezone=UTC),
            args=arguments,
            id=name,
            next_run_time=first,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=seconds,
        )

    async def _audited(self, cluster: str) -> None:
        await _logged("audit", self._audit(cluster), cluster=cluster)

    async def _delivered(self) -> None:
        if self._deliver is not None:
            await _logged("deliver", self._deliver())

    async def _cleaned(self) -> None:
        await _logged("clean", self._clean())

    async def _kept_fresh(self) -> None:
        if self._prices is not None:
            await _logged("prices", self._prices())


async def _logged(job: str, work: Awaitable[object], **about: str) -> None:
    """A job that fails is logged and comes again; it never ends the schedule."""
    try:
        await work
    except Exception:
        log.exception("a scheduled job failed", job=job, **about)
