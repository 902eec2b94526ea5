"""Doubles of what lies outside the state: the clock, clusters, rules and the people who are told."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from bot.port import AlertView, MessageRef
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import (
    Condition,
    Container,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from rules.findings import Evidence, Finding, ObjectRef, Severity, Unreadable
from rules.language import Language
from rules.policy import Policy
from service.clusters import Collected
from service.clusters.config import Source

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Clock:
    """Stands still until told to go on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


def numbered_ids(prefix: str = "id") -> Iterator[str]:
    return (f"{prefix}-{number:06}" for number in itertools.count(1))


def node(name: str, *, trouble: str | None = None, hours: int = 1, gpus: int = 0) -> Node:
    """A node; ``trouble`` is the id of the rule double that will complain of it."""
    labels = {"trouble": trouble, "hours": str(hours)} if trouble else {}
    capacity = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=labels, creationTimestamp=START - timedelta(days=1)),
        status=NodeStatus(
            capacity=dict(capacity),
            allocatable=dict(capacity),
            conditions=[Condition(type="Ready", status="True", lastTransitionTime=START - timedelta(days=1))],
        ),
    )


def gpu_pod(name: str, node_name: str, gpus: int = 1) -> Pod:
    """A running pod that holds GPUs of a node."""
    amount: dict[str, str | int | float] = {"nvidia.com/gpu": str(gpus)}
    worker = Container(name="main", image="trainer:1", resources=ResourceRequirements(requests=amount, limits=amount))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", creationTimestamp=START),
        spec=PodSpec(nodeName=node_name, containers=[worker]),
        status=PodStatus(phase="Running", startTime=START),
    )


def rule(
    rule_id: str,
    severity: Severity = Severity.MEDIUM,
    *,
    needs: tuple[str, ...] = ("Node",),
    about: str = "Node",
) -> Rule:
    """Complains of every node that is labelled with its id, and raises at a node labelled ``fault``."""

    def check(facts: ClusterFacts, _policy: Policy) -> Iterable[Finding | ObjectRef]:
        for item in facts.nodes:
            yield item.ref
            if item.labels.get("trouble") == "fault":
                raise RuntimeError("the rule met its bug")
            if item.labels.get("trouble") == rule_id:
                yield Finding(
                    rule=rule_id,
                    severity=severity,
                    objects=(ObjectRef(about, "" if about == "Node" else "default", item.name),),
                    evidence=(Evidence("hours", int(item.labels["hours"])),),
                )

    return Rule(id=rule_id, family="health", severity=severity, seeds=(), needs=needs, check=check, doc=rule_id)


IDLE = rule("idle-gpu-node")
MISMATCH = rule("driver-cuda-mismatch", Severity.HIGH, needs=("Node", "Pod"))
TIDY = rule("untidy-node", Severity.LOW)
POD_TROUBLE = rule("pod-trouble", about="Pod")
RULES = (IDLE, MISMATCH, TIDY, POD_TROUBLE)


class ScriptedCluster:
    """A cluster that holds ``nodes``, fails with ``error``, and can be held up at ``gate``."""

    def __init__(self, name: str = "lab", *nodes: Node, kind: Source = "kubeconfig") -> None:
        self.name = name
        self.kind: Source = kind
        self.nodes = nodes
        self.pods: tuple[Pod, ...] = ()
        self.unreadable: tuple[Unreadable, ...] = ()
        self.error: BaseException | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.reads = 0
        self.reading = 0
        self.most_at_once = 0
        self.closed = False
        self.notes: tuple[str, ...] = ()
        self.followed = False
        self._different = asyncio.Event()

    def follow(self) -> bool:
        self.followed = True
        return True

    async def changed(self) -> None:
        await self._different.wait()
        self._different.clear()

    def change(self) -> None:
        """Tell whoever follows that something is different."""
        self._different.set()

    async def collect(self) -> Collected:
        self.reads += 1
        self.reading += 1
        self.most_at_once = max(self.most_at_once, self.reading)
        self.entered.set()
        try:
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            missing = {item.kind for item in self.unreadable}
            return Collected(
                nodes=self.nodes,
                pods=self.pods,
                events=(),
                others={},
                read_kinds=frozenset({"Node", "Pod", "Event"} - missing),
                unreadable=self.unreadable,
            )
        finally:
            self.reading -= 1

    async def close(self) -> None:
        self.closed = True


class Channel:
    """People in a channel: keeps the messages, and fails as told. ``failures`` are raised one after the other."""

    def __init__(self) -> None:
        self.messages: dict[str, AlertView] = {}
        self.log: list[tuple[str, str, str]] = []
        self.failures: list[BaseException] = []
        self.failures_after_posting: list[BaseException] = []
        self.lookups = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()

    def said(self) -> list[tuple[str, str]]:
        """What happened, as (verb, node)."""
        return [(verb, name) for verb, name, _ in self.log]

    async def post(self, alert: AlertView, language: Language, *, maybe_posted: bool = False) -> MessageRef:
        self.entered.set()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if maybe_posted:
            self.lookups += 1
            found = next((ts for ts, known in self.messages.items() if known.id == alert.id), None)
            if found is not None:
                return await self.update(MessageRef("C1", found), alert, language)
        ts = f"{len(self.messages) + 1}.0"
        self.messages[ts] = alert
        self._note("post", alert)
        if self.failures_after_posting:
            raise self.failures_after_posting.pop(0)
        return MessageRef("C1", ts)

    async def update(self, ref: MessageRef, alert: AlertView, language: Language) -> MessageRef:
        if self.failures:
            raise self.failures.pop(0)
        assert ref.ts in self.messages
        self.messages[ref.ts] = alert
        self._note("edit", alert)
        return ref

    def _note(self, verb: str, alert: AlertView) -> None:
        self.log.append((verb, alert.finding.objects[0].name, alert.state))
