"""What the bot must be told to talk to Slack."""

from typing import Annotated, Literal

import msgspec

from rules.errors import InputInvalid
from rules.language import Language

Mode = Literal["off", "http", "socket"]

WEB_API = "https://slack.com/api/"


class SlackSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``slack:`` part of the settings. Secrets never appear in its ``repr``.

    Attributes:
        bot_token: ``xoxb-...`` of the installed app; None switches Slack off.
        signing_secret: checks that HTTP requests come from Slack; needed for HTTP mode.
        app_token: ``xapp-...`` with ``connections:write``; given, the bot uses Socket Mode and needs no public address.
        alert_channel: id (``C...``) or name of the channel for alerts; None posts no alerts.
        alert_language: language of alerts, which many people read at once.
        default_language: language of the bot's own sentences where neither question nor user tells one.
        base_url: of the Web API; another one only for tests, proxies and GovSlack.
        timeout_seconds: of one Web API call.
        message_interval_seconds: least time between two alert messages in one channel (Slack allows one a second).
        max_retries: how often a rate-limited or failed Web API call is tried again before it counts as failed.
    """

    bot_token: str | None = None
    signing_secret: str | None = None
    app_token: str | None = None
    alert_channel: str | None = None
    alert_language: Language = "en"
    default_language: Language = "en"
    base_url: str = WEB_API
    timeout_seconds: Annotated[int, msgspec.Meta(ge=1, le=120)] = 15
    message_interval_seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = 1.0
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 3

    @property
    def mode(self) -> Mode:
        """``off`` without a bot token, ``socket`` with an app token, else ``http``."""
        if not self.bot_token:
            return "off"
        return "socket" if self.app_token else "http"

    def check(self) -> None:
        """Refuse combinations that cannot work.

        Raises:
            SlackSettingsInvalid: names the setting and how to mend it; never quotes a secret.
        """
        if self.bot_token and not self.bot_token.startswith("xoxb-"):
            raise SlackSettingsInvalid("bot_token", "a bot token starts with xoxb- (Slack app > OAuth & Permissions)")
        if self.app_token and not self.app_token.startswith("xapp-"):
            raise SlackSettingsInvalid(
                "app_token", "an app-level token starts with xapp- (Slack app > Basic Information)"
            )
        if not self.bot_token and (self.app_token or self.signing_secret or self.alert_channel):
            raise SlackSettingsInvalid("bot_token", "it is needed as soon as any other Slack setting is given")
        if self.mode == "http" and not self.signing_secret:
            raise SlackSettingsInvalid(
                "signing_secret",
                "HTTP mode needs it (Slack app > Basic Information); for Socket Mode give app_token instead",
            )
        if not self.base_url.startswith(("https://", "http://")):
            raise SlackSettingsInvalid("base_url", "it must be an http:// or https:// address")

    def __repr__(self) -> str:
        secrets = ("bot_token", "signing_secret", "app_token")
        shown = {
            name: ("***" if name in secrets and getattr(self, name) else getattr(self, name))
            for name in self.__struct_fields__
        }
        return f"SlackSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class SlackSettingsInvalid(InputInvalid):
    """A Slack setting is missing or cannot be used.

    Args:
        setting: name of the setting.
        problem: what is wrong and how to mend it.
    """

    code = "slack-settings-invalid"

    def __init__(self, setting: str, problem: str) -> None:
        self.setting = setting
        super().__init__(f"slack.{setting}: {problem}")
