"""The team's word over audits: exemptions, severities and rules of its own, on SQLite and PostgreSQL."""

from datetime import date, timedelta
from typing import Any

import msgspec
import pytest

from rules.custom import CustomRule
from rules.custom.rule import compile_rule
from rules.exemptions import EXEMPT, REASON, UNTIL
from rules.facts.objects import Node
from rules.findings import Report, Severity
from rules.language import LANGUAGES
from rules.policy import Exemption, Policy
from service.advisor import GpuAdvisor
from service.api.documents import finding_document, report_document
from service.settings import AlertSettings
from service.views import FindingView
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import START, Channel, ScriptedCluster, node

IDLE = "idle-gpu-node"
KEPT = Policy(exemptions=(Exemption(rules=(IDLE,), name="n1", reason="kept warm", until=START.date()),))
DRIVER = {"nvidia.com/gpu.present": "true", "nvidia.com/cuda.driver.major": "535", "nvidia.com/cuda.driver.minor": "1"}
OLD = compile_rule(
    msgspec.convert(
        {
            "id": "old-driver",
            "scope": "node",
            "when": 'node.driver.olderThan("550")',
            "title": {"en": "Old driver on {node}", "es": "Controlador antiguo en {node}"},
            "detail": "It is {driver}.",
            "remedy": "Renew it.",
        },
        CustomRule,
    )
)


async def audited(advisor: GpuAdvisor) -> Report:
    view = await advisor.run_audit("lab", trigger="test")
    assert view.report is not None
    await advisor.deliver()
    return view.report


async def the_finding(advisor: GpuAdvisor) -> FindingView:
    finding: FindingView = only((await advisor.findings()).items)
    return finding


def marked(item: Node, **metadata: Any) -> Node:
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, **metadata))


async def test_an_exempted_finding_is_withdrawn_not_resolved_and_comes_back_when_the_exemption_ends(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor)
    opened = await the_finding(advisor)
    assert (opened.state, channel.said()) == ("open", [("post", "n1")])

    quiet = await advisors.open(cluster, notifier=channel, policy=KEPT)
    report = await audited(quiet)
    assert report.findings == ()
    assert [(item.reason, item.until, item.by) for item in report.exempted] == [
        ("kept warm", "2026-11-30", "policy.exemptions[0]")
    ]
    finding = await the_finding(quiet)
    assert (finding.id, finding.state, finding.reason) == (opened.id, "withdrawn", "exempted")
    assert [item.open_findings for item in await quiet.clusters()] == [{}]
    assert channel.said() == [("post", "n1")]

    advisors.clock.advance(timedelta(hours=12).total_seconds())  # the first moment of the next day
    report = await audited(quiet)
    assert report.exempted == ()
    assert [(item.problem, item.findings) for item in report.exemption_troubles] == [
        ("ended", (opened.finding.fingerprint,))
    ]
    finding = await the_finding(quiet)
    assert (finding.id, finding.state, finding.reason) == (opened.id, "open", None)
    assert [note.key for note in finding.finding.notes] == ["exemption_ended"]
    assert channel.said() == [("post", "n1"), ("post", "n1")]


async def test_what_was_exempted_from_the_start_is_neither_on_record_nor_announced(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE), node("n2", trouble=IDLE))
    advisor = await advisors.open(cluster, notifier=channel, policy=KEPT)
    report = await audited(advisor)
    assert [item.objects[0].name for item in report.findings] == ["n2"]
    assert [item.finding.objects[0].name for item in report.exempted] == ["n1"]
    assert (await the_finding(advisor)).finding.objects[0].name == "n2"
    assert channel.said() == [("post", "n2")]


async def test_an_alert_that_was_not_sent_yet_is_not_sent_any_more(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    loud = await advisors.open(cluster, notifier=channel)
    await loud.run_audit("lab", trigger="test")
    quiet = await advisors.open(cluster, notifier=channel, policy=KEPT)
    await audited(quiet)
    assert channel.said() == []
    assert await quiet.undelivered() == []


async def test_an_annotation_withdraws_the_finding_and_its_removal_opens_it_again(
    advisors: Advisors, channel: Channel
) -> None:
    plain = node("n1", trouble=IDLE)
    cluster = ScriptedCluster("lab", plain)
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor)
    cluster.nodes = (marked(plain, annotations={EXEMPT: "idle-*", REASON: "demo", UNTIL: "2026-12-31"}),)
    report = await audited(advisor)
    assert report.exempted[0].by == "annotations of Node/n1"
    assert ((await the_finding(advisor)).state, (await the_finding(advisor)).reason) == ("withdrawn", "exempted")
    cluster.nodes = (plain,)
    await audited(advisor)
    assert (await the_finding(advisor)).state == "open"


