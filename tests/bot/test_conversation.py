"""Whole conversations: signed event over HTTP -> bot -> answer in the thread, as Slack would see it."""

import asyncio
import json
import time

import msgspec
import pytest

from bot.app import BotApp, build_app
from bot.blocks.answer import help_message
from bot.client import make_client
from bot.http import events_endpoint
from bot.posting import Poster
from bot.settings import SlackSettings
from bot.words import words
from rules.errors import InputInvalid, RemoteTrouble
from rules.language import Language
from tests.bot.conftest import ANNA, CARMEN, DIRECT, GENERAL, GIULIA, FakeTime, serving
from tests.bot.doubles import FixedAdvisor
from tests.fakes.slack import BOT, BOT_USER, FakeSlack

QUESTION = f"<@{BOT_USER}> can I run *more than one* workload per GPU?"


async def test_a_mention_is_answered_in_its_thread(online: FakeSlack, advisor: FixedAdvisor) -> None:
    ts = await online.says(ANNA, GENERAL, QUESTION)
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert advisor.asked == [("can I run more than one workload per GPU?", "en")]
    assert answer["text"].startswith("Yes: with *time-slicing*, MPS or MIG.")
    assert answer["blocks"][0]["text"]["text"].startswith("Yes: with *time-slicing*")
    assert answer["unfurl_links"] is False


async def test_the_event_is_acknowledged_before_the_answer_is_there(
    online: FakeSlack, advisor: FixedAdvisor, app: BotApp
) -> None:
    release = asyncio.Event()
    ask = advisor.ask

    async def slow(text: str, *, language: Language | None = None) -> object:
        await release.wait()
        return await ask(text, language=language)

    advisor.ask = slow  # type: ignore[assignment, method-assign]
    message = online.write(ANNA, GENERAL, QUESTION)
    [delivery] = await online.tell(message, GENERAL)
    assert [attempt.status for attempt in delivery.attempts] == [200]
    assert delivery.attempts[0].seconds < 3
    assert online.thread(GENERAL, message["ts"]) == []
    release.set()
    await online.until(lambda: online.thread(GENERAL, message["ts"]))


async def test_a_mention_within_a_thread_is_answered_in_that_thread(online: FakeSlack) -> None:
    root = online.write(ANNA, GENERAL, "the GPUs are slow today")["ts"]
    await online.says(CARMEN, GENERAL, QUESTION, thread_ts=root)
    assert len(await online.until(lambda: online.thread(GENERAL, root))) == 1


async def test_a_direct_message_and_its_follow_up_are_answered_in_one_thread(
    online: FakeSlack, advisor: FixedAdvisor
) -> None:
    ts = await online.says(ANNA, DIRECT, "can I share a GPU?")
    await online.until(lambda: len(online.thread(DIRECT, ts)) == 1)
    await online.says(ANNA, DIRECT, "and can I with MIG?", thread_ts=ts)
    await online.until(lambda: len(online.thread(DIRECT, ts)) == 2)
    assert [text for text, _ in advisor.asked] == ["can I share a GPU?", "and can I with MIG?"]


async def test_talk_in_a_channel_without_a_mention_is_left_alone(
    online: FakeSlack, advisor: FixedAdvisor, app: BotApp
) -> None:
    online.subscriptions = None
    ts = await online.says(ANNA, GENERAL, QUESTION)
    await online.until(lambda: online.thread(GENERAL, ts))
    follow_up = online.write(ANNA, GENERAL, "can I share a GPU?", thread_ts=ts)
    delivery = await online.emit({**follow_up, "channel": GENERAL, "channel_type": "channel"})
    await app.drain()
    assert delivery.acknowledged
    assert len(advisor.asked) == 1


@pytest.mark.parametrize(
    ("user", "question", "expected"),
    [
        (ANNA, "can I run more than one workload per GPU?", "en"),
        (ANNA, "¿puedo ejecutar más de una carga por GPU?", "es"),
        (ANNA, "posso eseguire più di un carico per GPU?", "it"),
        (CARMEN, "MIG?", "es"),
        (GIULIA, "MIG?", "it"),
    ],
)
async def test_the_answer_is_in_the_language_of_the_question_or_of_the_user(
    online: FakeSlack, user: str, question: str, expected: Language
) -> None:
    ts = await online.says(user, GENERAL, f"<@{BOT_USER}> {question}")
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    titles = {"en": "You can also ask", "es": "También puedes preguntar", "it": "Puoi anche chiedere"}
    assert titles[expected] in json.dumps(answer["blocks"], ensure_ascii=False)


