"""A small advisor with known contents, and a real server around the real application."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import uvicorn

import service
from bot.port import ClusterHealth
from rules.advice.readiness import Readiness, Requirement
from rules.answers import Answer, Previous
from rules.checks import RULES
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.offers import BUNDLED_RATE, Catalog, EuroRate
from rules.facts.prices import bundled
from rules.facts.providers import bundled_providers
from rules.findings import Cost, Evidence, Finding, Note, ObjectRef, Report, Severity, SkippedRule, Unreadable
from rules.language import Language
from service.app import build
from service.cli.server import listen
from service.cli.targets import snapshot_facts
from service.errors import AnswerUnknown, AuditUnknown, ClusterUnknown, CursorInvalid
from service.settings import Settings
from service.views import AuditView, FindingPage, FindingState, FindingView, Unanswered, UnansweredPage

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def idle_finding(number: int = 1) -> Finding:
    node = f"gpu-{number}"
    return Finding(
        rule="idle-gpu-node",
        severity=Severity.MEDIUM,
        objects=(ObjectRef("Node", "", node),),
        evidence=(Evidence("node", node), Evidence("idle", 200_000, "s"), Evidence("gpus", 1, "GPU")),
        cost=Cost(1.5, 83.33, "list", "2026-07-20", "a price list"),
        fingerprint=f"{number:016x}",
    )


def finding_view(number: int, state: FindingState = "open") -> FindingView:
    finding = idle_finding(number)
    return FindingView(
        id=f"finding-{number}",
        cluster="prod",
        rule=finding.rule,
        severity=finding.severity,
        state=state,
        first_seen=NOW - timedelta(days=1),
        opened_at=NOW - timedelta(days=1),
        last_seen=NOW,
        finding=finding,
    )


OKE = Path(service.__file__).parent / "samples/oke-a10-a100-pools.json"


class DoubleAdvisor:
    """Answers from memory; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Language | None]] = []
        self.filters: list[dict[str, object]] = []
        self.said: list[tuple[str, bool, str | None]] = []
        self.problems: list[str] = []
        self.running = False
        self.fault: Exception | None = None
        self.audits: dict[str, AuditView] = {}
        self.ready_for = Readiness(
            cluster="prod",
            observed_at=NOW,
            state="not_met",
            requirements=(
                Requirement(
                    topic="gang_scheduling",
                    state="not_met",
                    reasons=(Note("loose_jobs", (Evidence("jobs", ["train/pretrain"]),)),),
                    step="gang_scheduler",
                    objects=(ObjectRef("PyTorchJob", "train", "pretrain"),),
                ),
            ),
        )
        self.views = [finding_view(number) for number in range(1, 6)]

    async def start(self) -> None:
        self.running = True

    async def stop(self) -> None:
        self.running = False

    async def ask(self, text: str, *, language: Language | None = None, conversation: str | None = None) -> Answer:
        if self.fault is not None:
            raise self.fault
        self.asked.append((text, language))
        return Answer(language=language or "es", kind="faq", topic="multiple_workloads_per_gpu", text="Sí, **puedes**.")

    async def feedback(self, answer_id: str, *, helped: bool, comment: str | None = None) -> None:
        if answer_id != "answer-1":
            raise AnswerUnknown(answer_id)
        self.said.append((answer_id, helped, comment))

    async def unanswered(
        self, *, language: Language | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnansweredPage:
        if cursor not in (None, "next"):
            raise CursorInvalid(str(cursor))
        item = Unanswered(
            id="answer-1",
            asked_at=NOW,
            language=language or "it",
            why="abstained",
            text="che tempo fa?",
            read=Previous(language="it", kind="out_of_scope"),
            helped=0,
            not_helped=0,
            comments=[],
        )
        return UnansweredPage([item], None if cursor else "next")

    async def forget_question(self, question_id: str) -> None:
        if question_id != "answer-1":
            raise AnswerUnknown(question_id)

    async def clusters(self) -> Sequence[ClusterHealth]:
        return [ClusterHealth(name="prod", state="ok", gpu_nodes=3, open_findings={"medium": 5}, audited_at=1.0)]

    async def claim_event(self, event_id: str) -> bool:
        return bool(event_id)

    async def start_audit(self, cluster: str, *, trigger: str) -> AuditView:
        if cluster != "prod":
            raise ClusterUnknown(cluster, ["prod"])
        audit = AuditView(id="audit-1", cluster=cluster, state="queued", trigger=trigger, queued_at=NOW)
        report = Report(
            cluster=cluster,
            observed_at=NOW,
            findings=(idle_finding(),),
            unreadable=(Unreadable("Event", "forbidden", "events is forbidden"),),
            skipped_rules=(SkippedRule("gpu-pod-pending", ("Event",)),),
        )
        self.audits[audit.id] = msgspec.structs.replace(audit, state="done", finished_at=NOW, report=report)
        return audit

    async def readiness(self, cluster: str) -> Readiness:
        if cluster != "prod":
            raise ClusterUnknown(cluster, ["prod"])
        return self.ready_for

    async def cluster_facts(self, cluster: str) -> ClusterFacts:
        if cluster != "prod":
            raise ClusterUnknown(cluster, ["prod"])
        return await asyncio.to_thread(snapshot_facts, [str(OKE)])

    async def audit(self, audit_id: str) -> AuditView:
        if audit_id not in self.audits:
            raise AuditUnknown(audit_id)
        return self.audits[audit_id]

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
        self.filters.append({"cluster": cluster, "rule": rule, "severity": severity, "state": state})
        if cluster not in (None, "prod"):
            raise ClusterUnknown(str(cluster), ["prod"])
        try:
            start = int(base64.urlsafe_b64decode(cursor)) if cursor else 0
        except ValueError as error:
            raise CursorInvalid(str(cursor)) from error
        end = start + limit
        more = base64.urlsafe_b64encode(str(end).encode()).decode() if end < len(self.views) else None
        return FindingPage(self.views[start:end], more)

    async def ready(self) -> Sequence[str]:
        return self.problems

    def catalog(self) -> Catalog:
        return Catalog(bundled_providers(), bundled())

    def euro_rate(self) -> EuroRate:
        return BUNDLED_RATE

    def rules(self) -> Sequence[Rule]:
        return RULES


@contextlib.asynccontextmanager
async def serving(settings: Settings, advisor: DoubleAdvisor | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a real server on a free port, with the life of the application around it."""
    app = build(settings, advisor=advisor)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
    ready = asyncio.Event()

    async def life() -> None:
        async with app.lifespan():
            ready.set()
            await server._serve([listener])

    task = asyncio.create_task(life())
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not task.done():
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
                yield client
    finally:
        waiting.cancel()
        server.should_exit = True
        await task
