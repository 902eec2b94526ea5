"""People hear once of a cluster that cannot be read, and once when it can be read again."""

import pytest

from bot.blocks.alert import alert_message
from bot.port import AlertView
from rules.engine import evaluate
from rules.facts.cluster import build
from rules.facts.prices import PriceBook
from rules.findings import Unreadable
from rules.language import LANGUAGES, Language
from rules.policy import Policy
from rules.words import DETAIL_BUDGET, TITLE_BUDGET, render
from service import errors, unreadable
from service.errors import ClusterForbidden, ClusterTrouble, ClusterUnauthorized, ClusterUnreachable
from service.settings import AlertSettings
from service.views import AuditError
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import START, Channel, ScriptedCluster, node

DOWN = ClusterUnreachable("lab", "connection refused", "Check that the server runs.")
CODES = [
    *sorted({item.code for item in ClusterTrouble.__subclasses__()}),
    "config-invalid",
    "snapshot-invalid",
    "internal-fault",
    "something-new",
]


def said(channel: Channel) -> list[tuple[str, str, str]]:
    """What was said: rule, state and the words of the first headline."""
    return [(view.finding.rule, view.state, view.cluster) for view in channel.messages.values()]


class Told(Channel):
    """A channel whose messages need not be about an object."""

    def _note(self, verb: str, alert: AlertView) -> None:
        self.log.append((verb, alert.finding.rule, alert.state))


async def test_a_cluster_that_cannot_be_read_is_told_once_and_again_when_it_can(advisors: Advisors) -> None:
    channel, cluster = Told(), ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, notifier=channel)
    for error in (None, DOWN, DOWN, ClusterUnauthorized("lab", "token is old", "Renew it."), None, None):
        cluster.error = error
        await advisor.run_audit("lab", trigger="test")
        await advisor.deliver()
        advisors.clock.advance(300)
    assert channel.log == [("post", unreadable.WHOLLY, "open"), ("edit", unreadable.WHOLLY, "resolved")]
    assert said(channel) == [(unreadable.WHOLLY, "resolved", "lab")]


async def test_one_that_was_never_read_is_told_too_and_others_are_not_touched(advisors: Advisors) -> None:
    channel, down, fine = Told(), ScriptedCluster("down"), ScriptedCluster("fine", node("n1"))
    down.error = DOWN
    advisor = await advisors.open(down, fine, notifier=channel)
    for name in ("down", "fine"):
        await advisor.run_audit(name, trigger="test")
    await advisor.deliver()
    assert said(channel) == [(unreadable.WHOLLY, "open", "down")]
    assert (await advisor.findings(cluster="fine")).items == []
    found = only((await advisor.findings(rule=unreadable.WHOLLY)).items)
    assert (found.cluster, found.state, found.finding.value("code")) == ("down", "open", "cluster-unreachable")


async def test_trouble_that_comes_back_is_told_again(advisors: Advisors) -> None:
    channel, cluster = Told(), ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    for error in (DOWN, None, DOWN):
        cluster.error = error
        await advisor.run_audit("lab", trigger="test")
        await advisor.deliver()
    assert [verb for verb, _, _ in channel.log] == ["post", "edit", "post"]


async def test_a_part_that_cannot_be_read_is_told_once_and_again_when_it_can(advisors: Advisors) -> None:
    channel, cluster = Told(), ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, notifier=channel)
    forbidden = Unreadable("Pod", "forbidden", "User reader cannot list pods")
    for missing in ((forbidden,), (forbidden,), (forbidden, Unreadable("Event", "error", "cut")), (), ()):
        cluster.unreadable = missing
        await advisor.run_audit("lab", trigger="test")
        await advisor.deliver()
    assert channel.log == [("post", unreadable.PARTLY, "open"), ("edit", unreadable.PARTLY, "resolved")]


@pytest.mark.parametrize(
    "missing",
    [
        Unreadable("Workload", "not-found", "not served"),
        Unreadable("Workload", "error", "cut off"),
        Unreadable("Pod", "outside", "only team-a is read"),
        Unreadable("Pod", "not-in-snapshot", "none"),
    ],
)
async def test_what_is_not_asked_for_or_optional_is_no_trouble(advisors: Advisors, missing: Unreadable) -> None:
    channel, cluster = Told(), ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, notifier=channel)
    cluster.unreadable = (missing,)
    await advisor.run_audit("lab", trigger="test")
    await advisor.deliver()
    assert (await advisor.findings()).items == []
    assert channel.log == []