async def test_the_language_of_a_user_is_asked_once(online: FakeSlack, app: BotApp) -> None:
    for _ in range(3):
        ts = await online.says(CARMEN, GENERAL, QUESTION)
        await app.drain()
        assert online.thread(GENERAL, ts)
    assert len(online.called("users.info")) == 1


async def test_a_repeated_delivery_is_answered_once(online: FakeSlack, advisor: FixedAdvisor, app: BotApp) -> None:
    message = online.write(ANNA, GENERAL, QUESTION)
    event = {**message, "type": "app_mention", "channel": GENERAL, "event_ts": message["ts"]}
    for _ in range(3):
        assert (await online.emit(event, event_id="Ev0SAME")).acknowledged
    await app.drain()
    assert len(online.thread(GENERAL, message["ts"])) == 1
    assert len(advisor.asked) == 1


async def test_the_question_is_answered_when_repeats_cannot_be_told(
    online: FakeSlack, advisor: FixedAdvisor, caplog: pytest.LogCaptureFixture
) -> None:
    advisor.claim_error = RuntimeError("database is locked")
    ts = await online.says(ANNA, GENERAL, QUESTION)
    assert await online.until(lambda: online.thread(GENERAL, ts))
    assert "database is locked" in caplog.text


async def test_slack_repeats_what_was_not_acknowledged_and_gets_one_answer(
    slack: FakeSlack, app: BotApp, advisor: FixedAdvisor
) -> None:
    """The service answers 503 twice (a rolling update), then takes the event."""
    inner, refused = events_endpoint(app), 0
    slept: list[float] = []

    async def flaky(scope: object, receive: object, send: object) -> None:
        nonlocal refused
        if refused < 2:
            refused += 1
            await send({"type": "http.response.start", "status": 503, "headers": []})  # type: ignore[operator]
            await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]
            return
        await inner(scope, receive, send)  # type: ignore[arg-type]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    slack.events.sleep = sleep
    async with serving(flaky) as address:
        slack.events_url = address
        message = slack.write(ANNA, GENERAL, QUESTION)
        [delivery] = await slack.tell(message, GENERAL)
        await app.drain()
    assert [attempt.status for attempt in delivery.attempts] == [503, 503, 200]
    assert slept == [0.0, 60.0]
    assert len(slack.thread(GENERAL, message["ts"])) == 1


async def test_a_wrong_signature_gets_401_and_no_answer(online: FakeSlack, advisor: FixedAdvisor, app: BotApp) -> None:
    event = {"type": "app_mention", "channel": GENERAL, "user": ANNA, "text": QUESTION, "ts": "1.000001"}
    body = json.dumps(online.events.payload(event))
    status, _, _ = await online.events.send(body, signature="v0=" + "0" * 64)
    tampered, _, _ = await online.events.send(body + " ", signature=online.events.sign(body, int(time.time())))
    unsigned, _, _ = await online.events.send(body, signature="")
    await app.drain()
    assert (status, tampered, unsigned) == (401, 401, 401)
    assert advisor.asked == []


async def test_an_old_time_stamp_gets_401_although_it_is_signed(online: FakeSlack, advisor: FixedAdvisor) -> None:
    event = {"type": "app_mention", "channel": GENERAL, "user": ANNA, "text": QUESTION, "ts": "1.000001"}
    status, _, _ = await online.events.send(json.dumps(online.events.payload(event)), timestamp=int(time.time()) - 301)
    assert status == 401
    assert advisor.asked == []


async def test_the_url_handshake_of_slack_works(online: FakeSlack) -> None:
    assert await online.events.verify_url()


@pytest.mark.parametrize(
    "change",
    [
        {"bot_id": BOT, "user": BOT_USER},
        {"bot_id": "B0OTHER", "subtype": "bot_message"},
        {"bot_id": "B0OTHER", "user": "U0OTHERBOT"},
        {"user": BOT_USER},
        {"subtype": "message_changed", "message": {"text": "new"}, "previous_message": {"text": "old"}},
        {"subtype": "message_deleted", "deleted_ts": "1.000001", "hidden": True},
        {"subtype": "channel_join"},
        {"edited": {"user": ANNA, "ts": "2.000001"}},
    ],
    ids=["self", "bot message", "another bot", "own user", "edit", "deletion", "join", "edited mention"],
)
async def test_what_no_person_asks_is_acknowledged_and_left_alone(
    online: FakeSlack, advisor: FixedAdvisor, app: BotApp, change: dict[str, object]
) -> None:
    event = {"type": "message", "channel": DIRECT, "channel_type": "im", "user": ANNA, "text": "hi", "ts": "1.000001"}
    delivery = await online.emit({**event, **change})
    await app.drain()
    assert delivery.acknowledged
    assert advisor.asked == []
    assert online.called("chat.postMessage") == []


