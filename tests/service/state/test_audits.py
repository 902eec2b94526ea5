"""Running audits: one at a time per cluster, and what remains of those that did not end."""

import asyncio
from typing import Any

import pytest

from rules.facts.prices import PriceBook
from rules.findings import Finding
from rules.policy import Policy
from service.advisor import GpuAdvisor, run_audit_once
from service.errors import AuditUnknown, ClusterTimeout, ClusterUnknown
from service.settings import AuditSettings
from service.views import AuditView
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import IDLE, START, ScriptedCluster, node


async def finished(advisor: GpuAdvisor, view: AuditView) -> AuditView:
    """The audit after its end, which is waited for as a second caller waits."""
    await advisor.run_audit(view.cluster, trigger="test")
    return await advisor.audit(view.id)


async def begun(advisor: GpuAdvisor, cluster: ScriptedCluster) -> AuditView:
    """An audit that is held up in the middle."""
    cluster.gate.clear()
    cluster.entered.clear()
    view = await advisor.start_audit(cluster.name, trigger="test")
    await cluster.entered.wait()
    return view


async def die(advisor: GpuAdvisor) -> None:
    """What a crash leaves: tasks gone, nothing said to the database."""
    tasks = list(advisor._audits._tasks.values())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_an_audit_goes_from_queued_to_done_with_its_report(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    queued = await begun(advisor, cluster)
    assert (queued.state, queued.trigger, queued.queued_at) == ("queued", "test", START)
    running = await advisor.audit(queued.id)
    assert (running.state, running.started_at, running.report) == ("running", START, None)
    end = advisors.clock.advance(2)
    cluster.gate.set()
    done = await finished(advisor, queued)
    assert (done.state, done.finished_at, done.error) == ("done", end, None)
    assert done.report is not None
    found = only(done.report.findings)
    assert isinstance(found, Finding)
    assert found.objects[0].name == "n1"


async def test_one_cluster_is_never_audited_twice_at_once(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster)
    first = await begun(advisor, cluster)
    others = [await advisor.start_audit("lab", trigger="api") for _ in range(3)]
    waiting = asyncio.create_task(advisor.run_audit("lab", trigger="schedule"))
    await asyncio.sleep(0)
    assert {other.id for other in others} == {first.id}
    cluster.gate.set()
    assert (await waiting).id == first.id
    assert (cluster.reads, cluster.most_at_once) == (1, 1)
    assert (await advisor.run_audit("lab", trigger="api")).id != first.id
    assert (cluster.reads, cluster.most_at_once) == (2, 1)


async def test_replicas_do_not_audit_one_cluster_at_once(replicas: Advisors) -> None:
    here, there = ScriptedCluster("lab"), ScriptedCluster("lab")
    one, two = await replicas.open(here), await replicas.open(there)
    first = await begun(one, here)
    assert (await two.start_audit("lab", trigger="api")).id == first.id
    assert (await two.run_audit("lab", trigger="api")).state == "running"
    assert there.reads == 0
    here.gate.set()
    assert (await finished(one, first)).state == "done"
    assert (await two.audit(first.id)).state == "done"
    assert (await two.run_audit("lab", trigger="api")).state == "done"
    assert there.reads == 1


async def test_many_replicas_that_start_an_audit_together_start_one(replicas: Advisors) -> None:
    clusters = [ScriptedCluster("lab") for _ in range(4)]
    for cluster in clusters:
        cluster.gate.clear()
    family = [await replicas.open(cluster) for cluster in clusters]
    views = await asyncio.gather(*(advisor.start_audit("lab", trigger="api") for advisor in family))
    assert len({view.id for view in views}) == 1
    for cluster in clusters:
        cluster.gate.set()


async def test_a_replica_reads_a_cluster_that_another_one_audits_for_its_answers_only(replicas: Advisors) -> None:
    here, there = ScriptedCluster("lab", node("n1")), ScriptedCluster("lab", node("n1"))
    one, two = await replicas.open(here), await replicas.open(there)
    await begun(one, here)
    await two.audit_on_schedule("lab")
    assert [facts.name for facts in two.latest_facts()] == ["lab"]
    assert one.latest_facts() == []
    here.gate.set()
    await one.run_audit("lab", trigger="api")
    reads = there.reads
    await two.audit_on_schedule("lab")
    assert there.reads == reads + 1
    assert only(await two.clusters()).audited_at == START.timestamp()


async def test_clusters_are_audited_side_by_side_up_to_the_limit(advisors: Advisors) -> None:
    clusters = [ScriptedCluster(name) for name in ("a", "b", "c")]
    advisor = await advisors.open(*clusters, audit=AuditSettings(parallel=2))
    for cluster in clusters:
        cluster.gate.clear()
    views = [await advisor.start_audit(cluster.name, trigger="api") for cluster in clusters]
    await clusters[0].entered.wait()
    await clusters[1].entered.wait()
    assert [(await advisor.audit(view.id)).state for view in views] == ["running", "running", "queued"]
    assert clusters[2].reads == 0
    for cluster in clusters:
        cluster.gate.set()
    assert [(await finished(advisor, view)).state for view in views] == ["done", "done", "done"]


async def test_an_audit_past_its_deadline_fails_as_a_timeout(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    cluster.gate.clear()
    advisor = await advisors.open(cluster, audit=AuditSettings(deadline_seconds=0))
    view = await advisor.run_audit("lab", trigger="api")
    assert view.state == "failed"
    assert view.error is not None
    assert view.error.code == "cluster-timeout"
    with pytest.raises(ClusterTimeout, match=r"within 0\.01 s"):
        await run_audit_once(
            cluster, now=START, policy=Policy(), prices=PriceBook(), rules=(IDLE,), deadline_seconds=0.01
        )


async def test_a_fault_of_ours_is_a_failed_audit_that_shows_no_secret(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    cluster.error = RuntimeError("header Authorization: Bearer abcdefgh12345678")
    advisor = await advisors.open(cluster)
    view = await advisor.run_audit("lab", trigger="api")
    assert view.error is not None
    assert view.error.code == "internal-fault"
    assert "RuntimeError" in view.error.detail
    assert "abcdefgh12345678" not in view.error.detail


async def test_an_audit_that_a_crash_left_behind_is_marked_and_the_cluster_is_free_again(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    dead = await advisors.open(cluster)
    left = await begun(dead, cluster)
    await die(dead)
    cluster.gate.set()
    if not advisors.sqlite:
        # another process may be alive: its lease has to end first
        early = await advisors.open(cluster)
        assert (await early.audit(left.id)).state == "running"
        advisors.clock.advance(121)
    heir = await advisors.open(cluster)
    marked = await heir.audit(left.id)
    assert (marked.state, marked.finished_at) == ("failed", advisors.clock.now)
    assert marked.error is not None
    assert marked.error.code == "interrupted"
    assert only(await heir.clusters()).state == "never-audited"
    assert (await heir.run_audit("lab", trigger="api")).state == "done"


async def test_a_dead_audit_does_not_block_its_cluster_longer_than_its_lease(replicas: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    dead, alive = await replicas.open(cluster), await replicas.open(ScriptedCluster("lab"))
    left = await begun(dead, cluster)
    await die(dead)
    assert (await alive.run_audit("lab", trigger="schedule")).id == left.id
    replicas.clock.advance(121)
    assert (await alive.run_audit("lab", trigger="schedule")).state == "done"
    assert (await alive.audit(left.id)).state == "failed"


async def test_a_living_process_keeps_its_audit_for_as_long_as_it_takes(replicas: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    slow, other = await replicas.open(cluster), await replicas.open(ScriptedCluster("lab"))
    view = await begun(slow, cluster)
    for _ in range(5):
        replicas.clock.advance(100)
        await slow._audits.renew_leases()
    assert (await other.start_audit("lab", trigger="api")).id == view.id
    cluster.gate.set()
    assert (await finished(slow, view)).state == "done"


async def test_the_result_of_an_audit_that_was_taken_away_is_dropped(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    view = await begun(advisor, cluster)
    advisors.clock.advance(121)
    assert (await advisor.clean())["interrupted"] == 1
    tasks = list(advisor._audits._tasks.values())
    cluster.gate.set()
    await asyncio.gather(*tasks)
    assert (await advisor.audit(view.id)).state == "failed"
    assert (await advisor.findings()).items == []


async def test_stopping_marks_what_is_running_and_closes_the_clusters(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster)
    view = await begun(advisor, cluster)
    await advisor.stop()
    assert cluster.closed
    cluster.gate.set()
    heir = await advisors.open(cluster)
    marked = await heir.audit(view.id)
    assert marked.error is not None
    assert marked.error.code == "interrupted"


async def test_findings_alerts_and_audit_are_recorded_together_or_not_at_all(advisors: Advisors, channel: Any) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster, notifier=channel)
    make = advisor._audits._ids
    made: list[str] = []

    def failing() -> str:
        made.append(make())
        if len(made) == 3:  # audit, finding, then the alert
            raise MemoryError("at the worst moment")
        return made[-1]

    advisor._audits._ids = failing
    view = await advisor.run_audit("lab", trigger="api")
    assert view.state == "running"  # its lease ends, then it counts as interrupted
    assert (await advisor.findings()).items == []
    advisors.clock.advance(121)
    assert (await advisor.run_audit("lab", trigger="api")).state == "done"
    assert len((await advisor.findings()).items) == 1
    await advisor.deliver()
    assert channel.said() == [("post", "n1")]


async def test_unknown_names_are_refused(advisors: Advisors) -> None:
    advisor = await advisors.open(ScriptedCluster("lab"))
    with pytest.raises(ClusterUnknown, match="lab"):
        await advisor.start_audit("prod", trigger="api")
    for wrong in ("nope", "", "\x00"):
        with pytest.raises(AuditUnknown):
            await advisor.audit(wrong)