async def test_a_team_may_not_want_to_hear_of_it(advisors: Advisors) -> None:
    channel, cluster = Told(), ScriptedCluster("lab")
    cluster.error = DOWN
    advisor = await advisors.open(cluster, notifier=channel, alerts=AlertSettings(unreadable=False))
    await advisor.run_audit("lab", trigger="test")
    await advisor.deliver()
    assert channel.log == []
    assert only((await advisor.findings()).items).rule == unreadable.WHOLLY


async def test_the_whole_cluster_failing_leaves_its_unreadable_part_as_it_was(advisors: Advisors) -> None:
    channel, cluster = Told(), ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster, notifier=channel)
    cluster.unreadable = (Unreadable("Pod", "forbidden", "no right"),)
    await advisor.run_audit("lab", trigger="test")
    cluster.error = DOWN
    await advisor.run_audit("lab", trigger="test")
    states = {item.rule: item.state for item in (await advisor.findings()).items}
    assert states == {unreadable.PARTLY: "open", unreadable.WHOLLY: "open"}


def test_a_process_that_ended_says_nothing_of_the_cluster() -> None:
    assert unreadable.of_failure("lab", AuditError("interrupted", "gpu-advisor stopped")) is None


def test_every_kind_of_trouble_has_its_own_advice() -> None:
    remedies = unreadable.words()[unreadable.WHOLLY].remedies
    known = {item.code for item in vars(errors).values() if isinstance(item, type) and issubclass(item, ClusterTrouble)}
    assert known - {ClusterTrouble.code} <= remedies.keys()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", CODES)
def test_the_words_keep_their_budgets_and_show_what_was_said(code: str, language: Language) -> None:
    long = str(ClusterForbidden("lab", "nodes is forbidden " * 30, "Add it.", "- {}"))
    finding = unreadable.of_failure("lab", AuditError(code, long))
    assert finding is not None
    words = render(finding, language)
    assert len(words.title) <= TITLE_BUDGET
    assert len(words.summary) <= DETAIL_BUDGET
    assert words.remedy
    alert = AlertView(id="a", cluster="lab", finding=finding, state="open", opened_at=1.0, updated_at=1.0)
    assert "nodes is forbidden" in str(alert_message(alert, language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_kinds_that_are_missing_are_in_the_headline(language: Language) -> None:
    missing = [Unreadable(kind, "forbidden", "no right") for kind in ("Pod", "Event", "DaemonSet", "Deployment", "Job")]
    facts = build("lab", START, nodes=(), pods=(), read_kinds={"Node"}, unreadable=missing, prices=PriceBook())
    finding = unreadable.of_report(evaluate(facts, Policy(), ()))
    assert finding is not None
    words = render(finding, language)
    assert "Pod" in words.title
    assert len(words.title) <= TITLE_BUDGET


@pytest.mark.parametrize(("namespace", "state"), [("default", "resolved"), ("elsewhere", "open")])
async def test_findings_in_the_namespaces_that_are_read_are_resolved_there_and_kept_elsewhere(
    advisors: Advisors, namespace: str, state: str
) -> None:
    cluster = ScriptedCluster("lab", node("n1", trouble="pod-trouble"))
    advisor = await advisors.open(cluster)
    await advisor.run_audit("lab", trigger="test")
    cluster.nodes = (node("n1"),)
    seen = ("default",) if namespace == "default" else ("team-a",)
    cluster.unreadable = (Unreadable("Pod", "outside", "only some namespaces are read", seen),)
    await advisor.run_audit("lab", trigger="test")
    assert only((await advisor.findings()).items).state == state


async def test_the_health_of_a_cluster_says_what_cannot_be_seen_and_what_is_followed_less_closely(
    advisors: Advisors,
) -> None:
    cluster = ScriptedCluster("lab", node("n1"))
    advisor = await advisors.open(cluster)
    cluster.unreadable = (
        Unreadable("Pod", "outside", "only team-a is read", ("team-a",)),
        Unreadable("Workload", "not-found", "not served"),
    )
    cluster.notes = ("events are listed again and again: no right to watch them",)
    await advisor.run_audit("lab", trigger="test")
    health = only(await advisor.clusters())
    assert (health.state, health.unreadable, health.notes) == ("ok", ("Pod",), cluster.notes)
