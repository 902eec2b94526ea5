"""Slack settings: which mode they mean, what they refuse, and that they keep secrets."""

import msgspec
import pytest

from bot.app import build_app
from bot.http import events_endpoint
from bot.settings import SlackSettings, SlackSettingsInvalid
from bot.socket import SocketConnection
from bot.words import words
from rules.language import LANGUAGES
from tests.bot.doubles import FixedAdvisor

HTTP = SlackSettings(bot_token="xoxb-1", signing_secret="secret")
SOCKET = SlackSettings(bot_token="xoxb-1", app_token="xapp-1")


def test_the_tokens_decide_the_mode() -> None:
    assert (SlackSettings().mode, HTTP.mode, SOCKET.mode) == ("off", "http", "socket")


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        (SlackSettings(bot_token="xoxp-1", signing_secret="s"), "bot_token"),
        (SlackSettings(bot_token="xoxb-1", app_token="xoxb-1"), "app_token"),
        (SlackSettings(bot_token="xoxb-1"), "signing_secret"),
        (SlackSettings(alert_channel="C1"), "bot_token"),
        (SlackSettings(bot_token="xoxb-1", signing_secret="s", base_url="slack.com/api"), "base_url"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(settings: SlackSettings, setting: str) -> None:
    with pytest.raises(SlackSettingsInvalid) as caught:
        settings.check()
    assert caught.value.setting == setting
    assert "xoxp-1" not in str(caught.value)


def test_good_settings_pass() -> None:
    for settings in (SlackSettings(), HTTP, SOCKET):
        settings.check()


def test_secrets_are_not_shown() -> None:
    shown = repr(
        SlackSettings(bot_token="xoxb-secret", signing_secret="hush", app_token="xapp-secret", alert_channel="C1")
    )
    assert "xapp" not in shown
    assert "xoxb" not in shown
    assert "hush" not in shown
    assert "alert_channel='C1'" in shown


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="bot_tokn"):
        msgspec.convert({"bot_tokn": "xoxb-1"}, SlackSettings)


async def test_no_endpoint_exists_without_a_signing_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bolt would check signatures against an empty secret, which anybody can do."""
    monkeypatch.setenv("SLACK_SIGNING_SECRET", "from the environment")
    app = build_app(FixedAdvisor(), SOCKET)
    with pytest.raises(SlackSettingsInvalid, match="signing_secret"):
        events_endpoint(app)


def test_no_socket_exists_without_an_app_token() -> None:
    with pytest.raises(SlackSettingsInvalid, match="app_token"):
        SocketConnection(build_app(FixedAdvisor(), HTTP))


def test_building_warns_of_nothing(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    app = build_app(FixedAdvisor(), HTTP)
    assert app.client.token == "xoxb-1"
    assert caplog.records == []


def test_every_sentence_of_the_bot_keeps_its_place() -> None:
    """Titles of prompts are buttons (75 characters), there are at most four, and ten loading messages."""
    w = words()
    assert len(w.prompts) <= 4
    assert len(w.loading) <= 10
    for language in LANGUAGES:
        assert all(len(prompt.title.in_(language)) <= 75 for prompt in w.prompts)
        assert "{count}" in w.more.in_(language)
        assert "{count}" in w.open_findings.in_(language)
        assert "{detail}" in w.error_input.in_(language)
        assert "{date}" in w.price_as_of.in_(language)
        assert "{rule}" in w.rule_line.in_(language)
        assert "{time}" in w.rule_line.in_(language)
