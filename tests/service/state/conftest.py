"""A factory of advisors on one database."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec
import pytest

from bot.settings import SlackSettings
from rules.engine import Rule
from rules.facts.prices import PriceBook
from rules.policy import Policy
from service.advisor import GpuAdvisor
from service.outbox import Notifier
from service.settings import AlertSettings, AuditSettings, QuestionSettings, Settings
from tests.service.state.doubles import RULES, Channel, Clock, ScriptedCluster, numbered_ids


class Advisors:
    """Makes advisors that share a database and a clock; closes them in the end."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self.made: list[GpuAdvisor] = []

    @property
    def sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    def make(
        self,
        *clusters: ScriptedCluster,
        notifier: Notifier | None = None,
        rules: Sequence[Rule] = RULES,
        policy: Policy | None = None,
        audit: AuditSettings | None = None,
        alerts: AlertSettings | None = None,
        questions: QuestionSettings | None = None,
        **options: Any,
    ) -> GpuAdvisor:
        settings = Settings(
            database_url=self.url,
            policy=policy or Policy(),
            audit=audit or AuditSettings(),
            alerts=alerts or AlertSettings(),
            questions=questions or QuestionSettings(),
            slack=SlackSettings(),
        )
        ids = numbered_ids(f"{len(self.made):02}")
        advisor = GpuAdvisor(
            settings,
            connectors=clusters,
            rules=rules,
            prices=PriceBook(),
            notifier=notifier,
            clock=self.clock,
            ids=lambda: next(ids),
            **options,
        )
        self.made.append(advisor)
        return advisor

    async def open(self, *clusters: ScriptedCluster, **options: Any) -> GpuAdvisor:
        advisor = self.make(*clusters, **options)
        await advisor.open()
        return advisor


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
async def advisors(database_url: str, clock: Clock) -> AsyncIterator[Advisors]:
    family = Advisors(database_url, clock)
    yield family
    await stop_all(family.made)


@pytest.fixture
async def replicas(postgresql_url: str, clock: Clock) -> AsyncIterator[Advisors]:
    """As ``advisors``, on PostgreSQL only: several processes on one database."""
    family = Advisors(postgresql_url, clock)
    yield family
    await stop_all(family.made)


async def stop_all(advisors: Iterable[GpuAdvisor]) -> None:
    for advisor in advisors:
        await advisor.stop()


def only(items: Sequence[Any]) -> Any:
    """The one item."""
    assert len(items) == 1, [msgspec.to_builtins(item) if isinstance(item, msgspec.Struct) else item for item in items]
    return items[0]
