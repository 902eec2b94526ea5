"""Errors of talking to Slack.

The tree::

    RemoteTrouble
    └── DeliveryError
        ├── DeliveryTemporary   try again later
        └── DeliveryPermanent   trying again changes nothing; someone must act
"""

from rules.errors import RemoteTrouble

HINTS = {
    "channel_not_found": "the channel does not exist, or is private and the bot is not in it (/invite it there)",
    "not_in_channel": "the bot is not in the channel (/invite it there, or grant the scope chat:write.public)",
    "is_archived": "the channel is archived; choose another one in slack.alert_channel",
    "invalid_auth": "Slack refuses the bot token; check slack.bot_token",
    "not_authed": "no bot token was sent; check slack.bot_token",
    "account_inactive": "the bot token belongs to a deleted user or workspace; install the app again",
    "token_revoked": "the bot token was revoked; install the app again",
    "token_expired": "the bot token has expired; install the app again",
    "missing_scope": "the app lacks a scope; compare it with bot/manifest.yaml and install it again",
    "restricted_action": "a workspace setting forbids posting there",
}


class DeliveryError(RemoteTrouble):
    """A message could not be delivered.

    Attributes:
        reason: Slack's error code, or ``http-503``, ``timeout``, ``connection``.
    """

    code = "slack-delivery-failed"

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        said = "; ".join(part for part in (HINTS.get(reason, ""), detail) if part)
        super().__init__(f"Slack: {reason}" + (f" ({said})" if said else ""))


class DeliveryTemporary(DeliveryError):
    """It may work later.

    Attributes:
        retry_after: seconds to wait, where Slack said so or the attempts suggest it.
        outcome_unknown: the message may have been posted although no answer came; look before posting again.
    """

    code = "slack-delivery-temporary"

    def __init__(
        self, reason: str, detail: str = "", *, retry_after: float | None = None, outcome_unknown: bool = False
    ) -> None:
        super().__init__(reason, detail)
        self.retry_after = retry_after
        self.outcome_unknown = outcome_unknown


class DeliveryPermanent(DeliveryError):
    """It will not work until someone changes something; the message says what."""

    code = "slack-delivery-permanent"
