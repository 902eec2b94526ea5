"""Alerts: posted once, edited in place, with every trouble that Slack can make."""

import asyncio
import json

import msgspec
import pytest

from bot.client import make_client
from bot.delivery import SlackDelivery, make_delivery
from bot.errors import DeliveryPermanent, DeliveryTemporary
from bot.port import MessageRef
from bot.posting import Poster
from bot.settings import SlackSettings, SlackSettingsInvalid
from tests.bot.conftest import ALERTS, ANNA, FakeTime
from tests.bot.doubles import alert
from tests.fakes.slack import FakeSlack


@pytest.fixture
def delivery(slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime) -> SlackDelivery:
    slack.clock = lambda: fake_time.now + 1_795_992_000.0
    return delivery_with(settings, fake_time)


def delivery_with(settings: SlackSettings, fake_time: FakeTime, **options: float) -> SlackDelivery:
    client = make_client(settings)
    client.timeout = 1
    poster = Poster(client, clock=fake_time, sleep=fake_time.sleep, **options)  # type: ignore[arg-type]
    return SlackDelivery(client, settings.alert_channel or "", poster=poster)


async def test_an_alert_is_posted_edited_and_resolved_in_one_message(delivery: SlackDelivery, slack: FakeSlack) -> None:
    ref = await delivery.post(alert(), "en")
    assert ref == MessageRef(ALERTS, slack.messages(ALERTS)[0]["ts"])
    [posted] = slack.messages(ALERTS)
    assert posted["blocks"][0]["text"]["text"] == "🟠 High · No pod holds a GPU on node gpu-a100-1"
    assert posted["metadata"] == {"event_type": "gpu_advisor_alert", "event_payload": {"id": "alert-1"}}
    assert await delivery.update(ref, alert(resolved_after=7200), "en") == ref
    [resolved] = slack.messages(ALERTS)
    assert resolved["blocks"][0]["text"]["text"] == "✅ Resolved · No pod holds a GPU on node gpu-a100-1"
    shown = json.dumps(resolved["blocks"], ensure_ascii=False)
    assert "2 hours" in shown
    assert "$852.02" in shown
    assert "kubectl" not in shown


async def test_a_rate_limit_is_waited_for(delivery: SlackDelivery, slack: FakeSlack, fake_time: FakeTime) -> None:
    slack.fail("chat.postMessage", status=429, retry_after=7)
    await delivery.post(alert(), "en")
    assert fake_time.slept == [7.0]
    assert len(slack.messages(ALERTS)) == 1


async def test_a_rate_limit_that_is_too_long_is_left_to_the_caller(
    delivery: SlackDelivery, slack: FakeSlack, fake_time: FakeTime
) -> None:
    slack.fail("chat.postMessage", status=429, retry_after=600)
    with pytest.raises(DeliveryTemporary) as caught:
        await delivery.post(alert(), "en")
    assert (caught.value.reason, caught.value.retry_after) == ("ratelimited", 600.0)
    assert not caught.value.outcome_unknown
    assert fake_time.slept == []


async def test_alerts_keep_a_second_between_them_in_one_channel(
    delivery: SlackDelivery, slack: FakeSlack, fake_time: FakeTime
) -> None:
    slack.limit_posting = True
    for number in range(4):
        await delivery.post(alert(f"alert-{number}"), "en")
    assert len(slack.messages(ALERTS)) == 4
    assert all(call.status == 200 for call in slack.called("chat.postMessage"))
    assert fake_time.slept == [1.0, 1.0, 1.0]


