"""The schedule: nothing twice at once, missed runs become one, failures do not end it."""

import asyncio
from datetime import timedelta

import pytest
from apscheduler.events import EVENT_JOB_MAX_INSTANCES

from service.advisor import GpuAdvisor
from service.clock import utc_now
from service.schedule import Schedule
from service.settings import AuditSettings
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import Channel, ScriptedCluster, node


class Work:
    """Counts what is done, and can be held up."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.running = 0
        self.most_at_once = 0
        self.done = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def __call__(self, name: str = "") -> None:
        self.calls.append(name)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await self.gate.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.running -= 1
            self.done.set()


async def test_missed_runs_become_one() -> None:
    audit, clean = Work(), Work()
    schedule = Schedule(["lab"], interval_seconds=600, audit=audit, deliver=None, clean=clean)
    missed = utc_now() - timedelta(seconds=600 * 5 + 60)
    schedule.start(missed)
    await audit.done.wait()
    # what is due at once is started in one go, so a second run would have begun by now
    await asyncio.sleep(0)
    assert audit.calls == ["lab"]
    next_run = schedule._scheduler.get_job("audit lab").next_run_time
    assert next_run == missed + timedelta(seconds=600 * 6)
    await schedule.stop()
    assert not schedule.running


async def test_a_run_that_is_due_while_the_one_before_is_under_way_is_left_out() -> None:
    audit = Work()
    audit.gate.clear()
    schedule = Schedule(["lab"], interval_seconds=1, audit=audit, deliver=None, clean=Work())
    left_out = asyncio.Event()
    schedule._scheduler.add_listener(lambda _: left_out.set(), EVENT_JOB_MAX_INSTANCES)
    schedule.start(utc_now())
    await left_out.wait()
    assert (audit.calls, audit.most_at_once) == (["lab"], 1)
    audit.gate.set()
    await schedule.stop()


async def test_a_job_that_fails_comes_again() -> None:
    audit = Work()
    audit.error = RuntimeError("broken")
    schedule = Schedule(["lab"], interval_seconds=1, audit=audit, deliver=None, clean=Work())
    schedule.start(utc_now())
    await audit.done.wait()
    audit.done.clear()
    await audit.done.wait()
    assert len(audit.calls) == 2
    await schedule.stop()


async def test_first_audits_are_staggered_and_those_just_done_wait_an_interval() -> None:
    schedule = Schedule(["a", "b", "c"], interval_seconds=300, audit=Work(), deliver=Work(), clean=Work(), later=["b"])
    start = utc_now() + timedelta(hours=1)
    schedule.start(start)
    jobs = {job.id: job for job in schedule._scheduler.get_jobs()}
    waits = {name: (job.next_run_time - start).total_seconds() for name, job in jobs.items()}
    assert waits == {"audit a": 0, "audit b": 302, "audit c": 4, "deliver": 0, "clean": 60}
    assert {(job.max_instances, job.coalesce) for job in jobs.values()} == {(1, True)}
    await schedule.stop()


async def test_many_clusters_all_begin_within_one_interval() -> None:
    names = [f"c{number}" for number in range(100)]
    schedule = Schedule(names, interval_seconds=60, audit=Work(), deliver=None, clean=Work())
    start = utc_now() + timedelta(hours=1)
    schedule.start(start)
    last = max(job.next_run_time for job in schedule._scheduler.get_jobs() if job.id.startswith("audit"))
    assert last - start < timedelta(seconds=60)
    await schedule.stop()


async def test_stopping_ends_what_runs() -> None:
    audit = Work()
    audit.gate.clear()
    schedule = Schedule(["lab"], interval_seconds=600, audit=audit, deliver=None, clean=Work())
    started = asyncio.create_task(audit.done.wait())
    schedule.start(utc_now() - timedelta(seconds=1))
    while not audit.calls:
        await asyncio.sleep(0)
    await schedule.stop()
    await started
    assert audit.running == 0
    await schedule.stop()


async def test_a_started_advisor_audits_and_tells_by_itself(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = advisors.make(cluster, notifier=channel)
    assert await problems(advisor) == ["the schedule is not running"]
    await advisor.start()
    assert await problems(advisor) == []
    await channel.entered.wait()
    finding = only((await advisor.findings()).items)
    assert finding.state == "open"
    await advisor.stop()
    assert channel.said() == [("post", "n1")]


async def test_the_schedule_and_a_person_share_one_audit(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    cluster.gate.clear()
    advisor = advisors.make(cluster, audit=AuditSettings(interval_seconds=3600))
    await advisor.start()
    await cluster.entered.wait()
    view = await advisor.start_audit("lab", trigger="api")
    assert view.trigger == "schedule"
    cluster.gate.set()
    assert (await advisor.run_audit("lab", trigger="api")).id == view.id
    assert (cluster.reads, cluster.most_at_once) == (1, 1)


async def problems(advisor: GpuAdvisor) -> list[str]:
    return [problem for problem in await advisor.ready() if "no such table" not in problem]


@pytest.mark.parametrize("jump", [timedelta(days=-1), timedelta(hours=3), timedelta(seconds=1)])
async def test_runs_to_come_move_with_a_clock_that_jumps(jump: timedelta) -> None:
    steady, wall, looked = 0.0, utc_now(), asyncio.Event()
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal steady, wall, looks
        looks += 1
        if looks > 2:
            looked.set()
            await asyncio.Event().wait()
        steady += seconds
        wall += timedelta(seconds=seconds) + (jump if looks == 1 else timedelta())

    work = Work()
    schedule = Schedule(
        ["lab"], interval_seconds=600, audit=work, deliver=None, clean=work, later=["lab"],
        clock=lambda: wall, monotonic=lambda: steady, sleep=sleep,
    )  # fmt: skip
    start = utc_now()
    schedule.start(start)
    schedule._scheduler.pause()  # the clock that it goes by did not jump
    await looked.wait()
    (job,) = [item for item in schedule._scheduler.get_jobs() if item.id == "audit lab"]
    await schedule.stop()
    moved = jump if abs(jump) > timedelta(seconds=5) else timedelta()
    assert job.next_run_time == start + timedelta(seconds=600) + moved
