"""Feedback buttons: shown under answers on record, recorded once per person, thanked for in the answer's language."""

import msgspec
import pytest

from bot.app import BotApp, build_app
from bot.blocks.answer import HELPED, NOT_HELPED, answer_message
from bot.settings import SlackSettings
from bot.socket import SocketConnection
from bot.words import words
from rules.answers import Answer
from rules.errors import RemoteTrouble
from rules.language import LANGUAGES, Language
from tests.bot.conftest import ANNA, CARMEN, GENERAL
from tests.bot.doubles import FixedAdvisor, sharing_answer
from tests.fakes.slack import BOT_USER, FakeSlack, Message

QUESTION = f"<@{BOT_USER}> can I run more than one workload per GPU?"


def on_record(language: Language = "en", id_: str = "answer-1") -> Answer:
    return msgspec.structs.replace(sharing_answer(language), id=id_)


async def answered(online: FakeSlack) -> Message:
    ts = await online.says(ANNA, GENERAL, QUESTION)
    thread: list[Message] = await online.until(lambda: online.thread(GENERAL, ts))
    return thread[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_on_record_ends_with_two_buttons_in_its_language(language: Language) -> None:
    last = answer_message(on_record(language)).blocks[-1]
    assert last["type"] == "actions"
    labels = [element["text"]["text"] for element in last["elements"]]
    assert labels == [words().helped.in_(language), words().not_helped.in_(language)]


def test_an_answer_that_is_not_on_record_has_none() -> None:
    assert all(block["type"] != "actions" for block in answer_message(sharing_answer("en")).blocks)


async def test_a_click_is_recorded_and_thanked_for_where_only_that_person_sees_it(
    online: FakeSlack, advisor: FixedAdvisor, app: BotApp
) -> None:
    advisor.answer = on_record("es")
    message = await answered(online)
    delivery = await online.clicks(ANNA, GENERAL, message, NOT_HELPED)
    assert delivery.acknowledged
    assert delivery.attempts[0].seconds < 3
    await app.drain()
    assert advisor.feedbacks == [("answer-1", False)]
    [told] = online.ephemerals
    assert (told["user"], told["channel"], told["text"]) == (ANNA, GENERAL, words().feedback_thanks.es)


async def test_a_person_counts_once_and_another_counts_too(
    online: FakeSlack, advisor: FixedAdvisor, app: BotApp
) -> None:
    advisor.answer = on_record()
    message = await answered(online)
    for user in (ANNA, ANNA, CARMEN):
        await online.clicks(user, GENERAL, message, HELPED)
        await app.drain()
    assert advisor.feedbacks == [("answer-1", True), ("answer-1", True)]
    assert not any(ANNA in event for event in advisor.claimed if event.startswith("feedback:"))


async def test_an_answer_that_is_gone_is_said_politely(online: FakeSlack, advisor: FixedAdvisor, app: BotApp) -> None:
    advisor.answer = on_record("it", "gone")
    message = await answered(online)
    await online.clicks(ANNA, GENERAL, message, HELPED)
    await app.drain()
    assert [told["text"] for told in online.ephemerals] == [words().feedback_gone.it]


async def test_trouble_ends_in_one_polite_sentence(online: FakeSlack, advisor: FixedAdvisor, app: BotApp) -> None:
    advisor.answer = on_record()
    message = await answered(online)
    advisor.error = RemoteTrouble("the database is away")
    assert (await online.clicks(ANNA, GENERAL, message, HELPED)).acknowledged
    await app.drain()
    assert [told["text"] for told in online.ephemerals] == [words().error.en]


async def test_a_click_over_the_socket(slack: FakeSlack, settings: SlackSettings, advisor: FixedAdvisor) -> None:
    advisor.answer = on_record()
    app = build_app(advisor, msgspec.structs.replace(settings, signing_secret=None, app_token=slack.app_token))
    connection = SocketConnection(app, ping_interval_seconds=0.05)
    await connection.start()
    try:
        await slack.until(lambda: slack.sockets.open)
        message = await answered(slack)
        assert (await slack.clicks(ANNA, GENERAL, message, HELPED)).acknowledged
        await slack.until(lambda: slack.ephemerals)
        assert advisor.feedbacks == [("answer-1", True)]
    finally:
        await connection.stop()


async def test_questions_of_one_thread_are_one_conversation(online: FakeSlack, advisor: FixedAdvisor) -> None:
    root = await online.says(ANNA, GENERAL, QUESTION)
    await online.until(lambda: online.thread(GENERAL, root))
    await online.says(ANNA, GENERAL, f"<@{BOT_USER}> and on GKE?", thread_ts=root)
    await online.until(lambda: len(online.thread(GENERAL, root)) == 2)
    await online.says(ANNA, GENERAL, QUESTION)
    await online.until(lambda: len(advisor.conversations) == 3)
    first, second, third = advisor.conversations
    assert first == second
    assert first != third
