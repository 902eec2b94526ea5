"""The manifest asks for what the bot uses, and for nothing else."""

from typing import Any

import jsonschema
import pytest

from bot.app import EVENTS, BotApp
from bot.delivery import make_delivery
from bot.settings import SlackSettings
from bot.words import words
from tests.bot.conftest import ALERTS, ANNA, DIRECT, GENERAL
from tests.bot.doubles import alert
from tests.fakes.slack import BOT_USER, FakeSlack

SHAPE = {
    "type": "object",
    "required": ["_metadata", "display_information", "features", "oauth_config", "settings"],
    "additionalProperties": False,
    "properties": {
        "_metadata": {"type": "object", "properties": {"major_version": {"const": 2}}},
        "display_information": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "maxLength": 35},
                "description": {"type": "string", "maxLength": 140},
                "long_description": {"type": "string", "minLength": 175, "maxLength": 4000},
                "background_color": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
            },
        },
        "features": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "agent_view": {
                    "type": "object",
                    "required": ["agent_description"],
                    "properties": {
                        "agent_description": {"type": "string", "maxLength": 300},
                        "suggested_prompts": {"type": "array", "maxItems": 4},
                    },
                },
                "app_home": {"type": "object"},
                "bot_user": {"type": "object", "required": ["display_name"]},
            },
        },
        "oauth_config": {"type": "object", "properties": {"scopes": {"type": "object"}}},
        "settings": {"type": "object"},
    },
}


def test_the_manifest_has_the_shape_slack_takes(manifest: dict[str, Any]) -> None:
    jsonschema.validate(manifest, SHAPE)


def test_the_events_are_those_of_the_listeners(manifest: dict[str, Any]) -> None:
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == set(EVENTS)


def test_the_prompts_are_those_of_the_bot(manifest: dict[str, Any]) -> None:
    prompts = manifest["features"]["agent_view"]["suggested_prompts"]
    assert prompts == [{"title": prompt.title.en, "message": prompt.message.en} for prompt in words().prompts]


def test_people_can_write_in_the_messages_tab(manifest: dict[str, Any]) -> None:
    home = manifest["features"]["app_home"]
    assert home["messages_tab_enabled"] is True
    assert home["messages_tab_read_only_enabled"] is False


async def _use_everything(online: FakeSlack, app: BotApp, settings: SlackSettings) -> None:
    await online.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    await online.says(ANNA, DIRECT, "can I share a GPU?")
    await online.emit({"type": "app_home_opened", "user": ANNA, "channel": DIRECT, "tab": "messages"})
    await app.drain()
    delivery = make_delivery(settings)
    await delivery.post(alert(), "en")
    await delivery.post(alert(), "en", maybe_posted=True)
    online.channels[ALERTS].kind = "private"
    await delivery.post(alert(), "en", maybe_posted=True)
    online.channels[GENERAL].bot_in = False
    await online.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    await app.drain()


async def test_the_scopes_are_enough_and_all_of_them_are_used(
    online: FakeSlack, app: BotApp, settings: SlackSettings, manifest: dict[str, Any]
) -> None:
    await _use_everything(online, app, settings)
    refused = [call for call in online.calls if call.answer and not call.answer["ok"]]
    assert refused == []
    # to hear events: app_mention and message.im
    used = online.used_scopes | {"app_mentions:read", "im:history"}
    assert used == set(manifest["oauth_config"]["scopes"]["bot"])


@pytest.mark.parametrize("scope", ["chat:write", "users:read", "assistant:write", "channels:history"])
async def test_the_stand_in_refuses_what_is_not_granted(
    online: FakeSlack, app: BotApp, settings: SlackSettings, scope: str
) -> None:
    """So that the test above can fail."""
    assert online.scopes is not None
    online.scopes = online.scopes - {scope} - ({"assistant:write"} if scope == "chat:write" else set())
    await online.says(ANNA, DIRECT, "can I share a GPU?")
    await online.emit({"type": "app_home_opened", "user": ANNA, "channel": DIRECT, "tab": "messages"})
    await app.drain()
    if scope == "channels:history":
        await make_delivery(settings).post(alert(), "en", maybe_posted=True)
    assert any(call.answer and call.answer.get("error") == "missing_scope" for call in online.calls)