async def test_alerts_sent_at_once_queue_up(slack: FakeSlack, settings: SlackSettings) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    client = make_client(settings)
    delivery = SlackDelivery(client, ALERTS, poster=Poster(client, clock=lambda: 1000.0, sleep=sleep))
    await asyncio.gather(*(delivery.post(alert(f"alert-{number}"), "en") for number in range(4)))
    assert waits == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 503, "error": "service_unavailable"},
        {"status": 500, "body": "<html>Server Error</html>"},
        {"error": "fatal_error"},
        {"kind": "drop"},
        {"kind": "hang"},
    ],
    ids=lambda trouble: "-".join(str(value) for value in trouble.values())[:20],
)
@pytest.mark.parametrize("applied", [True, False], ids=["posted", "not-posted"])
async def test_a_lost_answer_never_posts_twice(
    delivery: SlackDelivery, slack: FakeSlack, trouble: dict[str, object], applied: bool
) -> None:
    slack.fail("chat.postMessage", **trouble, applied=applied)  # type: ignore[arg-type]
    ref = await delivery.post(alert(), "en")
    [posted] = slack.messages(ALERTS)
    assert ref == MessageRef(ALERTS, posted["ts"])
    assert len(slack.called("conversations.history")) == 1


async def test_an_attempt_of_another_process_is_looked_up(delivery: SlackDelivery, slack: FakeSlack) -> None:
    first = await delivery.post(alert(), "en")
    second = await delivery.post(alert(resolved_after=60), "en", maybe_posted=True)
    assert second == first
    [posted] = slack.messages(ALERTS)
    assert posted["blocks"][0]["text"]["text"].startswith("✅")


async def test_an_unknown_outcome_is_remembered_between_calls(
    slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime
) -> None:
    delivery = delivery_with(settings, fake_time, max_retries=0)
    slack.fail("chat.postMessage", status=503, applied=True)
    with pytest.raises(DeliveryTemporary) as caught:
        await delivery.post(alert(opened=slack.clock()), "en")
    assert caught.value.outcome_unknown
    await delivery.post(alert(opened=slack.clock()), "en")
    assert len(slack.messages(ALERTS)) == 1


async def test_a_failed_look_up_posts_nothing_yet(
    slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime
) -> None:
    delivery = delivery_with(settings, fake_time, max_retries=0)
    slack.fail("conversations.history", status=503)
    with pytest.raises(DeliveryTemporary) as caught:
        await delivery.post(alert(), "en", maybe_posted=True)
    assert caught.value.outcome_unknown
    assert slack.called("chat.postMessage") == []


async def test_without_the_right_to_look_it_is_rather_posted_twice_than_never(
    delivery: SlackDelivery, slack: FakeSlack
) -> None:
    slack.scopes = frozenset({"chat:write"})
    await delivery.post(alert(), "en", maybe_posted=True)
    assert len(slack.messages(ALERTS)) == 1


async def test_the_look_up_pages_through_a_busy_channel(delivery: SlackDelivery, slack: FakeSlack) -> None:
    await delivery.post(alert(), "en")
    for number in range(450):
        slack.write(ANNA, ALERTS, f"chatter {number}")
    await delivery.post(alert(), "en", maybe_posted=True)
    assert len(slack.messages(ALERTS)) == 1
    assert len(slack.called("conversations.history")) == 3


@pytest.mark.parametrize("refusal", ["invalid_blocks", "msg_blocks_too_long"])
async def test_a_refused_layout_is_sent_as_text(delivery: SlackDelivery, slack: FakeSlack, refusal: str) -> None:
    slack.fail("chat.postMessage", error=refusal)
    ref = await delivery.post(alert(), "es")
    [posted] = slack.messages(ALERTS)
    assert posted["blocks"] == []
    assert "Ningún pod ocupa una GPU en el nodo gpu-a100-1" in posted["text"]
    assert "kubectl" in posted["text"]
    slack.fail("chat.update", error=refusal)
    await delivery.update(ref, alert(resolved_after=60), "es")
    [resolved] = slack.messages(ALERTS)
    assert resolved["blocks"] == []
    assert resolved["text"].startswith("*✅ Resuelta")


@pytest.mark.parametrize("reason", ["edit_window_closed", "cant_update_message", "message_not_found"])
async def test_an_alert_that_cannot_be_edited_is_posted_anew(
    delivery: SlackDelivery, slack: FakeSlack, reason: str
) -> None:
    old = await delivery.post(alert(), "en")
    slack.fail("chat.update", error=reason)
    new = await delivery.update(old, alert(resolved_after=60), "en")
    assert new != old
    assert slack.channels[ALERTS].messages[new.ts]["blocks"][0]["text"]["text"].startswith("✅")