async def test_events_nobody_handles_are_acknowledged(online: FakeSlack) -> None:
    online.subscriptions = None
    delivery = await online.emit({"type": "reaction_added", "user": ANNA, "reaction": "eyes", "item": {}})
    assert [attempt.status for attempt in delivery.attempts] == [200]


async def test_commands_and_buttons_nobody_handles_are_acknowledged(online: FakeSlack) -> None:
    form = "application/x-www-form-urlencoded"
    command, _, _ = await online.events.send(
        "command=%2Fgpu&text=idle&user_id=U0ANNA&team_id=T0TEAM", content_type=form
    )
    action = '{"type":"block_actions","actions":[{"action_id":"x"}],"user":{"id":"U0ANNA"}}'
    button, _, _ = await online.events.send(f"payload={action}", content_type=form)
    assert (command, button) == (200, 200)


async def test_an_empty_mention_gets_help_in_the_language_of_the_user(online: FakeSlack, advisor: FixedAdvisor) -> None:
    ts = await online.says(CARMEN, GENERAL, f"<@{BOT_USER}>  ")
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert "¿Puedo ejecutar más de una carga de trabajo por GPU?" in answer["text"]
    assert "Can I run" not in answer["text"]
    assert advisor.asked == []


async def test_help_comes_in_three_languages_where_the_user_reads_none_of_them(online: FakeSlack) -> None:
    online.add_user("U0JULES", locale="fr-FR")
    ts = await online.says("U0JULES", GENERAL, f"<@{BOT_USER}> ?")
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert answer["text"] == help_message(()).text
    for title in (words().help_title.en, words().help_title.es, words().help_title.it):
        assert title in answer["text"]


async def test_the_word_for_help_decides_its_language(online: FakeSlack) -> None:
    ts = await online.says(ANNA, GENERAL, f"<@{BOT_USER}> ¡Ayuda!")
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert answer["text"] == help_message(("es",)).text


async def test_a_status_is_shown_while_the_question_is_worked_on(online: FakeSlack) -> None:
    ts = await online.says(GIULIA, GENERAL, f"<@{BOT_USER}> posso condividere una GPU?")
    await online.until(lambda: online.thread(GENERAL, ts))
    [status] = online.statuses
    assert (status["channel_id"], status["thread_ts"]) == (GENERAL, ts)
    assert status["status"] == words().status.it
    order = [call.method for call in online.calls]
    assert order.index("assistant.threads.setStatus") < order.index("chat.postMessage")


async def test_trouble_with_the_status_does_not_stop_the_answer(online: FakeSlack) -> None:
    online.fail("assistant.threads.setStatus", status=500)
    ts = await online.says(ANNA, GENERAL, QUESTION)
    assert await online.until(lambda: online.thread(GENERAL, ts))


async def test_trouble_with_the_language_of_the_user_does_not_stop_the_answer(online: FakeSlack) -> None:
    online.fail("users.info", error="user_not_found")
    ts = await online.says(ANNA, GENERAL, QUESTION)
    assert await online.until(lambda: online.thread(GENERAL, ts))


@pytest.mark.parametrize(
    ("error", "user", "expected"),
    [
        (RuntimeError("password=hunter2"), ANNA, words().error.en),
        (RuntimeError("boom"), CARMEN, words().error.en),
        (RemoteTrouble("cluster away"), GIULIA, words().error_remote.en),
        (InputInvalid("line 3: expected a List"), ANNA, "I could not read that: line 3: expected a List"),
    ],
)
async def test_an_error_becomes_one_polite_sentence_and_is_logged(
    online: FakeSlack,
    advisor: FixedAdvisor,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    user: str,
    expected: str,
) -> None:
    advisor.error = error
    ts = await online.says(user, GENERAL, QUESTION)
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert answer["text"] == expected
    assert str(error) in caplog.text


