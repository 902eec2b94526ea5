"""The use cases: what the API, the bot and the command line call. Everything of the runtime is wired here."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from bot.port import ClusterHealth
from rules.advice.readiness import Readiness, readiness
from rules.answers import Answer, Previous
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.offers import Catalog, EuroRate
from rules.facts.prices import PriceBook
from rules.findings import Severity
from rules.language import Language
from service import unreadable
from service.alerts import Announcing
from service.audits import Audits, Judge
from service.catalog.desk import CatalogDesk
from service.clock import Clock, Ids, SortableIds, utc_now
from service.clusters import Connector, connect
from service.clusters.model import Followed
from service.errors import ClusterUnknown, RuleUnknown, StoreUnavailable
from service.once import run_audit_once
from service.outbox import Notifier, Outbox
from service.reactions import Reactions
from service.reader.settings import ReaderSettings
from service.registry.reader import ImageReader
from service.schedule import Schedule
from service.settings import Settings, check_rules
from service.store import Store, audits, events, findings, outbox, questions, retention
from service.store.sql import affected
from service.store.tables import ClusterRow
from service.views import AuditView, FindingPage, FindingState, UnansweredPage, Undelivered

if TYPE_CHECKING:
    from service.reader.second import SecondReader

__all__ = ["GpuAdvisor", "run_audit_once"]

DRAIN_SECONDS = 5.0
"""How long a message that is being sent may take when the service stops."""

log = structlog.get_logger(__name__)

Answerer = Callable[..., Answer]


class GpuAdvisor:
    """The running advisor; implements :class:`bot.port.Advisor`.

    Args:
        settings: of the operator.
        connectors: of the clusters; made from the settings when None.
        rules: all rules when None.
        prices: bundled prices with the contract prices of the settings when None.
        notifier: who tells people of alerts; Slack as the settings say when None.
        answer: what answers questions; :func:`rules.questions.answer` when None.
        clock, ids: time and ids.

    Raises:
        ConfigInvalid: the settings name a rule that does not exist, or Slack settings do not go together.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        connectors: Iterable[Connector] | None = None,
        rules: Sequence[Rule] | None = None,
        prices: PriceBook | None = None,
        notifier: Notifier | None = None,
        answer: Answerer | None = None,
        clock: Clock = utc_now,
        ids: Ids | None = None,
    ) -> None:
        if rules is None:
            from service.rulebook import rulebook

            rules = rulebook(settings)
            check_rules(settings, [rule.id for rule in rules])
        self._settings = settings
        self._rules = tuple(rules)
        self._clock = clock
        self._ids = ids or SortableIds(clock)
        self._owner = self._ids()
        self._answer = answer
        self._store = Store(settings.database_url)
        self._desk = CatalogDesk(self._store, settings, clock=clock, ids=self._ids)
        self._own_prices = prices is None
        made = (connect(cluster) for cluster in settings.clusters) if connectors is None else connectors
        self._connectors = {connector.name: connector for connector in made}
        if notifier is None and settings.slack.mode != "off" and settings.slack.alert_channel:
            from bot.delivery import make_delivery

            notifier = make_delivery(settings.slack)
        channel = (settings.slack.alert_channel or "default") if notifier is not None else None
        self._outbox = self._make_outbox(notifier) if notifier is not None else None
        self._images = ImageReader(settings.registry) if settings.registry.enabled else None
        self._reader = _second_reader(settings.reader) if settings.reader.enabled else None
        self._audits = Audits(
            self._store,
            self._connectors,
            Judge(
                rules=self._rules,
                policy=settings.policy,
                prices=self._desk.catalog.book if prices is None else prices,
                announcing=Announcing(channel, settings.alerts),
                images=self._images,
            ),
            settings.audit,
            clock=clock,
            ids=self._ids,
            owner=self._owner,
            finished=self._audit_finished,
        )
        self._opened = False
        self._schedule: Schedule | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._scheduled_once: set[str] = set()

    async def start(self) -> None:
        """:meth:`open`, then follow the clusters and run the schedule."""
        await self.open()
        self._follow()
        self._schedule = Schedule(
            list(self._connectors),
            interval_seconds=self._settings.audit.interval_seconds,
            audit=self.audit_on_schedule,
            deliver=self.deliver if self._outbox is not None else None,
            clean=self.clean,
            prices=self.keep_prices_fresh,
            later=self._snapshots(),
        )
        self._schedule.start(utc_now())
        self._spawn(self._audits.keep_leases(), "leases")

    async def open(self) -> None:
        """Migrate the database, take up what a dead process left behind, audit the snapshots.

        Everything works afterwards, but nothing happens by itself. Clusters that cannot be read do not stop it.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        await self._store.migrate()
        self._opened = True
        if await self._desk.load():
            self._take_up_prices()
        interrupted = await self._audits.recover()
        if interrupted:
            log.warning("audits of an earlier run were not finished", number=interrupted)
        if self._outbox is not None:
            await self._outbox.recover()
        await asyncio.gather(*(self._audits.run(name, trigger="start") for name in self._snapshots()))

    async def stop(self) -> None:
        """End; audits under way are marked as interrupted, a message that is being sent may end."""
        if self._schedule is not None:
            await _tried("schedule", self._schedule.stop())
        if self._opened:
            await _tried("audits", self._audits.stop())
            if self._outbox is not None:
                await _tried("outbox", self._end_outbox(self._outbox))
        others = list(self._tasks)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for connector in self._connectors.values():
            await _tried("connector", connector.close())
        if self._images is not None:
            await _tried("images", self._images.close())
        if self._reader is not None:
            await _tried("reader", self._reader.close())
        await _tried("store", self._store.close())
        self._schedule, self._opened = None, False

    async def ask(self, text: str, *, language: Language | None = None, conversation: str | None = None) -> Answer:
        """Answer a question, with what is true in the clusters now. See :func:`rules.questions.answer`.

        Args:
            conversation: name of the thread it is asked in; a follow-up is read in the light of what came before.

        Returns:
            The answer; its ``id`` takes feedback. A database that does not answer costs only the id and the memory of
            the conversation.
        """
        answer = self._answer or _answerer()
        before = await self._before(conversation)
        facts = self._audits.facts()
        understood: dict[str, Any] = {}
        if self._reader is not None:
            understood["reading"] = await self._reader.understand(
                text, language=language, previous=before, facts=facts, clusters=tuple(self._connectors)
            )
        said: Answer = await asyncio.to_thread(
            answer,
            text,
            clusters=facts,
            reports=self._audits.reports(),
            language=language,
            previous=before,
            catalog=self._desk.catalog,
            rate=self._desk.rate,
            **understood,
        )
        return await self._remember(text, said, conversation)

    async def feedback(self, answer_id: str, *, helped: bool, comment: str | None = None) -> None:
        """Record whether an answer helped.

        Raises:
            AnswerUnknown: no answer on record has that id.
        """
        async with self._store.write() as session:
            await questions.give_feedback(
                session, answer_id, helped=helped, comment=comment, now=self._clock(), ids=self._ids
            )

    async def unanswered(
        self, *, language: Language | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnansweredPage:
        """Questions for the team to review: not answered, or the answer did not help; newest first.

        Raises:
            CursorInvalid: not a cursor of this list.
        """
        async with self._store.read() as session:
            return await questions.unanswered(session, language=language, limit=limit, cursor=cursor)

    async def forget_question(self, question_id: str) -> None:
        """Delete a question that was reviewed.

        Raises:
            AnswerUnknown: no question on record has that id.
        """
        async with self._store.write() as session:
            await questions.forget(session, question_id)

    async def _before(self, conversation: str | None) -> Previous | None:
        if conversation is None or not self._keeps_questions:
            return None
        try:
            async with self._store.read() as session:
                return await questions.before(session, conversation, self._clock())
        except StoreUnavailable:
            log.exception("a question is read without what came before it")
            return None

    async def _remember(self, text: str, said: Answer, conversation: str | None) -> Answer:
        if not self._keeps_questions:
            return said
        id_ = self._ids()
        try:
            async with self._store.write() as session:
                questions.record(session, text=text, answer=said, conversation=conversation, now=self._clock(), id_=id_)
        except StoreUnavailable:
            log.exception("a question is not on record")
            return said
        return msgspec.structs.replace(said, id=id_)

    @property
    def _keeps_questions(self) -> bool:
        return self._opened and self._settings.questions.record

    async def clusters(self) -> list[ClusterHealth]:
        """Configured clusters, in the order of the settings."""
        async with self._store.read() as session:
            rows = await audits.clusters(session, self._connectors)
            counts = await audits.open_counts(session)
        facts = {item.name: item for item in self._audits.facts()}
        healths = []
        for name, connector in self._connectors.items():
            health = _health(name, rows.get(name), counts.get(name, {}))
            missing = facts[name].unreadable if name in facts else ()
            unseen = tuple(item.kind for item in missing if item.reason != "not-found")
            notes = connector.notes if isinstance(connector, Followed) else ()
            healths.append(msgspec.structs.replace(health, unreadable=unseen, notes=notes))
        return healths

    async def start_audit(self, cluster: str, *, trigger: str) -> AuditView:
        """Begin an audit in the background and return at once; the one that is under way, if there is one.

        Raises:
            ClusterUnknown: no such cluster is configured.
        """
        return await self._audits.start(cluster, trigger=trigger)

    async def run_audit(self, cluster: str, *, trigger: str) -> AuditView:
        """As :meth:`start_audit`, but returns when the audit has ended (one of another replica is not waited for)."""
        return await self._audits.run(cluster, trigger=trigger)

    async def readiness(self, cluster: str) -> Readiness:
        """Whether a cluster is ready for training over several nodes, as it was last read; one that was never read is
        read now.

        Raises:
            ClusterUnknown: no such cluster is configured.
            ClusterTrouble: it cannot be read.
        """
        return await asyncio.to_thread(readiness, await self._audits.known(cluster))

    async def cluster_facts(self, cluster: str) -> ClusterFacts:
        """What is known of a cluster, as it was last read; one that was never read is read now.

        Raises:
            ClusterUnknown: no such cluster is configured.
            ClusterTrouble: it cannot be read.
        """
        return await self._audits.known(cluster)

    async def audit(self, audit_id: str) -> AuditView:
        """An audit.

        Raises:
            AuditUnknown: no audit has that id.
        """
        return await self._audits.get(audit_id)

    async def findings(
        self,
        *,
        cluster: str | None = None,
        rule: str | None = None,
        severity: Severity | None = None,
        state: FindingState | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> FindingPage:
        """A page of findings of configured clusters, heaviest first.

        Args:
            severity: the least one.
            limit: from 1 to 500.
            cursor: ``next_cursor`` of the page before, of the same query.

        Raises:
            ClusterUnknown, RuleUnknown: the filter names something that does not exist.
            CursorInvalid: not a cursor of this query.
        """
        if cluster is not None and cluster not in self._connectors:
            raise ClusterUnknown(cluster, self._connectors)
        known = [*(item.id for item in self._rules), *sorted(unreadable.IDS)]
        if rule is not None and rule not in known:
            raise RuleUnknown(rule, known)
        names = tuple(self._connectors) if cluster is None else (cluster,)
        query = findings.Query(clusters=names, rule=rule, severity=severity, state=state)
        async with self._store.read() as session:
            return await findings.page(session, query, limit=limit, cursor=cursor)

    async def ready(self) -> list[str]:
        """What keeps the advisor from working; empty when nothing does. An unreachable cluster does not count."""
        problem = await self._store.problem()
        problems = [problem] if problem else []
        if self._schedule is None or not self._schedule.running:
            problems.append("the schedule is not running")
        return problems

    async def undelivered(self) -> list[Undelivered]:
        """Notifications that nobody got, newest first."""
        async with self._store.read() as session:
            return await outbox.undelivered(session, list(self._connectors))

    async def claim_event(self, event_id: str) -> bool:
        """True the first time an event id is seen, by any replica."""
        async with self._store.write() as session:
            return await events.claim(session, event_id, self._clock())

    def catalog(self) -> Catalog:
        """Providers and prices: bundled ones, those that were fetched, and the team's own on top."""
        return self._desk.catalog

    def euro_rate(self) -> EuroRate:
        """US dollars per euro, with its date."""
        return self._desk.rate

    async def keep_prices_fresh(self) -> None:
        """Fetch prices where the settings want it and it is due; take up what another replica has fetched."""
        if await self._desk.keep_fresh():
            self._take_up_prices()

    def _take_up_prices(self) -> None:
        if self._own_prices:
            self._audits.use_prices(self._desk.catalog.book)

    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of evaluation."""
        return self._rules

    def latest_facts(self) -> list[ClusterFacts]:
        """Facts of the latest complete reading of each cluster; clusters that were never read are missing."""
        return self._audits.facts()

    async def audit_on_schedule(self, cluster: str) -> None:
        """A periodic audit. Where another replica does it in this interval, the cluster is only read, for answers."""
        first = cluster not in self._scheduled_once
        self._scheduled_once.add(cluster)
        half = timedelta(seconds=self._settings.audit.interval_seconds / 2)
        if not first and await self._audits.started_elsewhere(cluster, within=half):
            await self._audits.refresh(cluster)
            return
        seen = await self._audits.run(cluster, trigger="schedule")
        if seen.state in ("queued", "running"):
            await self._audits.refresh(cluster)

    async def clean(self) -> dict[str, int]:
        """Delete what is older than the settings want, and mark audits whose process died; how many of each."""
        kept = self._settings.audit
        async with self._store.write() as session:
            now = self._clock()
            done = {"interrupted": await audits.interrupt(session, now)}
        for step in retention.steps(
            now,
            keep=timedelta(days=kept.keep_days),
            keep_reports=kept.keep_reports,
            keep_questions=timedelta(days=self._settings.questions.keep_days),
        ):
            async with self._store.write() as session:
                done[step.what] = await affected(session, step.statement)
        return done

    async def deliver(self) -> None:
        """Send what is due now. Whoever waits for it may be cancelled without stopping a message half-way."""
        if self._outbox is not None:
            await asyncio.shield(self._spawn(self._outbox.drain(), "outbox"))

    def _follow(self) -> None:
        every = self._settings.audit.react_seconds
        reactions = Reactions(self._audits.react, every_seconds=every)
        for name, connector in self._connectors.items():
            if isinstance(connector, Followed) and connector.follow():
                self._audits.keep_facts(name)
                if every:
                    self._spawn(reactions.follow(name, connector), f"follow {name}")

    def _snapshots(self) -> list[str]:
        return [name for name, connector in self._connectors.items() if connector.kind == "snapshot"]

    def _make_outbox(self, notifier: Notifier) -> Outbox:
        return Outbox(
            self._store,
            notifier,
            clock=self._clock,
            owner=self._owner,
            language=self._settings.slack.alert_language,
            give_up=timedelta(hours=self._settings.alerts.give_up_hours),
        )

    async def _audit_finished(self) -> None:
        if self._outbox is not None and self._schedule is not None:
            self._spawn(_tried("outbox", self._outbox.drain()), "outbox")

    async def _end_outbox(self, ending: Outbox) -> None:
        sending = [task for task in self._tasks if task.get_name() == "outbox"]
        if sending:
            await asyncio.wait(sending, timeout=DRAIN_SECONDS)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        await ending.release()

    def _spawn(self, work: Coroutine[None, None, object], name: str) -> asyncio.Task[object]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _second_reader(settings: ReaderSettings) -> "SecondReader":
    from service.reader.second import SecondReader

    return SecondReader(settings)


def _answerer() -> Answerer:
    from rules.questions import answer

    return answer


async def _tried(what: str, work: Awaitable[object]) -> None:
    """Stopping goes on when one part cannot be stopped well."""
    try:
        await work
    except Exception:
        log.exception("a part failed", part=what)


def _health(name: str, row: ClusterRow | None, open_findings: dict[str, int]) -> ClusterHealth:
    if row is None:
        return ClusterHealth(name=name, state="never-audited", gpu_nodes=None, open_findings={}, audited_at=None)
    state = "unreachable" if row.error_code else "ok" if row.audited_at else "never-audited"
    return ClusterHealth(
        name=name,
        state=state,
        gpu_nodes=row.gpu_nodes,
        open_findings=open_findings,
        audited_at=row.audited_at.timestamp() if row.audited_at else None,
        error=row.error_detail,
    )