async def test_posting_anew_after_a_lost_answer_does_not_take_the_old_message_for_the_new_one(
    delivery: SlackDelivery, slack: FakeSlack
) -> None:
    old = await delivery.post(alert(), "en")
    slack.fail("chat.update", error="edit_window_closed")
    slack.fail("chat.postMessage", status=503, applied=False)
    new = await delivery.update(old, alert(resolved_after=60), "en")
    assert new != old
    assert len(slack.messages(ALERTS)) == 2


async def test_a_deleted_message_is_posted_anew(delivery: SlackDelivery, slack: FakeSlack) -> None:
    old = await delivery.post(alert(), "en")
    del slack.channels[ALERTS].messages[old.ts]
    new = await delivery.update(old, alert(resolved_after=60), "en")
    assert [message["ts"] for message in slack.messages(ALERTS)] == [new.ts]


async def test_a_changed_alert_channel_takes_over_when_the_old_one_is_gone(
    slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime
) -> None:
    delivery = delivery_with(settings, fake_time)
    new = await delivery.update(MessageRef("C0GONE", "1.000001"), alert(), "en")
    assert new.channel == ALERTS


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("channel_not_found", "/invite"),
        ("invalid_auth", "bot_token"),
        ("is_archived", "archived"),
        ("made_up", "made_up"),
    ],
)
async def test_what_trying_again_cannot_mend_is_permanent_and_says_what_to_do(
    delivery: SlackDelivery, slack: FakeSlack, reason: str, hint: str
) -> None:
    slack.fail("chat.postMessage", error=reason)
    with pytest.raises(DeliveryPermanent, match=hint) as caught:
        await delivery.post(alert(), "en")
    assert caught.value.reason == reason
    assert len(slack.called("chat.postMessage")) == 1


async def test_a_wrong_token_is_permanent_and_not_shown(
    slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime
) -> None:
    wrong = msgspec.structs.replace(settings, bot_token="xoxb-wrong")
    with pytest.raises(DeliveryPermanent) as caught:
        await delivery_with(wrong, fake_time).post(alert(), "en")
    assert caught.value.reason == "invalid_auth"
    assert "xoxb-wrong" not in str(caught.value)


async def test_a_private_channel_without_the_bot_is_permanent(delivery: SlackDelivery, slack: FakeSlack) -> None:
    slack.channels[ALERTS].kind = "private"
    slack.channels[ALERTS].bot_in = False
    with pytest.raises(DeliveryPermanent, match="private"):
        await delivery.post(alert(), "en")


async def test_a_public_channel_needs_no_invitation(delivery: SlackDelivery, slack: FakeSlack) -> None:
    slack.channels[ALERTS].bot_in = False
    await delivery.post(alert(), "en")
    assert len(slack.messages(ALERTS)) == 1


async def test_slack_being_away_is_temporary_and_certain(
    settings: SlackSettings, fake_time: FakeTime, unused_tcp_port: int
) -> None:
    away = msgspec.structs.replace(settings, base_url=f"http://127.0.0.1:{unused_tcp_port}/api/")
    with pytest.raises(DeliveryTemporary) as caught:
        await delivery_with(away, fake_time).post(alert(), "en")
    assert caught.value.reason == "connection"
    assert not caught.value.outcome_unknown
    assert fake_time.slept == [1.0, 2.0, 4.0]


async def test_a_channel_may_be_given_by_name(slack: FakeSlack, settings: SlackSettings, fake_time: FakeTime) -> None:
    delivery = delivery_with(msgspec.structs.replace(settings, alert_channel="#gpu-alerts"), fake_time)
    ref = await delivery.post(alert(), "en")
    assert ref.channel == ALERTS


async def test_the_delivery_of_the_settings_works(slack: FakeSlack, settings: SlackSettings) -> None:
    await make_delivery(settings).post(alert(), "it")
    [posted] = slack.messages(ALERTS)
    assert "Nessun pod occupa una GPU" in posted["text"]


def test_no_alert_channel_is_said(settings: SlackSettings) -> None:
    with pytest.raises(SlackSettingsInvalid, match="alert_channel"):
        make_delivery(msgspec.structs.replace(settings, alert_channel=None))
