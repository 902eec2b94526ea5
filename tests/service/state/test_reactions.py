"""A followed cluster that changes is looked at soon, and only what makes a difference goes on record."""

import asyncio
from collections.abc import Callable

import pytest
from sqlmodel import col, select

from service.errors import ClusterUnreachable
from service.reactions import SETTLE_SECONDS, Reactions
from service.settings import AuditSettings
from service.store.tables import AuditRow
from tests.service.state.conftest import Advisors
from tests.service.state.doubles import Channel, ScriptedCluster, node

IDLE = "idle-gpu-node"


class Waits:
    """Waiting that takes no time but is remembered; time goes on by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def recorded(advisors: Advisors) -> list[tuple[str, str]]:
    """Trigger and state of all audits, in order."""
    async with advisors.made[-1]._store.read() as session:
        rows = await session.exec(select(AuditRow).order_by(col(AuditRow.id)))
        return [(row.trigger, row.state) for row in rows]


async def test_the_first_change_waits_for_its_flock_and_later_ones_for_their_turn() -> None:
    time, cluster, looks = Waits(), ScriptedCluster("lab"), 0

    async def react(_: str) -> bool:
        nonlocal looks
        looks += 1
        if looks < 4:
            cluster.change()
        return True

    reactions = Reactions(react, every_seconds=30, monotonic=lambda: time.now, sleep=time.sleep)
    task = asyncio.create_task(reactions.follow("lab", cluster))
    cluster.change()
    cluster.change()
    await until(lambda: looks == 4)
    task.cancel()
    assert time.waits[:4] == [SETTLE_SECONDS, 30, 30, 30]
    assert looks == 4, "changes of one flock are one change"


async def test_a_change_after_a_quiet_time_does_not_wait_for_a_turn() -> None:
    time, cluster, looks = Waits(), ScriptedCluster("lab"), 0

    async def react(_: str) -> bool:
        nonlocal looks
        looks += 1
        return True

    task = asyncio.create_task(
        Reactions(react, every_seconds=30, monotonic=lambda: time.now, sleep=time.sleep).follow("lab", cluster)
    )
    cluster.change()
    await until(lambda: looks == 1)
    time.now += 100
    cluster.change()
    await until(lambda: looks == 2)
    task.cancel()
    assert time.waits == [SETTLE_SECONDS, SETTLE_SECONDS]


async def test_a_look_that_fails_or_comes_too_early_does_not_end_the_following() -> None:
    time, cluster, looks = Waits(), ScriptedCluster("lab"), 0

    async def react(_: str) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("our fault")
        return looks > 3

    task = asyncio.create_task(
        Reactions(react, every_seconds=10, monotonic=lambda: time.now, sleep=time.sleep).follow("lab", cluster)
    )
    cluster.change()
    await until(lambda: looks == 1)
    cluster.change()
    await until(lambda: looks == 4)
    task.cancel()
    assert time.waits == [SETTLE_SECONDS, 10, 10, 10], "what was too early is tried again without another change"


async def test_only_a_difference_goes_on_record(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, notifier=channel)
    audits = advisor._audits
    assert await audits.react("lab"), "the first reading of all is one"
    for _ in range(5):
        assert await audits.react("lab")
    assert await recorded(advisors) == [("change", "done")]
    cluster.nodes = (node("n1", trouble=IDLE),)
    assert await audits.react("lab")
    assert await audits.react("lab")
    cluster.nodes = (node("n1"),)
    assert await audits.react("lab")
    assert await recorded(advisors) == [("change", "done")] * 3
    await advisor.deliver()
    assert channel.said() == [], "over before it was said"
    assert cluster.reads == 9, "what was read is put on record, not read once more"


async def test_what_makes_no_difference_is_known_to_answers_all_the_same(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster)
    await advisor._audits.react("lab")
    cluster.nodes = (node("n1"), node("n2"))
    await advisor._audits.react("lab")
    assert [item.name for item in advisor.latest_facts()[0].nodes] == ["n1", "n2"]
    assert len(await recorded(advisors)) == 1


async def test_a_cluster_that_cannot_be_read_and_can_again_is_a_difference(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster)
    await advisor._audits.react("lab")
    cluster.error = ClusterUnreachable("lab", "connection refused", "Check it.")
    for _ in range(3):
        await advisor._audits.react("lab")
    cluster.error = None
    for _ in range(3):
        await advisor._audits.react("lab")
    assert await recorded(advisors) == [("change", "done"), ("change", "failed"), ("change", "done")]


async def test_a_change_during_an_audit_is_looked_at_afterwards(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, audit=AuditSettings(parallel=2))
    await advisor.run_audit("lab", trigger="test")
    cluster.gate.clear()
    cluster.entered.clear()
    audit = asyncio.create_task(advisor.run_audit("lab", trigger="schedule"))
    await cluster.entered.wait()
    cluster.nodes = (node("n1", trouble=IDLE),)
    reaction = asyncio.create_task(advisor._audits.react("lab"))
    await until(lambda: cluster.reading == 2)
    cluster.gate.set()
    await audit
    assert await reaction in (True, False)
    assert await advisor._audits.react("lab")
    assert {item.state for item in (await advisor.findings()).items} == {"open"}


async def test_the_running_service_follows_its_clusters(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = advisors.make(cluster, notifier=channel, audit=AuditSettings(interval_seconds=86400, react_seconds=1))
    await advisor.start()
    assert cluster.followed
    await until(lambda: cluster.reads)
    cluster.nodes = (node("n1", trouble=IDLE),)
    cluster.change()
    await until(channel.said)
    assert channel.said() == [("post", "n1")]


@pytest.mark.parametrize("seconds", [0])
async def test_reacting_can_be_left_to_the_interval(advisors: Advisors, seconds: int) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = advisors.make(cluster, audit=AuditSettings(react_seconds=seconds))
    await advisor.start()
    assert cluster.followed
    assert not [task for task in advisor._tasks if task.get_name() == "follow lab"]
