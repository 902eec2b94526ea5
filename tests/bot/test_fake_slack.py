"""The loopback Slack itself: that it refuses what Slack refuses, in Slack's shape."""

from typing import Any

import httpx
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.client import make_client
from bot.settings import SlackSettings
from tests.bot.conftest import ALERTS, ANNA, GENERAL, FakeTime
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_blocks import check_message


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


BUTTON = {"type": "button", "text": plain("x"), "action_id": "a"}


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({"type": "section", "text": mrkdwn("x" * 3001)}, ("must be less than 3001 characters", "/blocks/0/text/text")),
        ({"type": "section", "text": mrkdwn("")}, ("must be more than 0 characters", "/blocks/0/text/text")),
        ({"type": "section"}, ("missing required field: text", "/blocks/0")),
        (
            {"type": "section", "text": mrkdwn("x"), "fallback": "y"},
            ("invalid additional property: fallback", "/blocks/0"),
        ),
        ({"type": "section", "fields": [mrkdwn("x")] * 11}, ("no more than 10 items allowed", "/blocks/0/fields")),
        (
            {"type": "section", "fields": [mrkdwn("x" * 2001)]},
            ("must be less than 2001 characters", "/blocks/0/fields/0/text"),
        ),
        ({"type": "header", "text": plain("x" * 151)}, ("must be less than 151 characters", "/blocks/0/text/text")),
        ({"type": "header", "text": mrkdwn("x")}, ("must be one of plain_text", "/blocks/0/text/type")),
        ({"type": "context", "elements": [mrkdwn("x")] * 11}, ("no more than 10 items allowed", "/blocks/0/elements")),
        ({"type": "context", "elements": []}, ("no fewer than 1 items allowed", "/blocks/0/elements")),
        ({"type": "actions", "elements": [BUTTON] * 26}, ("no more than 25 items allowed", "/blocks/0/elements")),
        ({"type": "actions", "elements": [BUTTON] * 2}, ("`action_id` already exists", "/blocks/0/elements")),
        (
            {"type": "actions", "elements": [{**BUTTON, "text": plain("x" * 76)}]},
            ("must be less than 76 characters", "/blocks/0/elements/0/text/text"),
        ),
        ({"type": "markdown", "text": "x" * 12_001}, ("must be less than 12001 characters", "/blocks/0/text")),
        ({"type": "alert", "text": plain("x")}, ("unsupported type: alert", "/blocks/0/type")),
        ({"type": "nonsense"}, ("unsupported type: nonsense", "/blocks/0/type")),
        ({"type": "divider", "block_id": "x" * 256}, ("must be less than 256 characters", "/blocks/0/block_id")),
        ({"type": "table", "rows": [[]] * 101}, ("no more than 100 items allowed", "/blocks/0/rows")),
        ("divider", ("must be an object", "/blocks/0")),
    ],
)
def test_a_block_beyond_its_limit_is_named_with_its_place(block: Any, problem: tuple[str, str]) -> None:
    assert problem in check_message([block])


def test_good_blocks_pass() -> None:
    good = [
        {"type": "header", "text": {**plain("x" * 150), "emoji": True}},
        {"type": "section", "text": {**mrkdwn("x" * 3000), "verbatim": True}, "expand": True, "accessory": BUTTON},
        {"type": "section", "fields": [mrkdwn("x" * 2000)] * 2},
        {"type": "divider"},
        {"type": "context", "elements": [mrkdwn("x"), {"type": "image", "image_url": "https://x", "alt_text": "x"}]},
        {"type": "actions", "elements": [{**BUTTON, "action_id": str(n)} for n in range(25)]},
        {"type": "markdown", "text": "x"},
    ]
    assert check_message(good) == []


def test_the_limits_of_a_whole_message() -> None:
    assert check_message([{"type": "divider"}] * 50) == []
    assert check_message([{"type": "divider"}] * 51) == [("no more than 50 items allowed", "/blocks")]
    assert check_message([{"type": "markdown", "text": "x" * 7000}] * 2)
    assert check_message([{"type": "divider", "block_id": "a"}] * 2)


@pytest.fixture
def client(settings: SlackSettings) -> AsyncWebClient:
    return make_client(settings)


async def refusal(call: Any) -> dict[str, Any]:
    with pytest.raises(SlackApiError) as caught:
        await call
    answer: dict[str, Any] = caught.value.response.data
    return answer


