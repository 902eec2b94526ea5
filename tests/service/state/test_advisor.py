"""The use cases that are not the life of a finding, an audit or an alert."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from rules.answers import Answer
from rules.errors import SnapshotInvalid
from rules.facts.cluster import ClusterFacts
from rules.facts.prices import PriceBook
from rules.language import Language
from rules.policy import Policy
from service.advisor import GpuAdvisor
from service.errors import ClusterUnknown, ClusterUnreachable, ConfigInvalid, StoreUnavailable
from service.settings import Settings
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import ScriptedCluster, node


async def test_snapshots_are_read_before_the_advisor_is_ready(advisors: Advisors) -> None:
    cluster = ScriptedCluster("sample", node("n1", trouble="idle-gpu-node"), kind="snapshot")
    advisor = await advisors.open(cluster, ScriptedCluster("live"))
    assert [facts.name for facts in advisor.latest_facts()] == ["sample"]
    assert only((await advisor.findings()).items).cluster == "sample"
    assert [item.state for item in await advisor.clusters()] == ["ok", "never-audited"]


async def test_a_snapshot_that_cannot_be_read_does_not_keep_the_advisor_from_starting(advisors: Advisors) -> None:
    broken = ScriptedCluster("broken", kind="snapshot")
    broken.error = SnapshotInvalid("nodes.json", "line 1", "expected a List of nodes")
    fine = ScriptedCluster("fine", kind="snapshot")
    advisor = await advisors.open(broken, fine)
    health = {item.name: item for item in await advisor.clusters()}
    assert (health["broken"].state, health["fine"].state) == ("unreachable", "ok")
    assert "nodes.json" in str(health["broken"].error)


async def test_clusters_come_in_the_order_of_the_settings_with_what_is_known(advisors: Advisors) -> None:
    second = ScriptedCluster("a-second", node("n1", trouble="idle-gpu-node", gpus=8), node("n2"))
    advisor = await advisors.open(ScriptedCluster("z-first"), second)
    await advisor.run_audit("a-second", trigger="api")
    first_health, second_health = await advisor.clusters()
    assert (first_health.name, first_health.state, first_health.gpu_nodes) == ("z-first", "never-audited", None)
    assert (second_health.name, second_health.gpu_nodes) == ("a-second", 1)
    assert second_health.open_findings == {"medium": 1}
    second.error = ClusterUnreachable("a-second", "refused", "See.")
    await advisor.run_audit("a-second", trigger="api")
    assert (await advisor.clusters())[1].gpu_nodes == 1
    second.error = None
    await advisor.run_audit("a-second", trigger="api")
    assert ((await advisor.clusters())[1].state, (await advisor.clusters())[1].error) == ("ok", None)


async def test_a_question_sees_the_latest_facts_and_does_not_hold_up_the_loop(advisors: Advisors) -> None:
    asked: list[tuple[str, list[str], Language | None, bool]] = []

    def answer(text: str, *, clusters: Sequence[ClusterFacts], language: Language | None, **_: Any) -> Answer:
        own = threading.current_thread() is not threading.main_thread()
        asked.append((text, [item.name for item in clusters], language, own))
        return Answer(language="es", kind="faq", text="Sí.")

    advisor = await advisors.open(ScriptedCluster("lab"), answer=answer)
    assert (await advisor.ask("¿?")).text == "Sí."
    await advisor.run_audit("lab", trigger="api")
    await advisor.ask("¿?", language="es")
    assert asked == [("¿?", [], None, True), ("¿?", ["lab"], "es", True)]


async def test_an_event_is_claimed_once_and_forgotten_after_a_day(advisors: Advisors) -> None:
    advisor = await advisors.open()
    assert await advisor.claim_event("Ev1")
    assert not await advisor.claim_event("Ev1")
    assert await advisor.claim_event("Ev2")
    assert (await advisor.clean())["slack_events"] == 0
    advisors.clock.advance(86_401)
    assert (await advisor.clean())["slack_events"] == 2


async def test_an_event_that_arrives_many_times_at_once_is_claimed_once(advisors: Advisors) -> None:
    advisor = await advisors.open()
    claims = await asyncio.gather(*(advisor.claim_event("Ev1") for _ in range(8)))
    assert sorted(claims) == [False] * 7 + [True]


async def test_replicas_claim_an_event_once(replicas: Advisors) -> None:
    family = [await replicas.open() for _ in range(3)]
    claims = await asyncio.gather(*(advisor.claim_event("Ev1") for advisor in family))
    assert sorted(claims) == [False, False, True]


async def test_reports_beyond_the_newest_are_dropped_and_the_audits_stay(advisors: Advisors) -> None:
    from service.settings import AuditSettings

    advisor = await advisors.open(ScriptedCluster("lab"), audit=AuditSettings(keep_reports=2))
    views = [await advisor.run_audit("lab", trigger="api") for _ in range(4)]
    assert (await advisor.clean())["reports"] == 2
    kept = [(await advisor.audit(view.id)).report is not None for view in views]
    assert kept == [False, False, True, True]
    assert {(await advisor.audit(view.id)).state for view in views} == {"done"}


async def test_a_database_that_does_not_answer_is_a_typed_error_without_the_password() -> None:
    settings = Settings(database_url="postgresql+psycopg://me:hunter2secret@127.0.0.1:1/none")
    advisor = GpuAdvisor(settings, connectors=(), rules=(), prices=PriceBook())
    with pytest.raises(StoreUnavailable) as caught:
        await advisor.start()
    assert "hunter2secret" not in str(caught.value)
    problems = await advisor.ready()
    assert len(problems) == 2
    assert "the database does not answer" in problems[0]
    assert "hunter2secret" not in "".join(problems)
    await advisor.stop()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"policy": Policy(disabled_rules=frozenset({"idle-gpu-nod"}))},
            r"did you mean 'idle-gpu-node'.*disabled_rules",
        ),
        ({"policy": Policy(disabled_rules=frozenset({"zzz"}))}, r"no rule 'zzz'; there are: .*driver-cuda-mismatch"),
    ],
)
def test_a_misspelt_rule_in_the_settings_is_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigInvalid, match=expected):
        GpuAdvisor(Settings(database_url="sqlite+aiosqlite://", **options), connectors=(), prices=PriceBook())


async def test_stopping_twice_or_before_starting_is_harmless(advisors: Advisors) -> None:
    advisor = advisors.make(ScriptedCluster("lab"))
    await advisor.stop()
    other = await advisors.open(ScriptedCluster("lab"))
    await other.stop()
    await other.stop()


async def test_readiness_reads_a_cluster_that_was_never_read_and_otherwise_does_not_read_again(
    advisors: Advisors,
) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster)
    report = await advisor.readiness("lab")
    assert (report.cluster, len(report.requirements)) == ("lab", 4)
    await advisor.readiness("lab")
    assert cluster.reads == 1
    with pytest.raises(ClusterUnknown):
        await advisor.readiness("other")


async def test_readiness_of_a_cluster_that_cannot_be_read_says_why(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab")
    cluster.error = ClusterUnreachable("lab", "refused", "See.")
    advisor = await advisors.open(cluster)
    with pytest.raises(ClusterUnreachable):
        await advisor.readiness("lab")
