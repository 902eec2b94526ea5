"""A question in Slack: a mention in a channel or a direct message, answered in its thread."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec
from slack_sdk.web.async_client import AsyncWebClient

from bot.blocks.answer import answer_message, help_message, sentence
from bot.blocks.message import Message
from bot.client import call
from bot.errors import DeliveryError
from bot.people import UserLanguages
from bot.port import Advisor, ClusterHealth
from bot.posting import Key, Poster
from bot.text import question
from bot.words import words
from rules.errors import InputInvalid, RemoteTrouble
from rules.language import Language
from rules.questions import read as read_question

log = logging.getLogger(__name__)

ANSWER = "gpu_advisor_answer"
READ_SUBTYPES = frozenset({None, "file_share", "thread_broadcast"})
"""Kinds of message that a person wrote; edits, deletions, joins and the messages of bots are others."""
STATUS_TIMEOUT_SECONDS = 3.0
HELP_WORDS: Mapping[str, Language] = {
    "help": "en", "hi": "en", "hello": "en", "hey": "en",
    "ayuda": "es", "hola": "es",
    "aiuto": "it", "ciao": "it",
}  # fmt: skip


class Asked(msgspec.Struct, frozen=True):
    """What is needed of a Slack event to answer it.

    Attributes:
        id: the same for every delivery of the event.
        text: cleaned question; empty when there is none.
        thread_ts: where the answer goes.
        files: the message carries files, which the bot cannot read.
    """

    id: str
    channel: str
    user: str | None
    text: str
    thread_ts: str
    files: bool


def read(event: Mapping[str, Any], event_id: str | None) -> Asked | None:
    """The question in a message event; None when it is not for the bot to answer."""
    channel, ts = event.get("channel"), event.get("ts")
    if not channel or not ts or event.get("subtype") not in READ_SUBTYPES:
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("edited") or event.get("hidden"):
        return None
    return Asked(
        id=event_id or f"{channel}:{ts}",
        channel=str(channel),
        user=event.get("user"),
        text=question(str(event.get("text") or "")),
        thread_ts=str(event.get("thread_ts") or ts),
        files=bool(event.get("files")),
    )


class Questions:
    """Answers questions.

    Every question is answered once, however often Slack delivers it, and every trouble ends in one polite sentence.
    """

    def __init__(
        self,
        advisor: Advisor,
        client: AsyncWebClient,
        poster: Poster,
        people: UserLanguages,
        default_language: Language,
    ) -> None:
        self._advisor = advisor
        self._client = client
        self._poster = poster
        self._people = people
        self._default = default_language

    async def handle(self, event: Mapping[str, Any], event_id: str | None) -> None:
        """Answer the message of an event, if it is a question to the bot. Raises nothing but cancellation."""
        asked = read(event, event_id)
        if asked is None:
            return
        try:
            if not await self._advisor.claim_event(asked.id):
                log.info("event %s was delivered before and is not answered again", asked.id)
                return
        except Exception:
            # twice is better than never
            log.exception("cannot tell whether event %s was delivered before, answering it", asked.id)
        language: Language | None = None
        try:
            language = await self._people.of(asked.user)
            message = await self._with_status(asked, language or self._default, self._reply(asked, language))
        except Exception as error:
            log.exception("no answer to event %s", asked.id)
            message = sentence(apology(error, self._language(asked.text, language)))
        try:
            await self._poster.post(asked.channel, message, Key(ANSWER, asked.id), thread_ts=asked.thread_ts)
        except Exception:
            log.exception("the answer to event %s could not be posted", asked.id)

    def _language(self, text: str, hint: Language | None) -> Language:
        """Language of a question that got no answer, which would have told it."""
        try:
            return read_question(text, hint or self._default).language.language
        except Exception:
            log.exception("the language of a question could not be told")
            return hint or self._default

    async def _reply(self, asked: Asked, language: Language | None) -> Message:
        if not asked.text and asked.files:
            return sentence(words().files_unread.in_(language or self._default))
        greeting = asked.text.casefold().strip(" ?!¿¡.,")
        if not greeting or greeting in HELP_WORDS:
            spoken = HELP_WORDS.get(greeting) or language
            return help_message((spoken,) if spoken else (), await self._clusters())
        conversation = f"{asked.channel}:{asked.thread_ts}"
        return answer_message(await self._advisor.ask(asked.text, language=language, conversation=conversation))

    async def _clusters(self) -> list[ClusterHealth]:
        try:
            return list(await self._advisor.clusters())
        except Exception:
            log.exception("help is shown without the clusters")
            return []

    async def _with_status(self, asked: Asked, language: Language, work: Awaitable[Message]) -> Message:
        """The result of ``work``, with a status under the thread meanwhile; Slack clears it when the answer comes."""
        status = asyncio.ensure_future(self._set_status(asked, language))
        try:
            message = await work
        except BaseException:
            status.cancel()
            await asyncio.wait([status])
            raise
        # a status that arrives after the answer would stay for two minutes
        await asyncio.wait([status])
        return message

    async def _set_status(self, asked: Asked, language: Language) -> None:
        try:
            async with asyncio.timeout(STATUS_TIMEOUT_SECONDS):
                await call(
                    self._client.assistant_threads_setStatus(
                        channel_id=asked.channel,
                        thread_ts=asked.thread_ts,
                        status=words().status.in_(language),
                        loading_messages=[text.in_(language) for text in words().loading],
                    )
                )
        except (DeliveryError, TimeoutError) as error:
            log.info("no status is shown: %s", str(error) or "time-out")


def apology(error: Exception, language: Language) -> str:
    """One polite sentence about an error; only what the caller can mend is quoted."""
    w = words()
    if isinstance(error, InputInvalid):
        return w.error_input.in_(language).format(detail=str(error))
    if isinstance(error, RemoteTrouble):
        return w.error_remote.in_(language)
    return w.error.in_(language)