async def test_refused_blocks_have_slacks_shape(client: AsyncWebClient) -> None:
    blocks = [{"type": "section", "text": mrkdwn("x" * 3001)}]
    assert await refusal(client.chat_postMessage(channel=GENERAL, text="x", blocks=blocks)) == {
        "ok": False,
        "error": "invalid_blocks",
        "errors": ["must be less than 3001 characters [json-pointer:/blocks/0/text/text]"],
        "response_metadata": {
            "messages": ["[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]"]
        },
    }


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "C0NONE", "text": "x"}, "channel_not_found"),
        ({"channel": GENERAL, "text": ""}, "no_text"),
        ({"channel": GENERAL, "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": GENERAL, "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": GENERAL, "text": "x", "metadata": {"event_type": 5}}, "invalid_metadata_format"),
        ({"channel": GENERAL, "text": "x", "blocks": [{"type": "section", "text": mrkdwn("x" * 2900)}] * 5},
         "msg_blocks_too_long"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The top-level `text` argument is missing")
async def test_messages_slack_would_not_take(client: AsyncWebClient, arguments: dict[str, Any], error: str) -> None:
    assert (await refusal(client.chat_postMessage(**arguments)))["error"] == error


async def test_tokens_are_checked(slack: FakeSlack, client: AsyncWebClient) -> None:
    assert (await refusal(client.auth_test(token="xoxb-wrong")))["error"] == "invalid_auth"
    assert (await refusal(client.apps_connections_open(app_token=slack.bot_token)))["error"] == "not_allowed_token_type"
    assert (await client.auth_test())["user_id"] == "U0BOT"
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{slack.base_url}auth.test")
        form = await http.post(f"{slack.base_url}chat.postMessage", data={"token": slack.bot_token, "text": "x"})
        typed = {"token": slack.bot_token, "channel": GENERAL, "blocks": '[{"type": "divider"}]'}
        as_form = await http.post(f"{slack.base_url}chat.postMessage", data=typed)
    assert answer.json() == {"ok": False, "error": "not_authed"}
    assert form.json()["response_metadata"]["messages"] == ["[ERROR] missing required field: channel"]
    assert as_form.json()["message"]["blocks"] == [{"type": "divider"}]


async def test_only_own_messages_can_be_changed(slack: FakeSlack, client: AsyncWebClient) -> None:
    theirs = slack.write(ANNA, GENERAL, "mine")["ts"]
    assert (await refusal(client.chat_update(channel=GENERAL, ts=theirs, text="x")))["error"] == "cant_update_message"
    assert (await refusal(client.chat_update(channel=GENERAL, ts="1.0", text="x")))["error"] == "message_not_found"


async def test_an_update_keeps_blocks_that_are_not_given(slack: FakeSlack, client: AsyncWebClient) -> None:
    sent = await client.chat_postMessage(channel=GENERAL, text="x", blocks=[{"type": "divider"}])
    await client.chat_update(channel=GENERAL, ts=sent["ts"], text="y")
    assert slack.messages(GENERAL)[0]["blocks"] == [{"type": "divider"}]
    await client.chat_update(channel=GENERAL, ts=sent["ts"], text="z", blocks=[])
    assert slack.messages(GENERAL)[0]["blocks"] == []


async def test_posting_is_limited_to_one_a_second_and_channel(
    slack: FakeSlack, client: AsyncWebClient, fake_time: FakeTime
) -> None:
    slack.clock, slack.limit_posting = fake_time, True
    await client.chat_postMessage(channel=GENERAL, text="1")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=GENERAL, text="2")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "1"
    await client.chat_postMessage(channel=ALERTS, text="elsewhere")
    fake_time.now += 1
    await client.chat_postMessage(channel=GENERAL, text="3")


async def test_history_and_replies_page_and_hide_metadata_unless_asked(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    root = slack.write(ANNA, GENERAL, "root")["ts"]
    metadata = {"event_type": "t", "event_payload": {"id": "1"}}
    for number in range(3):
        await client.chat_postMessage(channel=GENERAL, text=str(number), thread_ts=root, metadata=metadata)
    page = await client.conversations_replies(channel=GENERAL, ts=root, limit=2)
    assert [item["text"] for item in page["messages"]] == ["root", "0"]
    assert page["messages"][1]["metadata"] == {"event_type": "t"}
    cursor = page["response_metadata"]["next_cursor"]
    rest = await client.conversations_replies(channel=GENERAL, ts=root, cursor=cursor, include_all_metadata=True)
    assert [item["metadata"] for item in rest["messages"]] == [metadata, metadata]
    assert [item["text"] for item in (await client.conversations_history(channel=GENERAL))["messages"]] == ["root"]


async def test_the_locale_is_told_only_when_asked_for(client: AsyncWebClient) -> None:
    assert "locale" not in (await client.users_info(user=ANNA))["user"]
    assert (await client.users_info(user=ANNA, include_locale=True))["user"]["locale"] == "en-GB"
    assert (await refusal(client.users_info(user="U0NOBODY")))["error"] == "user_not_found"


async def test_ephemeral_messages_are_kept_apart(slack: FakeSlack, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(channel=GENERAL, user=ANNA, text="only you")
    assert slack.messages(GENERAL) == []
    assert slack.ephemerals[0]["text"] == "only you"


async def test_unknown_methods_are_refused(client: AsyncWebClient) -> None:
    assert (await refusal(client.api_call("chat.invented")))["error"] == "unknown_method"
