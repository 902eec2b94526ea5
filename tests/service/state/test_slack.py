"""From a real rule to a message in a loopback Slack, through the real delivery."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.delivery import make_delivery
from bot.settings import SlackSettings
from rules.checks import RULES
from service.advisor import GpuAdvisor
from tests.fakes.slack import FakeSlack
from tests.service.state.conftest import Advisors, only
from tests.service.state.doubles import Clock, ScriptedCluster, gpu_pod, node

ALERTS = "C0ALERTS"


@pytest.fixture
async def slack(clock: Clock) -> AsyncIterator[FakeSlack]:
    async with FakeSlack(clock=lambda: clock().timestamp()) as fake:
        fake.add_channel(ALERTS, "gpu-alerts")
        yield fake


@pytest.fixture
def cluster() -> ScriptedCluster:
    """A GPU node that stands idle for a day, and one that works."""
    lab = ScriptedCluster("lab", node("gpu-1", gpus=8), node("gpu-2", gpus=8))
    lab.pods = (gpu_pod("busy", "gpu-2"),)
    return lab


async def connected(advisors: Advisors, slack: FakeSlack, cluster: ScriptedCluster) -> GpuAdvisor:
    settings = SlackSettings(
        bot_token=slack.bot_token,
        signing_secret=slack.signing_secret,
        alert_channel=ALERTS,
        base_url=slack.base_url,
        message_interval_seconds=0,
        max_retries=0,
    )
    return await advisors.open(cluster, notifier=make_delivery(settings), rules=RULES)


def message(slack: FakeSlack) -> dict[str, Any]:
    found = only(slack.messages(ALERTS))
    assert isinstance(found, dict)
    return found


async def test_an_idle_node_is_one_message_that_becomes_resolved_when_the_node_is_used(
    advisors: Advisors, slack: FakeSlack, cluster: ScriptedCluster
) -> None:
    advisor = await connected(advisors, slack, cluster)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    posted = dict(message(slack))
    assert "gpu-1" in str(posted["blocks"])
    assert "gpu-2" not in str(posted["blocks"])

    advisors.clock.advance(600)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    assert message(slack) == posted

    cluster.pods = (*cluster.pods, gpu_pod("trainer", "gpu-1"))
    advisors.clock.advance(600)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    edited = message(slack)
    assert edited["ts"] == posted["ts"]
    assert "resolved" in f"{edited['text']} {edited['blocks']}".lower()
    assert "resolved" not in f"{posted['text']} {posted['blocks']}".lower()
    assert len(slack.called("chat.postMessage")) == 1


async def test_a_post_whose_answer_is_lost_is_found_again_instead_of_repeated(
    advisors: Advisors, slack: FakeSlack, cluster: ScriptedCluster
) -> None:
    advisor = await connected(advisors, slack, cluster)
    slack.fail("chat.postMessage", kind="drop", applied=True)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    lost = message(slack)
    await advisor.stop()

    heir = await connected(advisors, slack, cluster)
    advisors.clock.advance(60)
    await heir.deliver()
    assert message(slack)["ts"] == lost["ts"]
    cluster.nodes = ()
    await heir.run_audit("lab", trigger="schedule")
    await heir.deliver()
    assert "resolved" in f"{message(slack)['text']} {message(slack)['blocks']}".lower()
    assert len(slack.called("chat.postMessage")) == 1


async def test_slack_says_when_to_come_again(advisors: Advisors, slack: FakeSlack, cluster: ScriptedCluster) -> None:
    advisor = await connected(advisors, slack, cluster)
    slack.fail("chat.postMessage", status=429, retry_after=0)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    assert message(slack)["ts"]
    assert len(slack.called("chat.postMessage")) == 2


async def test_a_channel_that_does_not_exist_is_reported_with_what_to_do(
    advisors: Advisors, slack: FakeSlack, cluster: ScriptedCluster
) -> None:
    del slack.channels[ALERTS]
    advisor = await connected(advisors, slack, cluster)
    await advisor.run_audit("lab", trigger="schedule")
    await advisor.deliver()
    await advisor.deliver()
    trouble = only(await advisor.undelivered())
    assert trouble.reason == "refused"
    assert "channel_not_found" in trouble.detail
    assert len(slack.called("chat.postMessage")) == 1
