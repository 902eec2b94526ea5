"""Running audits: one cluster, one audit at a time, whatever else fails.

``queued -> running -> done | failed``. The row of a queued or running audit is a lock on its cluster for all replicas
(a partial unique index) with a lease that its process renews: when a process dies, the audit is marked as failed
(``interrupted``) at the next start, at the latest when the lease has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

import msgspec
import structlog
from sqlmodel.ext.asyncio.session import AsyncSession

from rules.engine import Rule
from rules.errors import AdvisorError
from rules.facts.cluster import ClusterFacts, FactsBuilder
from rules.facts.prices import PriceBook
from rules.findings import Report
from rules.policy import Policy
from service import alerts, judgement, unreadable
from service.alerts import Announcing
from service.clock import Clock, Ids
from service.clusters import Connector
from service.errors import AuditUnknown, ClusterUnknown, redact
from service.once import run_audit_once
from service.registry.reader import ImageConfigs
from service.settings import AuditSettings
from service.store import Store
from service.store import audits as audit_store
from service.store import findings as finding_store
from service.store.tables import AuditRow, FindingRow
from service.views import AuditError, AuditView

LEASE = timedelta(seconds=120)
HEARTBEAT_SECONDS = 30.0

log = structlog.get_logger(__name__)


class Judge(msgspec.Struct, frozen=True):
    """What an audit needs beside the cluster."""

    rules: Sequence[Rule]
    policy: Policy
    prices: PriceBook
    announcing: Announcing
    images: ImageConfigs | None = None


Reading = tuple[ClusterFacts, Report]
"""What a reading of a cluster gave."""


class Audits:
    """Runs audits and keeps what they found.

    Args:
        connectors: by cluster name, in the order of the settings.
        owner: id of this process, different at every start.
        finished: called after every audit that was recorded.
    """

    def __init__(
        self,
        store: Store,
        connectors: Mapping[str, Connector],
        judge: Judge,
        settings: AuditSettings,
        *,
        clock: Clock,
        ids: Ids,
        owner: str,
        finished: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._judge = judge
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._owner = owner
        self._finished = finished
        self._slots = asyncio.Semaphore(settings.parallel)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._facts: dict[str, ClusterFacts] = {}
        self._reports: dict[str, Report] = {}
        self._builders: dict[str, FactsBuilder] = {}
        self._reads: dict[str, asyncio.Lock] = {name: asyncio.Lock() for name in connectors}

    def facts(self) -> list[ClusterFacts]:
        """Facts of the latest complete reading of every cluster, in the order of the settings."""
        return [self._facts[name] for name in self._connectors if name in self._facts]

    def reports(self) -> dict[str, Report]:
        """What the rules found at the latest complete reading of every cluster."""
        return dict(self._reports)

    def _keep(self, cluster: str, outcome: Reading) -> None:
        self._facts[cluster], self._reports[cluster] = outcome

    async def recover(self) -> int:
        """Make the clusters known, and mark audits that a dead process left behind; how many.

        A SQLite file has one process, so there every unfinished audit is marked.
        """
        for name, connector in self._connectors.items():
            # one transaction each: an audit that is recorded locks its own row first, then its cluster's
            async with self._store.write() as session:
                await audit_store.remember_cluster(session, name, connector.kind, self._clock())
        async with self._store.write() as session:
            everyone = self._store.dialect == "sqlite"
            return await audit_store.interrupt(session, self._clock(), everyone=everyone)

    def keep_facts(self, cluster: str) -> None:
        """Keep facts of objects from one reading to the next; for a cluster that is followed, whose objects stay the
        same ones while they do not change."""
        self._builders[cluster] = FactsBuilder(cluster, self._judge.prices)

    def use_prices(self, prices: PriceBook) -> None:
        """Price nodes by this book from the next reading on; what was derived with the one before is derived anew."""
        self._judge = msgspec.structs.replace(self._judge, prices=prices)
        self._builders = {name: FactsBuilder(name, prices) for name in self._builders}

    async def start(self, cluster: str, *, trigger: str) -> AuditView:
        """Begin an audit in the background; where one is queued or running already, here or elsewhere, that one.

        Raises:
            ClusterUnknown: no such cluster.
        """
        return (await self._start(cluster, trigger, None))[1]

    async def react(self, cluster: str) -> bool:
        """Look at a cluster that has changed, and put on record what makes a difference.

        Most changes make none: a pod that comes and goes is no finding. Only an audit that opens or closes findings,
        or finds the cluster readable or unreadable where it was not, is recorded, as one with the trigger ``change``.

        Returns:
            False when an audit that began earlier is under way: whether it has seen the change is not known.
        """
        connector = self._connector(cluster)
        outcome: Reading | AuditError
        async with self._slots:
            try:
                outcome = await self._read(connector)
            except Exception as error:
                outcome = _error(error, cluster)
        if not await self._is_news(cluster, outcome):
            if not isinstance(outcome, AuditError):
                self._keep(cluster, outcome)
            return True
        claimed, view = await self._start(cluster, "change", outcome)
        task = self._tasks.get(view.id)
        if task is not None:
            await asyncio.shield(task)
        return claimed

    async def _is_news(self, cluster: str, outcome: Reading | AuditError) -> bool:
        async with self._store.read() as session:
            row = (await audit_store.clusters(session, [cluster])).get(cluster)
            before = row.error_code if row is not None else None
            if isinstance(outcome, AuditError):
                return outcome.code != before
            if before is not None or row is None or row.audited_at is None:
                return True
            judged = self._judged(outcome[1], await _known(session, outcome[1]))
        return any(word.change in ("opened", "reopened", "closed") for word in judged.values())

    def _judged(self, report: Report, rows: Mapping[str, FindingRow]) -> dict[str, judgement.Judged]:
        known = {fingerprint: finding_store.standing(row) for fingerprint, row in rows.items()}
        of_rules = {mark: item for mark, item in known.items() if item.finding.rule not in unreadable.IDS}
        judged = judgement.judge(report, of_rules, rules=self._judge.rules, policy=self._judge.policy)
        return judged | judgement.found_in_reading(unreadable.of_report(report), known, rules=unreadable.IDS)

    async def _start(self, cluster: str, trigger: str, outcome: Reading | AuditError | None) -> tuple[bool, AuditView]:
        """Begin an audit, of what was read already where it was; whether it is a new one, and the audit."""
        connector = self._connector(cluster)
        while True:
            row = self._new_row(cluster, trigger)
            async with self._store.write() as session:
                claimed = await audit_store.claim(session, row)
                other = None if claimed else await audit_store.active(session, cluster)
                seen = audit_store.view(row if other is None else other)
            if claimed:
                self._spawn(row.id, connector, outcome)
                return True, seen
            if other is not None:
                return False, seen
            # the other audit ended between the two statements: claim again

    async def run(self, cluster: str, *, trigger: str) -> AuditView:
        """An audit from beginning to end; one that is under way here is waited for, one of another replica is not."""
        begun = await self.start(cluster, trigger=trigger)
        task = self._tasks.get(begun.id)
        if task is None:
            return begun
        await asyncio.shield(task)
        return await self.get(begun.id)

    async def refresh(self, cluster: str) -> None:
        """Read the cluster for answers only: another replica audits it.

        Raises:
            AdvisorError: it could not be read.
        """
        async with self._slots:
            self._keep(cluster, await self._read(self._connector(cluster)))

    async def known(self, cluster: str) -> ClusterFacts:
        """Facts of the latest complete reading of a cluster; it is read now when there was none.

        Raises:
            ClusterUnknown: no such cluster.
            AdvisorError: it could not be read.
        """
        self._connector(cluster)
        if cluster not in self._facts:
            await self.refresh(cluster)
        return self._facts[cluster]

    async def started_elsewhere(self, cluster: str, *, within: timedelta) -> bool:
        """Whether another replica audits the cluster now, or has begun a complete audit in the time before now."""
        async with self._store.read() as session:
            since = self._clock() - within
            return await audit_store.started_elsewhere(session, cluster, self._owner, since)

    async def get(self, audit_id: str) -> AuditView:
        """An audit on record.

        Raises:
            AuditUnknown: no audit has that id.
        """
        async with self._store.read() as session:
            row = await session.get(AuditRow, audit_id) if "\x00" not in audit_id else None
            if row is None:
                raise AuditUnknown(audit_id)
            return audit_store.view(row)

    async def keep_leases(self) -> None:
        """Renew the leases of this process's audits, for as long as it lives."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self.renew_leases()
            except Exception:
                log.exception("the leases of running audits could not be renewed")

    async def renew_leases(self) -> None:
        """Renew the leases of this process's audits once."""
        if self._tasks:
            async with self._store.write() as session:
                await audit_store.renew(session, list(self._tasks), self._clock() + LEASE)

    async def stop(self) -> None:
        """Abandon what is running; it is marked as interrupted."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with self._store.write() as session:
            await audit_store.interrupt(session, self._clock(), owner=self._owner)

    def _connector(self, cluster: str) -> Connector:
        if cluster not in self._connectors:
            raise ClusterUnknown(cluster, self._connectors)
        return self._connectors[cluster]

    def _spawn(self, audit_id: str, connector: Connector, outcome: Reading | AuditError | None) -> None:
        work = self._carry_out(audit_id, connector, outcome)
        task = asyncio.create_task(work, name=f"audit {connector.name} {audit_id}")
        self._tasks[audit_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(audit_id, None))

    def _new_row(self, cluster: str, trigger: str) -> AuditRow:
        now = self._clock()
        return AuditRow(
            id=self._ids(),
            cluster=cluster,
            state="queued",
            trigger=trigger,
            owner=self._owner,
            queued_at=now,
            lease_until=now + LEASE,
        )

    async def _carry_out(self, audit_id: str, connector: Connector, outcome: Reading | AuditError | None) -> None:
        name = connector.name
        try:
            async with self._slots:
                async with self._store.write() as session:
                    now = self._clock()
                    if not await audit_store.begin(session, audit_id, now, now + LEASE):
                        log.warning("an audit was taken away before it began", cluster=name, audit=audit_id)
                        return
                if outcome is None:
                    try:
                        outcome = await self._read(connector)
                    except Exception as error:
                        outcome = _error(error, name)
                if isinstance(outcome, AuditError):
                    await self._record_failure(audit_id, name, outcome)
                else:
                    self._keep(name, outcome)
                    await self._record(audit_id, *outcome)
            await self._finished()
        except Exception:
            # the row keeps its lease, which nobody renews: the audit will be marked as interrupted
            log.exception("an audit could not be recorded", cluster=name, audit=audit_id)

    async def _read(self, connector: Connector) -> Reading:
        name, prices = connector.name, self._judge.prices
        async with self._reads[name] if name in self._builders else nullcontext():
            # While it is at work it is nobody else's: a reading that is given up may go on in its thread.
            builder = self._builders.get(name)
            if builder is not None:
                self.keep_facts(name)
            read = await run_audit_once(
                connector,
                now=self._clock(),
                policy=self._judge.policy,
                prices=prices,
                rules=self._judge.rules,
                deadline_seconds=self._settings.deadline_seconds,
                images=self._judge.images,
                builder=builder,
            )
            if builder is not None and self._judge.prices is prices:
                self._builders[name] = builder
            return read

    async def _record(self, audit_id: str, facts: ClusterFacts, report: Report) -> None:
        now = self._clock()
        async with self._store.write() as session:
            if not await audit_store.finish(session, audit_id, now, report=report):
                log.warning("an audit was taken away: its result is dropped", cluster=facts.name, audit=audit_id)
                return
            rows = await _known(session, report)
            judged = self._judged(report, rows)
            written = finding_store.record(
                session, cluster=facts.name, rows=rows, judged=judged, now=now, ids=self._ids
            )
            await alerts.follow(
                session, judged=judged, rows=written, how=self._judge.announcing, now=now, ids=self._ids
            )
            gpu_nodes = len(facts.gpu_nodes) if facts.knows("Node") else None
            await audit_store.cluster_done(session, facts.name, now, gpu_nodes)
        changes = [word.change for word in judged.values()]
        log.info(
            "audit done",
            cluster=facts.name,
            audit=audit_id,
            **{change: changes.count(change) for change in sorted(set(changes))},
            unreadable=[item.kind for item in report.unreadable],
            failed_rules=[item.rule for item in report.failed_rules],
        )

    async def _record_failure(self, audit_id: str, cluster: str, error: AuditError) -> None:
        now = self._clock()
        async with self._store.write() as session:
            if await audit_store.finish(session, audit_id, now, error=error):
                await audit_store.cluster_failed(session, cluster, now, error)
                await self._record_trouble(session, cluster, error, now)
        log.warning("audit failed", cluster=cluster, audit=audit_id, code=error.code, detail=error.detail)

    async def _record_trouble(self, session: AsyncSession, cluster: str, error: AuditError, now: datetime) -> None:
        """That the cluster cannot be read is a finding; all others stay as they are, since nothing was judged."""
        trouble = unreadable.of_failure(cluster, error)
        if trouble is None:
            return
        rows = await finding_store.known(session, cluster, [trouble.fingerprint])
        known = {mark: finding_store.standing(row) for mark, row in rows.items()}
        judged = judgement.found_in_reading(trouble, known, rules=())
        written = finding_store.record(session, cluster=cluster, rows=rows, judged=judged, now=now, ids=self._ids)
        await alerts.follow(session, judged=judged, rows=written, how=self._judge.announcing, now=now, ids=self._ids)


async def _known(session: AsyncSession, report: Report) -> dict[str, FindingRow]:
    marks = [finding.fingerprint for finding in report.findings]
    trouble = unreadable.of_report(report)
    return await finding_store.known(session, report.cluster, [*marks, *([trouble.fingerprint] if trouble else [])])


def _error(error: Exception, cluster: str) -> AuditError:
    if isinstance(error, AdvisorError):
        return AuditError(error.code, str(error))
    log.error("an audit met a fault of gpu-advisor", cluster=cluster, exc_info=error)
    return AuditError("internal-fault", redact(f"a fault of gpu-advisor itself: {type(error).__name__}: {error}"))
