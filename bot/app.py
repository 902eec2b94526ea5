"""The Slack app: which events it hears and who answers them."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.response import BoltResponse

from bot.blocks.answer import HELPED, NOT_HELPED
from bot.client import make_client
from bot.listeners.feedback import Feedback
from bot.listeners.home import Home
from bot.listeners.questions import Questions
from bot.people import UserLanguages
from bot.port import Advisor
from bot.posting import Poster
from bot.settings import SlackSettings, SlackSettingsInvalid

log = logging.getLogger(__name__)

EVENTS = ("app_mention", "message.im", "app_home_opened")
"""Event subscriptions that the listeners need; ``manifest.yaml`` asks for exactly these."""


class BotApp(AsyncApp):
    """The Bolt app, with the settings it was built from and a way to wait for answers under way."""

    settings: SlackSettings
    tasks: set[asyncio.Task[None]]

    async def drain(self, timeout_seconds: float | None = None) -> None:
        """Wait until every question heard so far is answered; after ``timeout_seconds`` the rest is cancelled.

        Call it when the service stops, after it has ceased to take requests.
        """
        if self.tasks:
            _, late = await asyncio.wait(set(self.tasks), timeout=timeout_seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def run(self, work: Awaitable[None]) -> None:
        """Run ``work`` beside the acknowledgement; kept until it ends, so that it is neither lost nor forgotten."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


def build_app(advisor: Advisor, settings: SlackSettings, *, poster: Poster | None = None) -> BotApp:
    """The Slack app that answers with ``advisor``.

    Nothing is sent to Slack here or while an event is acknowledged, so the service starts, and takes events, also while
    Slack cannot be reached. Mount it with :func:`bot.http.events_endpoint` or connect it with
    :class:`bot.socket.SocketConnection`.

    Args:
        poster: posts the answers; made from ``settings`` when None.

    Raises:
        SlackSettingsInvalid: settings that cannot work.
    """
    settings.check()
    if not settings.bot_token:
        raise SlackSettingsInvalid("bot_token", "the bot needs one")
    client = make_client(settings)
    logger = logging.getLogger("bot.bolt")
    logger.setLevel(logging.WARNING)  # at INFO it writes whole requests
    # Bolt warns that a token, ours or one of the environment, is not used besides `authorize`; that is meant.
    logger.disabled = True
    try:
        app = BotApp(
            name="gpu-advisor",
            logger=logger,
            client=client,
            # never None: Bolt would look for a secret in the environment. Empty, the HTTP endpoint refuses to exist.
            signing_secret=settings.signing_secret or "",
            before_authorize=_remember_bot_user,
            authorize=_authorize(settings.bot_token),
            raise_error_for_unhandled_request=True,
            attaching_conversation_kwargs_enabled=False,
        )
    finally:
        logger.disabled = False
    app.settings = settings
    app.tasks = set()
    people = UserLanguages(client)
    poster = poster or Poster(client, max_retries=settings.max_retries)
    _listen(
        app,
        Questions(advisor, client, poster, people, settings.default_language),
        Home(client, people, settings.default_language),
        Feedback(advisor, client),
    )
    return app


def _listen(app: BotApp, questions: Questions, home: Home, feedback: Feedback) -> None:
    @app.event("app_mention")
    async def mentioned(event: dict[str, Any], body: dict[str, Any]) -> None:
        app.run(questions.handle(event, body.get("event_id")))

    @app.event("message")
    async def written(event: dict[str, Any], body: dict[str, Any]) -> None:
        # in channels only mentions are answered, and those come as app_mention
        if event.get("channel_type") == "im":
            app.run(questions.handle(event, body.get("event_id")))

    @app.event("app_home_opened")
    async def opened(event: dict[str, Any]) -> None:
        app.run(home.handle(event))

    @app.action(re.compile(f"^(?:{HELPED}|{NOT_HELPED})$"))
    async def clicked(ack: AsyncAck, action: dict[str, Any], body: dict[str, Any]) -> None:
        await ack()
        app.run(feedback.handle(action, body))

    @app.error
    async def failed(error: Exception, request: AsyncBoltRequest) -> BoltResponse | None:
        kind = _kind(request)
        if isinstance(error, BoltUnhandledRequestError):
            # acknowledged all the same: Slack would repeat it, and switch deliveries off in the end
            log.info("a Slack request that nobody handles was acknowledged: %s", kind)
            return BoltResponse(status=200, body="")
        log.error("a Slack request could not be handled: %s", kind, exc_info=error)
        return None


def _kind(request: AsyncBoltRequest) -> str:
    """Type of a request, for the log; never its content."""
    body: dict[str, Any] = request.body or {}
    event = body.get("event")
    inner = event.get("type") if isinstance(event, dict) else body.get("command")
    return "/".join(str(part) for part in (body.get("type"), inner) if part) or "unknown"


async def _remember_bot_user(
    body: dict[str, Any],
    context: AsyncBoltContext,
    next: Callable[[], Awaitable[None]],  # noqa: A002 - Bolt's name
) -> None:
    authorizations = body.get("authorizations")  # who of the app is meant; events carry it
    if isinstance(authorizations, list):
        ours = [item for item in authorizations if isinstance(item, dict) and item.get("is_bot")]
        context["gpu_advisor_bot_user"] = ours[0].get("user_id") if ours else None
    await next()


def _authorize(token: str) -> Callable[[AsyncBoltContext], Awaitable[AuthorizeResult]]:
    """Authorize by the payload alone.

    Bolt's own way calls ``auth.test`` before the first acknowledgement: while Slack is slow the event is late, and
    where Slack refuses, Bolt acknowledges the event and drops it.
    """

    async def authorize(context: AsyncBoltContext) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=context.enterprise_id,
            team_id=context.team_id,
            bot_user_id=context.get("gpu_advisor_bot_user"),
            bot_token=token,
        )

    return authorize
