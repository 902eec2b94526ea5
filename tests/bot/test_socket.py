"""Conversations over Socket Mode."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from bot.app import build_app
from bot.settings import SlackSettings
from bot.socket import SocketConnection
from tests.bot.conftest import ANNA, DIRECT, GENERAL
from tests.bot.doubles import FixedAdvisor
from tests.fakes.slack import BOT_USER, FakeSlack


@pytest.fixture
async def connection(
    slack: FakeSlack, settings: SlackSettings, advisor: FixedAdvisor
) -> AsyncIterator[SocketConnection]:
    over_socket = msgspec.structs.replace(settings, signing_secret=None, app_token=slack.app_token)
    app = build_app(advisor, over_socket)
    made = SocketConnection(app, ping_interval_seconds=0.05, stuck_after_seconds=0.05)
    yield made
    await made.stop()


async def test_a_conversation_over_the_socket(
    slack: FakeSlack, connection: SocketConnection, advisor: FixedAdvisor
) -> None:
    await connection.start()
    await slack.until(lambda: slack.sockets.open)
    mentioned = slack.write(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    [delivery] = await slack.tell(mentioned, GENERAL)
    assert [attempt.status for attempt in delivery.attempts] == [200]
    assert delivery.attempts[0].seconds < 3
    await slack.until(lambda: slack.thread(GENERAL, mentioned["ts"]))
    direct = await slack.says(ANNA, DIRECT, "can I use MIG?")
    await slack.until(lambda: slack.thread(DIRECT, direct))
    assert [text for text, _ in advisor.asked] == ["can I share a GPU?", "can I use MIG?"]


async def test_it_comes_again_when_slack_asks_for_it(slack: FakeSlack, connection: SocketConnection) -> None:
    await connection.start()
    await slack.until(lambda: slack.sockets.connected == 1)
    await slack.sockets.disconnect()
    await slack.until(lambda: slack.sockets.connected == 2 and slack.sockets.open)
    ts = await slack.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    await slack.until(lambda: slack.thread(GENERAL, ts))


async def test_an_address_that_is_used_up_is_replaced(slack: FakeSlack, connection: SocketConnection) -> None:
    """The first handshake fails, which uses up its address; slack_sdk alone would try that address for ever."""
    slack.sockets.refuse = 1
    await connection.start()
    await slack.until(lambda: slack.sockets.open)
    assert len(slack.called("apps.connections.open")) >= 2


async def test_starting_works_while_slack_is_away_and_connects_when_it_is_back(
    settings: SlackSettings, advisor: FixedAdvisor, unused_tcp_port: int
) -> None:
    slack = FakeSlack()
    slack.port = unused_tcp_port
    away = msgspec.structs.replace(settings, base_url=slack.base_url, app_token=slack.app_token)
    connection = SocketConnection(build_app(advisor, away), ping_interval_seconds=0.05)
    await asyncio.wait_for(connection.start(), 1)
    assert not await connection.connected()
    async with slack:
        await slack.until(lambda: slack.sockets.open)
        await connection.stop()


async def test_stopping_waits_for_the_answer_under_way(slack: FakeSlack, connection: SocketConnection) -> None:
    await connection.start()
    await slack.until(lambda: slack.sockets.open)
    ts = await slack.says(ANNA, GENERAL, f"<@{BOT_USER}> can I share a GPU?")
    await connection.stop()
    assert len(slack.thread(GENERAL, ts)) == 1
    assert not await connection.connected()


async def test_stopping_while_connecting_leaves_nothing_behind(settings: SlackSettings, advisor: FixedAdvisor,
                                                               unused_tcp_port: int) -> None:  # fmt: skip
    away = msgspec.structs.replace(
        settings, base_url=f"http://127.0.0.1:{unused_tcp_port}/api/", app_token="xapp-loopback-app"
    )
    before = asyncio.all_tasks()
    connection = SocketConnection(build_app(advisor, away), ping_interval_seconds=0.05)
    await connection.start()
    await connection.stop()
    assert asyncio.all_tasks() == before
