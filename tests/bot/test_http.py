"""The endpoint in its ASGI surroundings."""

import json
import time

import httpx
import pytest
from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send

from bot.app import BotApp
from bot.http import MAX_BODY, events_endpoint
from tests.bot.conftest import ANNA, GENERAL, serving
from tests.fakes.slack import BOT_USER, FakeSlack


async def test_it_works_mounted_in_litestar_as_documented(slack: FakeSlack, app: BotApp) -> None:
    endpoint = events_endpoint(app)

    @asgi("/slack/events", is_mount=False, copy_scope=True)
    async def slack_events(scope: Scope, receive: Receive, send: Send) -> None:
        await endpoint(scope, receive, send)  # type: ignore[arg-type]

    async with serving(Litestar([slack_events])) as address:
        slack.events_url = f"{address}/slack/events"
        assert await slack.events.verify_url()
        ts = await slack.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
        await slack.until(lambda: slack.thread(GENERAL, ts))
        status, body, _ = await slack.events.send("{}", signature="v0=bad")
    assert (status, json.loads(body)) == (401, {"error": "invalid request"})


async def test_other_methods_and_huge_bodies_are_refused(online: FakeSlack) -> None:
    assert online.events_url is not None
    async with httpx.AsyncClient(trust_env=False) as client:
        got = await client.get(online.events_url)
        huge = await client.post(online.events_url, content=b"x" * (MAX_BODY + 1))
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert huge.status_code == 413


@pytest.mark.parametrize("body", [b"\xff\xfe", b"not json", b"[]", b"payload=%7B", b""])
async def test_nothing_unsigned_is_read(online: FakeSlack, caplog: pytest.LogCaptureFixture, body: bytes) -> None:
    assert online.events_url is not None
    async with httpx.AsyncClient(trust_env=False) as client:
        for content_type in ("application/json", "application/x-www-form-urlencoded"):
            answer = await client.post(online.events_url, content=body, headers={"Content-Type": content_type})
            assert answer.status_code == 401
        for timestamp, signature in (("soon", "v0=1"), (str(int(time.time())), "v0=\xe9"), ("", "")):
            headers = {
                b"X-Slack-Request-Timestamp": timestamp.encode(),
                b"X-Slack-Signature": signature.encode("latin-1"),
            }
            answer = await client.post(online.events_url, content=body, headers=headers)
            assert answer.status_code == 401
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize("body", ["not json", "[]", '{"event": null}', '{"event": []}', '{"authorizations": 5}'])
async def test_signed_nonsense_gets_an_error_and_the_next_event_its_answer(
    online: FakeSlack, app: BotApp, body: str
) -> None:
    status, _, _ = await online.events.send(body)
    assert status in (400, 500)
    ts = await online.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    await app.drain()
    assert len(online.thread(GENERAL, ts)) == 1


async def test_draining_gives_up_after_its_time(app: BotApp) -> None:
    import asyncio

    async def never() -> None:
        await asyncio.Event().wait()

    app.run(never())
    await app.drain(0.01)
    assert app.tasks == set()