@pytest.mark.parametrize(
    ("question", "user", "expected"),
    [
        ("¿puedo ejecutar más de una carga por GPU?", ANNA, words().error.es),
        ("posso eseguire più di un carico per GPU?", ANNA, words().error.it),
        ("MIG?", CARMEN, words().error.es),
    ],
)
async def test_an_error_is_told_in_the_language_of_the_question_or_of_the_user(
    online: FakeSlack, advisor: FixedAdvisor, question: str, user: str, expected: str
) -> None:
    advisor.error = RuntimeError("boom")
    ts = await online.says(user, GENERAL, f"<@{BOT_USER}> {question}")
    [answer] = await online.until(lambda: online.thread(GENERAL, ts))
    assert answer["text"] == expected


async def test_an_answer_that_cannot_be_posted_is_logged_and_the_next_question_answered(
    online: FakeSlack, app: BotApp, caplog: pytest.LogCaptureFixture
) -> None:
    online.fail("chat.postMessage", error="restricted_action")
    await online.says(ANNA, GENERAL, QUESTION)
    await app.drain()
    assert "restricted_action" in caplog.text
    ts = await online.says(ANNA, GENERAL, QUESTION)
    assert await online.until(lambda: online.thread(GENERAL, ts))


async def test_a_rate_limited_answer_comes_after_the_wait(
    slack: FakeSlack, settings: SlackSettings, advisor: FixedAdvisor, fake_time: FakeTime
) -> None:
    poster = Poster(make_client(settings), clock=fake_time, sleep=fake_time.sleep)
    app = build_app(advisor, settings, poster=poster)
    slack.fail("chat.postMessage", status=429, retry_after=12)
    async with serving(events_endpoint(app)) as address:
        slack.events_url = address
        ts = await slack.says(ANNA, GENERAL, QUESTION)
        await app.drain()
    assert fake_time.slept == [12.0]
    assert len(slack.thread(GENERAL, ts)) == 1


async def test_an_answer_whose_receipt_was_lost_is_not_posted_twice(
    slack: FakeSlack, settings: SlackSettings, advisor: FixedAdvisor, fake_time: FakeTime
) -> None:
    poster = Poster(make_client(settings), clock=fake_time, sleep=fake_time.sleep)
    app = build_app(advisor, settings, poster=poster)
    slack.fail("chat.postMessage", status=502, body="<html>Bad Gateway</html>", applied=True)
    async with serving(events_endpoint(app)) as address:
        slack.events_url = address
        ts = await slack.says(ANNA, GENERAL, QUESTION)
        await app.drain()
    assert len(slack.thread(GENERAL, ts)) == 1
    assert len(slack.called("conversations.replies")) == 1


async def test_a_file_without_text_gets_told_that_files_are_not_read(online: FakeSlack, advisor: FixedAdvisor) -> None:
    ts = await online.says(ANNA, DIRECT, "", subtype="file_share", files=[{"id": "F1", "name": "log.txt"}])
    [answer] = await online.until(lambda: online.thread(DIRECT, ts))
    assert answer["text"] == words().files_unread.en
    assert advisor.asked == []


async def test_opening_the_messages_tab_suggests_prompts_in_the_language_of_the_user(
    online: FakeSlack, app: BotApp
) -> None:
    await online.emit({"type": "app_home_opened", "user": CARMEN, "channel": DIRECT, "tab": "messages"})
    await app.drain()
    [prompts] = online.prompts
    assert prompts["prompts"][0]["message"] == "¿Vienen preinstalados los controladores de GPU en los nodos?"
    assert "thread_ts" not in prompts


async def test_opening_another_tab_suggests_nothing(online: FakeSlack, app: BotApp) -> None:
    await online.emit({"type": "app_home_opened", "user": CARMEN, "channel": DIRECT, "tab": "home"})
    await app.drain()
    assert online.prompts == []


async def test_events_are_acknowledged_while_slack_cannot_be_reached(
    slack: FakeSlack, settings: SlackSettings, advisor: FixedAdvisor, unused_tcp_port: int
) -> None:
    away = msgspec.structs.replace(settings, base_url=f"http://127.0.0.1:{unused_tcp_port}/api/", max_retries=0)
    app = build_app(advisor, away)
    async with serving(events_endpoint(app)) as address:
        slack.events_url = address
        message = slack.write(ANNA, GENERAL, QUESTION)
        [delivery] = await slack.tell(message, GENERAL)
        await app.drain()
    assert [attempt.status for attempt in delivery.attempts] == [200]
    assert len(advisor.asked) == 1
