"""Who is told what, how often, and in which order."""

import asyncio
from datetime import timedelta

import pytest

from bot.errors import DeliveryPermanent, DeliveryTemporary
from rules.findings import Severity
from rules.policy import Policy
from service.advisor import GpuAdvisor
from service.settings import AlertSettings
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import Channel, ScriptedCluster, node

IDLE = "idle-gpu-node"


async def audited(advisor: GpuAdvisor, cluster: ScriptedCluster, *nodes: object, deliver: bool = True) -> None:
    """The cluster with other nodes, audited again, and what is due delivered."""
    cluster.nodes = nodes  # type: ignore[assignment]
    view = await advisor.run_audit(cluster.name, trigger="test")
    assert view.state == "done"
    if deliver:
        await advisor.deliver()


async def test_a_new_finding_is_one_message_whatever_later_audits_count(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    for hours in (1, 2, 3):
        await audited(advisor, cluster, node("n1", trouble=IDLE, hours=hours))
        advisors.clock.advance(300)
    assert channel.said() == [("post", "n1")]
    assert only(list(channel.messages.values())).finding.value("hours") == 1


async def test_the_message_is_edited_when_the_finding_is_resolved(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE, hours=1))
    opened = advisors.clock.now.timestamp()
    advisors.clock.advance(300)
    await audited(advisor, cluster, node("n1", trouble=IDLE, hours=2))
    resolved = advisors.clock.advance(300).timestamp()
    await audited(advisor, cluster, node("n1"))
    await audited(advisor, cluster, node("n1"))
    assert channel.said() == [("post", "n1"), ("edit", "n1")]
    alert = only(list(channel.messages.values()))
    assert (alert.state, alert.opened_at, alert.resolved_at) == ("resolved", opened, resolved)
    assert alert.finding.value("hours") == 2


async def test_nothing_is_said_of_trouble_that_is_over_before_it_was_said(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE), deliver=False)
    await audited(advisor, cluster, node("n1"))
    assert channel.said() == []
    assert await advisor.undelivered() == []