async def test_a_finding_that_is_mended_while_exempted_stays_withdrawn(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    await audited(await advisors.open(cluster))
    quiet = await advisors.open(cluster, policy=KEPT)
    await audited(quiet)
    cluster.nodes = (node("n1"),)
    await audited(quiet)
    assert ((await the_finding(quiet)).state, (await the_finding(quiet)).reason) == ("withdrawn", "exempted")


async def test_the_severity_that_the_team_wants_decides_what_is_announced(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    policy = Policy(severity={IDLE: Severity.INFO})
    advisor = await advisors.open(cluster, notifier=channel, policy=policy)
    await audited(advisor)
    finding = await the_finding(advisor)
    assert (finding.severity, finding.finding.usual_severity) == (Severity.INFO, Severity.MEDIUM)
    assert channel.said() == []


async def test_a_rule_of_the_team_is_announced_and_can_be_read_after_it_is_gone(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab", marked(node("n1"), labels=DRIVER))
    alerts = AlertSettings(rules=frozenset({"old-driver"}))
    advisor = await advisors.open(cluster, rules=(OLD,), notifier=channel, alerts=alerts)
    await audited(advisor)
    assert channel.said() == [("post", "n1")]
    alert = only(list(channel.messages.values()))
    assert alert.finding.words is not None

    without = await advisors.open(cluster, rules=())
    await audited(without)
    finding = await the_finding(without)
    assert (finding.state, finding.reason) == ("withdrawn", "rule-gone")
    titles = [finding_document(finding.finding, language).title for language in LANGUAGES]
    assert titles == ["Old driver on n1", "Controlador antiguo en n1", "Old driver on n1"]
    assert finding_document(finding.finding, "en").detail == "It is 535.1."


async def test_a_finding_stays_open_while_a_fact_that_its_rule_needs_is_unknown(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", marked(node("n1"), labels=DRIVER), marked(node("n2"), labels=DRIVER))
    advisor = await advisors.open(cluster, rules=(OLD,))
    await audited(advisor)
    present = {"nvidia.com/gpu.present": "true"}
    cluster.nodes = (
        marked(node("n1"), labels=present),
        marked(node("n2"), labels=DRIVER | {"nvidia.com/cuda.driver.major": "570"}),
    )
    report = await audited(advisor)
    assert [(item.rule, [ref.name for ref in item.objects], item.unknown) for item in report.undecided] == [
        ("old-driver", ["n1"], ("node.driver",))
    ]
    found = {item.finding.objects[0].name: (item.state, item.reason) for item in (await advisor.findings()).items}
    assert found == {"n1": ("open", "fact-unknown"), "n2": ("resolved", "gone")}


async def test_a_rule_of_the_team_that_fails_keeps_its_findings_open(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", marked(node("n1"), labels={"team": "x"}))
    spec = {"id": "r", "scope": "node", "when": "node.labels.team == 'x'", "title": "t", "detail": "d", "remedy": "r"}
    advisor = await advisors.open(cluster, rules=(compile_rule(msgspec.convert(spec, CustomRule)),))
    await audited(advisor)
    cluster.nodes = (node("n1"),)
    report = await audited(advisor)
    assert only(report.failed_rules).error.startswith("there is no key 'team'")
    assert ((await the_finding(advisor)).state, (await the_finding(advisor)).reason) == ("open", "rule-failed")


async def test_the_report_in_the_database_keeps_what_was_exempted(advisors: Advisors) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    policy = Policy(
        exemptions=(*KEPT.exemptions, Exemption(rules=("x",), reason="y", until=date(2026, 1, 1))),
        disabled_rules=frozenset({"untidy-node"}),
    )
    advisor = await advisors.open(cluster, policy=policy)
    report = await audited(advisor)
    document = report_document(report, "en")
    assert document.exempted[0].finding.rule == IDLE
    assert [item.by for item in document.exemption_troubles] == ["policy.exemptions[1]"]
    assert document.disabled_rules == ("untidy-node",)


@pytest.mark.parametrize("until", [date.min, date.max])
async def test_no_end_is_too_early_or_too_late(advisors: Advisors, until: date) -> None:
    if not advisors.sqlite:
        return
    cluster = ScriptedCluster("lab", node("n1", trouble=IDLE))
    exemption = Exemption(rules=(IDLE,), reason="x", until=until)
    report = await audited(await advisors.open(cluster, policy=Policy(exemptions=(exemption,))))
    assert len(report.exempted) == (until == date.max)
