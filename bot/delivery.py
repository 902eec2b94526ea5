"""Alerts in Slack: one message per alert, edited when the alert changes."""

import asyncio
import logging

from slack_sdk.web.async_client import AsyncWebClient

from bot.blocks.alert import alert_message
from bot.client import make_client
from bot.errors import DeliveryPermanent, DeliveryTemporary
from bot.port import AlertView, MessageRef
from bot.posting import Key, Poster
from bot.settings import SlackSettings, SlackSettingsInvalid
from rules.language import Language

log = logging.getLogger(__name__)

ALERT = "gpu_advisor_alert"
GONE = frozenset({"message_not_found", "edit_window_closed", "cant_update_message", "channel_not_found", "is_archived"})
"""Answers to an update after which the alert is posted anew."""


class SlackDelivery:
    """Posts alerts to one channel.

    Safe to use from several tasks. Failures are typed: :class:`~bot.errors.DeliveryTemporary` (with ``retry_after``)
    means try again later, :class:`~bot.errors.DeliveryPermanent` means someone must act, and its message says how.

    Args:
        client: see :func:`bot.client.make_client`.
        channel: id of the channel (a name works too, but then a lost answer cannot be looked up).
        poster: for another pace or clock; made from ``client`` when None.
    """

    def __init__(self, client: AsyncWebClient, channel: str, *, poster: Poster | None = None) -> None:
        self._channel = channel
        self._poster = poster or Poster(client)
        self._unsure: set[str] = set()

    async def post(self, alert: AlertView, language: Language, *, maybe_posted: bool = False) -> MessageRef:
        """Post an alert in its present state.

        Args:
            maybe_posted: an earlier attempt may have succeeded without its answer being kept (for example the process
                ended in between); the channel is searched first. Attempts of this object are remembered anyway.

        Raises:
            DeliveryTemporary, DeliveryPermanent: see the class.
        """
        return await self._post(alert, language, maybe_posted=maybe_posted)

    async def _post(
        self, alert: AlertView, language: Language, *, maybe_posted: bool = False, besides: MessageRef | None = None
    ) -> MessageRef:
        unsure = maybe_posted or alert.id in self._unsure
        try:
            ref = await self._poster.post(
                self._channel,
                alert_message(alert, language),
                Key(ALERT, alert.id),
                since=alert.opened_at,
                besides=besides,
                maybe_posted=unsure,
                paced=True,
            )
        except DeliveryTemporary as error:
            if error.outcome_unknown:
                self._unsure.add(alert.id)
            raise
        except asyncio.CancelledError:
            self._unsure.add(alert.id)
            raise
        self._unsure.discard(alert.id)
        self._channel = ref.channel  # an id even where the settings hold a name: only ids can be searched
        return ref

    async def update(self, ref: MessageRef, alert: AlertView, language: Language) -> MessageRef:
        """Bring a posted alert up to date; returns where it is now.

        A message that is gone or can no longer be edited is posted anew. Raises as :meth:`post` does.
        """
        try:
            return await self._poster.update(ref, alert_message(alert, language), Key(ALERT, alert.id), paced=True)
        except DeliveryPermanent as error:
            if error.reason not in GONE:
                raise
            log.info("alert %s is posted anew: its message cannot be edited (%s)", alert.id, error.reason)
        return await self._post(alert, language, besides=ref)


def make_delivery(settings: SlackSettings) -> SlackDelivery:
    """The delivery that ``settings`` describe.

    Raises:
        SlackSettingsInvalid: no token or no alert channel is set.
    """
    if not settings.bot_token or not settings.alert_channel:
        raise SlackSettingsInvalid("alert_channel", "alerts need bot_token and alert_channel")
    client = make_client(settings)
    poster = Poster(client, max_retries=settings.max_retries, interval_seconds=settings.message_interval_seconds)
    return SlackDelivery(client, settings.alert_channel, poster=poster)
