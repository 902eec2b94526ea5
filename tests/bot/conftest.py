"""A loopback Slack, the bot built on a fixed advisor, and a real HTTP server around it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml

import bot
from bot.app import BotApp, build_app
from bot.http import events_endpoint
from bot.settings import SlackSettings
from tests.bot.doubles import FixedAdvisor
from tests.fakes.slack import FakeSlack

ANNA, CARMEN, GIULIA = "U0ANNA", "U0CARMEN", "U0GIULIA"
GENERAL, DIRECT, ALERTS = "C0GENERAL", "D0ANNA", "C0ALERTS"


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application over HTTP; gives its address."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # now, so that the first request waits for the server instead of being refused
    config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()


@pytest.fixture
def manifest() -> dict[str, Any]:
    file = Path(bot.__file__).parent / "manifest.yaml"
    document: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return document


@pytest.fixture
async def slack(manifest: dict[str, Any]) -> AsyncIterator[FakeSlack]:
    """A workspace that grants and sends what the manifest asks for, no more."""
    fake = FakeSlack(
        scopes=frozenset(manifest["oauth_config"]["scopes"]["bot"]),
        subscriptions=frozenset(manifest["settings"]["event_subscriptions"]["bot_events"]),
    )
    fake.add_user(ANNA, locale="en-GB")
    fake.add_user(CARMEN, locale="es-LA")
    fake.add_user(GIULIA, locale="it-IT")
    fake.add_channel(GENERAL, "general")
    fake.add_channel(ALERTS, "gpu-alerts")
    fake.add_channel(DIRECT, "anna", kind="im")
    async with fake:
        yield fake


@pytest.fixture
def advisor() -> FixedAdvisor:
    return FixedAdvisor()


@pytest.fixture
def settings(slack: FakeSlack) -> SlackSettings:
    return SlackSettings(
        bot_token=slack.bot_token,
        signing_secret=slack.signing_secret,
        base_url=slack.base_url,
        alert_channel=ALERTS,
        timeout_seconds=5,
    )


@pytest.fixture
async def app(advisor: FixedAdvisor, settings: SlackSettings) -> AsyncIterator[BotApp]:
    built = build_app(advisor, settings)
    yield built
    await built.drain(2)


@pytest.fixture
async def online(app: BotApp, slack: FakeSlack) -> AsyncIterator[FakeSlack]:
    """The workspace, with the bot listening over HTTP."""
    async with serving(events_endpoint(app)) as address:
        slack.events_url = f"{address}/slack/events"
        yield slack


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def fake_time() -> FakeTime:
    return FakeTime()
