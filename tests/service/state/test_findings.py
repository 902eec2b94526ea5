"""The life of findings over audits, on SQLite and PostgreSQL."""

from datetime import timedelta

import pytest

from rules.findings import Severity, Unreadable
from rules.policy import Policy
from service import unreadable
from service.errors import ClusterUnknown, ClusterUnreachable, CursorInvalid, RuleUnknown
from service.views import FindingView
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import IDLE, RULES, START, ScriptedCluster, node


async def the_finding(advisor: object) -> FindingView:
    """The one that a rule made; what cannot be read is a finding of its own."""
    page = await advisor.findings()  # type: ignore[attr-defined]
    finding = only([item for item in page.items if item.rule not in unreadable.IDS])
    assert isinstance(finding, FindingView)
    return finding


async def test_a_new_finding_opens_and_later_audits_bring_its_numbers_up_to_date(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node", hours=1))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    opened = await the_finding(advisor)
    assert (opened.state, opened.rule, opened.severity, opened.reason) == ("open", "idle-gpu-node", "medium", None)
    assert opened.first_seen == opened.opened_at == opened.last_seen == START
    assert opened.first_seen.utcoffset() == timedelta(0)

    later = advisors.clock.advance(300)
    cluster.nodes = (node("n1", trouble="idle-gpu-node", hours=2),)
    await advisor.run_audit("lab", trigger="api")
    still = await the_finding(advisor)
    assert (still.id, still.state, still.first_seen, still.last_seen) == (opened.id, "open", START, later)
    assert still.finding.value("hours") == 2


async def test_a_finding_is_resolved_when_its_rule_judges_and_is_silent(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    seen = advisors.clock.now
    cluster.nodes = (node("n1"),)
    gone = advisors.clock.advance(300)
    await advisor.run_audit("lab", trigger="api")
    finding = await the_finding(advisor)
    assert (finding.state, finding.reason, finding.resolved_at, finding.last_seen) == ("resolved", "gone", gone, seen)


async def test_a_finding_is_resolved_when_its_object_is_gone(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    cluster.nodes = ()
    await advisor.run_audit("lab", trigger="api")
    assert (await the_finding(advisor)).state == "resolved"


async def test_an_unreachable_cluster_keeps_its_findings_and_does_not_stop_the_others(advisors: Advisors) -> None:
    down = ScriptedCluster("down", node("n1", trouble="idle-gpu-node"))
    fine = ScriptedCluster("fine")
    advisor = await advisors.open(down, fine)
    await advisor.run_audit("down", trigger="api")
    before = await the_finding(advisor)

    advisors.clock.advance(300)
    down.error = ClusterUnreachable("down", "connection refused", "See whether the API server runs.")
    failed = await advisor.run_audit("down", trigger="api")
    other = await advisor.run_audit("fine", trigger="api")

    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.code == "cluster-unreachable"
    assert "connection refused" in failed.error.detail
    assert other.state == "done"
    assert await the_finding(advisor) == before
    health = {item.name: item for item in await advisor.clusters()}
    assert (health["down"].state, health["down"].open_findings) == ("unreachable", {"high": 1, "medium": 1})
    assert "connection refused" in str(health["down"].error)
    assert health["down"].audited_at == START.timestamp()
    assert (health["fine"].state, health["fine"].open_findings, health["fine"].error) == ("ok", {}, None)


@pytest.mark.parametrize(
    ("trouble", "missing", "reason"),
    [
        ("driver-cuda-mismatch", (Unreadable("Pod", "forbidden", "no right"),), "rule-skipped"),
        ("pod-trouble", (Unreadable("Pod", "error", "cut off"),), "kind-unreadable"),
    ],
)
async def test_a_kind_that_became_unreadable_keeps_findings_open(
    advisors: Advisors, trouble: str, missing: tuple[Unreadable, ...], reason: str
) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=trouble))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    cluster.nodes, cluster.unreadable = (node("n1"),), missing
    view = await advisor.run_audit("lab", trigger="api")
    assert view.report is not None
    assert view.report.unreadable == missing
    kept = await the_finding(advisor)
    assert (kept.state, kept.reason, kept.resolved_at) == ("open", reason, None)

    cluster.unreadable = ()
    await advisor.run_audit("lab", trigger="api")
    assert ((await the_finding(advisor)).state, (await the_finding(advisor)).reason) == ("resolved", "gone")


async def test_a_rule_that_raises_keeps_its_findings_open_and_the_audit_is_done(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster, rules=(IDLE,))
    await advisor.run_audit("lab", trigger="api")
    cluster.nodes = (node("n0", trouble="fault"), node("n1"))
    view = await advisor.run_audit("lab", trigger="api")
    assert view.state == "done"
    assert view.report is not None
    assert only(view.report.failed_rules).rule == "idle-gpu-node"
    assert ((await the_finding(advisor)).state, (await the_finding(advisor)).reason) == ("open", "rule-failed")


async def test_a_kept_finding_that_is_confirmed_again_loses_its_reason(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="driver-cuda-mismatch"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    cluster.unreadable = (Unreadable("Pod", "forbidden", "no right"),)
    await advisor.run_audit("lab", trigger="api")
    assert (await the_finding(advisor)).reason == "rule-skipped"
    cluster.unreadable = ()
    await advisor.run_audit("lab", trigger="api")
    assert ((await the_finding(advisor)).state, (await the_finding(advisor)).reason) == ("open", None)


async def test_switching_a_rule_off_withdraws_its_findings_instead_of_calling_them_mended(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    quiet = await advisors.open(cluster, policy=Policy(disabled_rules=frozenset({"idle-gpu-node"})))
    await quiet.run_audit("lab", trigger="api")
    finding = await the_finding(quiet)
    assert (finding.state, finding.reason) == ("withdrawn", "rule-disabled")
    assert [item.open_findings for item in await quiet.clusters()] == [{}]


async def test_a_rule_that_this_version_does_not_have_withdraws_its_findings(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    await (await advisors.open(cluster)).run_audit("lab", trigger="api")
    newer = await advisors.open(cluster, rules=[rule for rule in RULES if rule is not IDLE])
    await newer.run_audit("lab", trigger="api")
    assert ((await the_finding(newer)).state, (await the_finding(newer)).reason) == ("withdrawn", "rule-gone")


async def test_trouble_that_comes_back_is_the_same_finding_opened_again(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    first = await the_finding(advisor)
    cluster.nodes = (node("n1"),)
    advisors.clock.advance(300)
    await advisor.run_audit("lab", trigger="api")
    cluster.nodes = (node("n1", trouble="idle-gpu-node", hours=7),)
    again = advisors.clock.advance(300)
    await advisor.run_audit("lab", trigger="api")
    finding = await the_finding(advisor)
    assert (finding.id, finding.state, finding.first_seen, finding.opened_at) == (first.id, "open", START, again)
    assert (finding.resolved_at, finding.reason, finding.finding.value("hours")) == (None, None, 7)


async def test_pages_hold_every_finding_once_heaviest_first(advisors: Advisors) -> None:
    troubles = ["untidy-node", "driver-cuda-mismatch", "idle-gpu-node"]
    cluster = ScriptedCluster("lab", *(node(f"n{number}", trouble=troubles[number % 3]) for number in range(11)))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    seen: list[FindingView] = []
    cursor = None
    for _ in range(4):
        page = await advisor.findings(limit=3, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
    assert cursor is None
    assert len({item.id for item in seen}) == 11
    ranks = [item.severity.rank for item in seen]
    assert ranks == sorted(ranks, reverse=True)


async def test_filters_narrow_the_findings(advisors: Advisors) -> None:
    lab = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"), node("n2", trouble="untidy-node"))
    prod = ScriptedCluster("prod", node("n1", trouble="driver-cuda-mismatch"))
    advisor = await advisors.open(lab, prod)
    for name in ("lab", "prod"):
        await advisor.run_audit(name, trigger="api")
    lab.nodes = (lab.nodes[0],)
    await advisor.run_audit("lab", trigger="api")

    async def rules(**wanted: object) -> list[str]:
        page = await advisor.findings(**wanted)  # type: ignore[arg-type]
        return [item.rule for item in page.items]

    assert await rules() == ["driver-cuda-mismatch", "idle-gpu-node", "untidy-node"]
    assert await rules(cluster="prod") == ["driver-cuda-mismatch"]
    assert await rules(rule="idle-gpu-node") == ["idle-gpu-node"]
    assert await rules(severity=Severity.MEDIUM) == ["driver-cuda-mismatch", "idle-gpu-node"]
    assert await rules(state="resolved") == ["untidy-node"]
    with pytest.raises(ClusterUnknown, match="lab, prod"):
        await rules(cluster="nope")
    with pytest.raises(RuleUnknown):
        await rules(rule="nope")


async def test_cursors_that_were_not_given_out_for_the_query_are_refused(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", *(node(f"n{number}", trouble="idle-gpu-node") for number in range(3)))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="api")
    cursor = (await advisor.findings(limit=1)).next_cursor
    assert cursor is not None
    for wrong in ("", "nonsense", "bm90IGpzb24", "é", cursor[:-3], f"{cursor}AAAA"):
        with pytest.raises(CursorInvalid):
            await advisor.findings(limit=1, cursor=wrong)
    with pytest.raises(CursorInvalid):
        await advisor.findings(limit=1, cursor=cursor, state="open")


async def test_findings_of_a_cluster_that_is_no_longer_configured_are_kept_but_not_shown(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    await (await advisors.open(cluster)).run_audit("lab", trigger="api")
    without = await advisors.open(ScriptedCluster("other"))
    assert (await without.findings()).items == []
    back = await advisors.open(cluster)
    assert (await the_finding(back)).state == "open"


async def test_text_that_a_database_cannot_hold_does_not_lose_the_audit(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="idle-gpu-node"))
    cluster.unreadable = (
        Unreadable("Event", "error", "cut \x00 here \ud83d\ude80 ü".encode("utf-16", "surrogatepass").decode("utf-16")),
    )
    advisor = await advisors.open(cluster)
    view = await advisor.run_audit("lab", trigger="api")
    assert view.state == "done"
    assert view.report is not None
    assert only(view.report.unreadable).detail == "cut \ufffd here 🚀 ü"
    cluster.error = RuntimeError("bad \x00 byte")
    view = await advisor.run_audit("lab", trigger="api")
    assert view.error is not None
    assert view.error.code == "internal-fault"