async def test_trouble_that_comes_back_is_a_new_message(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    for trouble in (IDLE, None, IDLE, None):
        await audited(advisor, cluster, node("n1", trouble=trouble))
        advisors.clock.advance(300)
    assert channel.said() == [("post", "n1"), ("edit", "n1")] * 2
    first, second = channel.messages.values()
    assert first.id != second.id
    assert {first.state, second.state} == {"resolved"}


async def test_a_finding_that_could_not_be_judged_says_nothing(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    await audited(advisor, cluster, node("n0", trouble="fault"))
    assert channel.said() == [("post", "n1")]


@pytest.mark.parametrize(
    "alerts",
    [
        AlertSettings(rules=frozenset({"driver-cuda-mismatch"})),
        AlertSettings(rules=frozenset(), min_severity=Severity.HIGH),
    ],
)
async def test_findings_that_the_team_did_not_choose_are_not_announced(
    advisors: Advisors, channel: Channel, alerts: AlertSettings
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel, alerts=alerts)
    nodes = (node("n1", trouble=IDLE), node("n2", trouble="driver-cuda-mismatch"))
    await audited(advisor, cluster, *nodes)
    assert channel.said() == [("post", "n2")]
    await audited(advisor, cluster)
    assert channel.said() == [("post", "n2"), ("edit", "n2")]


async def test_a_team_that_adds_slack_later_hears_of_what_is_open(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    silent = await advisors.open(cluster)
    await audited(silent, cluster, node("n1", trouble=IDLE))
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    assert channel.said() == [("post", "n1")]


async def test_switching_the_rule_off_does_not_say_that_the_trouble_is_mended(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    quiet = await advisors.open(cluster, notifier=channel, policy=Policy(disabled_rules=frozenset({IDLE})))
    await audited(quiet, cluster, node("n1", trouble=IDLE))
    assert channel.said() == [("post", "n1")]
    again = await advisors.open(cluster, notifier=channel)
    await audited(again, cluster, node("n1", trouble=IDLE))
    assert channel.said() == [("post", "n1"), ("post", "n1")]


async def test_messages_go_out_heaviest_first_and_keep_their_order_behind_one_that_waits(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures = [DeliveryTemporary("ratelimited", retry_after=40.0)]
    await audited(advisor, cluster, node("n1", trouble=IDLE), node("n2", trouble="driver-cuda-mismatch"))
    assert channel.said() == []
    advisors.clock.advance(39)
    await advisor.deliver()
    assert channel.said() == []
    advisors.clock.advance(1)
    await advisor.deliver()
    assert channel.said() == [("post", "n2"), ("post", "n1")]


async def test_waits_grow_when_slack_names_none(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures = [DeliveryTemporary("http-503") for _ in range(3)]
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    for wait in (5, 10, 20):
        advisors.clock.advance(wait - 1)
        await advisor.deliver()
        left = len(channel.failures)
        advisors.clock.advance(1)
        await advisor.deliver()
        assert len(channel.failures) == max(left - 1, 0)
    assert channel.said() == [("post", "n1")]


async def test_a_refused_message_is_shown_as_such_and_tried_again_only_after_a_restart(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures = [DeliveryPermanent("not_in_channel")]
    await audited(advisor, cluster, node("n1", trouble=IDLE), node("n2", trouble=IDLE))
    assert channel.said() == [("post", "n2")]
    trouble = only(await advisor.undelivered())
    assert (trouble.cluster, trouble.rule, trouble.action, trouble.reason) == ("lab", IDLE, "post", "refused")
    assert "/invite" in trouble.detail
    advisors.clock.advance(86_400 * 2)
    await advisor.deliver()
    assert channel.said() == [("post", "n2")]
    await advisor.stop()

    mended = await advisors.open(cluster, notifier=channel)
    await mended.deliver()
    assert channel.said() == [("post", "n2"), ("post", "n1")]
    assert await mended.undelivered() == []


async def test_trouble_that_was_refused_and_is_over_leaves_nothing_to_edit(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures = [DeliveryPermanent("channel_not_found")]
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    await audited(advisor, cluster, node("n1"))
    heir = await advisors.open(cluster, notifier=channel)
    await heir.deliver()
    assert channel.said() == []


async def test_a_message_is_given_up_after_the_time_that_the_settings_give(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel, alerts=AlertSettings(give_up_hours=1))
    channel.failures = [DeliveryTemporary("timeout") for _ in range(100)]
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    for _ in range(20):
        advisors.clock.advance(300)
        await advisor.deliver()
    trouble = only(await advisor.undelivered())
    assert (trouble.reason, "timeout" in trouble.detail) == ("gave-up", True)
    assert len(channel.failures) > 80


async def test_a_lost_answer_is_looked_up_before_anything_is_posted_again(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures_after_posting = [DeliveryTemporary("timeout", outcome_unknown=True)]
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    advisors.clock.advance(60)
    await advisor.deliver()
    assert (channel.said(), channel.lookups) == ([("post", "n1"), ("edit", "n1")], 1)
    await audited(advisor, cluster)
    assert len(channel.messages) == 1
    assert only(list(channel.messages.values())).state == "resolved"


async def test_a_message_whose_answer_was_lost_is_closed_when_the_trouble_ends_meanwhile(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.failures_after_posting = [DeliveryTemporary("timeout", outcome_unknown=True)]
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    await audited(advisor, cluster)
    advisors.clock.advance(60)
    await advisor.deliver()
    assert only(list(channel.messages.values())).state == "resolved"


async def test_a_crash_between_sending_and_recording_does_not_send_twice(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    dead = await advisors.open(cluster, notifier=channel)
    channel.failures_after_posting = [asyncio.CancelledError()]
    await audited(dead, cluster, node("n1", trouble=IDLE), deliver=False)
    with pytest.raises(asyncio.CancelledError):
        await dead.deliver()
    assert len(channel.messages) == 1

    heir = await advisors.open(cluster, notifier=channel)
    if not advisors.sqlite:
        await heir.deliver()
        assert channel.lookups == 0, "another process may still be sending"
        advisors.clock.advance(301)
    await heir.deliver()
    assert (len(channel.messages), channel.lookups) == (1, 1)
    await audited(heir, cluster)
    assert only(list(channel.messages.values())).state == "resolved"


async def test_stopping_lets_a_message_under_way_arrive(advisors: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    channel.gate.clear()
    await audited(advisor, cluster, node("n1", trouble=IDLE), deliver=False)
    waiting = asyncio.create_task(advisor.deliver())
    await channel.entered.wait()
    stopping = asyncio.create_task(advisor.stop())
    channel.gate.set()
    await stopping
    await waiting
    heir = await advisors.open(cluster, notifier=channel)
    await heir.deliver()
    assert (channel.said(), channel.lookups) == ([("post", "n1")], 0)


async def test_replicas_that_deliver_together_send_every_alert_once(replicas: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    family = [await replicas.open(cluster, notifier=channel) for _ in range(3)]
    nodes = [node(f"n{number:02}", trouble=IDLE) for number in range(12)]
    await audited(family[0], cluster, *nodes, deliver=False)
    await asyncio.gather(*(advisor.deliver() for advisor in family))
    while len(channel.messages) < len(nodes):  # a replica that lost a race leaves the rest to its next turn
        await family[1].deliver()
    assert channel.said() == [("post", item.metadata.name) for item in nodes]
    assert channel.lookups == 0


async def test_a_second_replica_waits_for_the_message_before(replicas: Advisors, channel: Channel) -> None:
    cluster = ScriptedCluster("lab")
    one, two = [await replicas.open(cluster, notifier=channel) for _ in range(2)]
    channel.gate.clear()
    await audited(one, cluster, node("n1", trouble=IDLE), node("n2", trouble=IDLE), deliver=False)
    sending = asyncio.create_task(one.deliver())
    await channel.entered.wait()
    await two.deliver()
    assert channel.said() == []
    channel.gate.set()
    await sending
    assert channel.said() == [("post", "n1"), ("post", "n2")]


async def test_old_alerts_and_their_findings_are_deleted_and_open_ones_stay(
    advisors: Advisors, channel: Channel
) -> None:
    cluster = ScriptedCluster("lab")
    advisor = await advisors.open(cluster, notifier=channel)
    await audited(advisor, cluster, node("n1", trouble=IDLE), node("n2", trouble=IDLE))
    await audited(advisor, cluster, node("n1", trouble=IDLE))
    advisors.clock.advance(timedelta(days=31).total_seconds())
    removed = await advisor.clean()
    assert (removed["findings"], removed["alerts"], removed["outbox"], removed["audits"]) == (1, 1, 2, 2)
    assert only((await advisor.findings()).items).finding.objects[0].name == "n1"
    await audited(advisor, cluster)
    assert channel.said()[-1] == ("edit", "n1")
