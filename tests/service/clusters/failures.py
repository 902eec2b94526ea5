"""Every trouble of an API server over real HTTP and TLS, and what becomes of it in audit, API and Slack.

``LISTING`` are troubles of a cluster that is read once; ``WATCHING`` happen to one that is followed. Each case is
audited twice by a running advisor beside a cluster that is well, asked for over the REST API, and told in a channel.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import stamina

from bot.blocks.alert import alert_message
from bot.port import AlertView
from rules.errors import AdvisorError
from rules.facts.prices import PriceBook
from service.advisor import GpuAdvisor
from service.app import build
from service.clusters import Collected, Connector
from service.clusters.watch import Pace
from service.settings import AlertSettings, Settings
from service.views import AuditView
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import NOW, kubeconfig_connector
from tests.service.clusters.following import PATIENCE_SECONDS, Following, names
from tests.service.clusters.objects import node, pod, small_cluster
from tests.service.state.doubles import Channel, Clock

Arrange = Callable[[FakeKubernetes], None]
Trouble = Callable[[Following], Awaitable[None]]


class Case(msgspec.Struct, kw_only=True):
    """One trouble of a cluster that is read once.

    Attributes:
        name: what happens, as the table shows it.
        arrange: makes it happen.
        outcome: code of the error, or ``Kind: reason`` of what is unknown, or ``complete``.
        says: words that the error or detail must hold.
        tls, options: of the server and of the connector.
    """

    name: str
    arrange: Any = lambda _: None
    outcome: str
    says: str = ""
    tls: str = "good"
    options: dict[str, Any] = {}


class Watched(msgspec.Struct, kw_only=True):
    """One trouble of a cluster that is followed.

    Attributes:
        trouble: makes it happen while watches are open.
        outcome, says: as of :class:`Case`, once the trouble has had its effect.
        mended: ends the trouble; afterwards the outcome must be ``complete`` again. None where it ends by itself.
        pace: how often things are asked for.
    """

    name: str
    trouble: Any
    outcome: str = "complete"
    says: str = ""
    mended: Any = None
    pace: Pace = Pace()


class Effect(msgspec.Struct, kw_only=True):
    """What became of a case.

    Attributes:
        audit: as ``outcome`` of the cases; words: what the audit said.
        state, unreadable: of the cluster in ``GET /v1/clusters``.
        told: headlines in Slack, over two audits. rules: ids of what they are about.
        findings: ids of what the audit found.
        others: whether the audit of the other cluster was complete and found its idle node.
        after: the outcome once the trouble is over; "" where that was not tried.
    """

    audit: str
    words: str
    state: str
    unreadable: list[str]
    told: list[str]
    rules: list[str]
    findings: list[str]
    others: bool
    after: str = ""


def fault(plural: str, **fields: Any) -> Arrange:
    return lambda server: server.faults.add(plural, **fields)


def _deny(resource: str) -> Arrange:
    return lambda server: server.denied.add(resource)


def _no_tokens(server: FakeKubernetes) -> None:
    for token in list(server.tokens):
        server.tokens[token + "-replaced"] = server.tokens.pop(token)


LISTING = [
    Case(name="all is well", outcome="complete"),
    Case(name="401, also with fresh credentials", arrange=fault("*", status=401, reason="Unauthorized",
         message="Unauthorized"), outcome="cluster-unauthorized", says="does not accept the credentials"),
    Case(name="no credentials", outcome="cluster-unauthorized", options={"auth": "none"}),
    Case(name="403 on nodes", arrange=_deny("nodes"), outcome="cluster-forbidden", says='resources: ["nodes"]'),
    Case(name="403 on pods", arrange=_deny("pods"), outcome="Pod: forbidden", says='User "reader" cannot list'),
    Case(name="403 on events", arrange=_deny("events"), outcome="Event: forbidden", says='resources: ["events"]'),
    Case(name="404 on an optional API (plain text)", arrange=fault("deviceclasses", status=404, reason="NotFound",
         message="the server could not find the requested resource"), outcome="DeviceClass: not-found"),
    Case(name="404 on nodes", arrange=fault("nodes", status=404, reason="NotFound", message="not found"),
         outcome="cluster-answer-invalid", says="does not answer like a Kubernetes API server"),
    Case(name="400 on pods", arrange=fault("pods", status=400, reason="BadRequest", message="field label not known"),
         outcome="Pod: error", says="field label not known"),
    Case(name="410 in mid-paging, once", arrange=fault("pods", expire=True, only_continued=True, times=1),
         outcome="complete", options={"page_size": 2}),
    Case(name="410 in mid-paging, again and again", arrange=fault("pods", expire=True, only_continued=True),
         outcome="Pod: error", says="expired twice", options={"page_size": 2}),
    Case(name="429 with Retry-After, then well", arrange=fault("*", status=429, retry_after=1, times=2),
         outcome="complete"),
    Case(name="429 for ever", arrange=fault("nodes", status=429, retry_after=1, reason="TooManyRequests"),
         outcome="cluster-unavailable", says="429 TooManyRequests"),
    Case(name="429 with an hour of Retry-After", arrange=fault("nodes", status=429, retry_after=3600),
         outcome="cluster-unavailable", says="429"),
    Case(name="500 on nodes for ever", arrange=fault("nodes", status=500), outcome="cluster-unavailable", says="500"),
    Case(name="503 on daemonsets for ever", arrange=fault("daemonsets", status=503, reason="ServiceUnavailable"),
         outcome="DaemonSet: error", says="503 ServiceUnavailable"),
    Case(name="504 on pods, then well", arrange=fault("pods", status=504, retry_after=1, times=1), outcome="complete"),
    Case(name="nodes hang", arrange=fault("nodes", hang=True), outcome="cluster-timeout",
         says="did not send all nodes within 0.6 seconds", options={"timeout_seconds": 0.6}),
    Case(name="everything hangs", arrange=fault("*", hang=True), outcome="cluster-timeout",
         options={"timeout_seconds": 0.6}),
    Case(name="pods hang", arrange=fault("pods", hang=True), outcome="Pod: error",
         says="no complete answer within 0.6 seconds", options={"timeout_seconds": 0.6}),
    Case(name="connection reset, once", arrange=fault("nodes", disconnect=True, times=1), outcome="complete"),
    Case(name="connection reset, for ever", arrange=fault("nodes", disconnect=True), outcome="cluster-unreachable",
         says="hung up"),
    Case(name="body cut, once", arrange=fault("nodes", cut=True, times=1), outcome="complete"),
    Case(name="body cut, for ever", arrange=fault("nodes", cut=True), outcome="cluster-answer-invalid",
         says="broke off in the middle"),
    Case(name="body cut on pods, for ever", arrange=fault("pods", cut=True), outcome="Pod: error", says="broke off"),
    Case(name="malformed nodes", arrange=fault("nodes", body=b'{"kind":"NodeList","items":[{"metadata"'),
         outcome="cluster-answer-invalid", says="list of nodes cannot be read"),
    Case(name="malformed pods", arrange=fault("pods", body=b'{"kind":"PodList","items":[{"metadata":{"name":7}}]}'),
         outcome="Pod: error", says="items[0].metadata.name"),
    Case(name="malformed pods in protobuf", arrange=fault("pods", body=b"k8s\0\x0a\xff\xff\xff\xff not protobuf",
         content_type="application/vnd.kubernetes.protobuf"), outcome="Pod: error", says="list of pods cannot be read"),
    Case(name="malformed nodes in protobuf", arrange=fault("nodes", body=b"k8s\0\x0a\xff\xff\xff\xff not protobuf",
         content_type="application/vnd.kubernetes.protobuf"), outcome="cluster-answer-invalid",
         says="list of nodes cannot be read"),
    Case(name="a login page instead of the API", arrange=fault("*", body=b"<html>Sign in</html>",
         content_type="text/html"), outcome="cluster-answer-invalid", says="proxy or login page"),
    Case(name="another kind than asked for", arrange=fault("nodes", body=b'{"kind":"PodList","items":[]}'),
         outcome="cluster-answer-invalid", says="expected NodeList, found PodList"),
    Case(name="the same page again and again", arrange=fault("pods",
         body=b'{"kind":"PodList","metadata":{"continue":"same"},"items":[]}'), outcome="Pod: error",
         says="again and again"),
    Case(name="token revoked", arrange=_no_tokens, outcome="cluster-unauthorized"),
    Case(name="certificate for another host", tls="other-host", outcome="cluster-unreachable",
         says="tls-server-name"),
    Case(name="certificate expired", tls="expired", outcome="cluster-unreachable", says="has expired"),
    Case(name="certificate of an unknown CA", tls="unknown-ca", outcome="cluster-unreachable", says="not trusted here"),
    Case(name="nothing listens", arrange=lambda server: server.stop(), outcome="cluster-unreachable",
         says="connection refused"),
]  # fmt: skip


async def _restarted(following: Following, change: Callable[[FakeKubernetes], None] = lambda _: None) -> None:
    server = following.server
    await asyncio.to_thread(server.stop)
    change(server)
    server.start()


async def _probe(following: Following) -> None:
    """Let something happen that only a watch that works, or a new list, can tell of."""
    following.server.state.put(pod("probe", on="gpu-a"))


def _after(*steps: Callable[[FakeKubernetes], object]) -> Trouble:
    async def trouble(following: Following) -> None:
        for step in steps:
            step(following.server)

    return trouble


def _ended(plural: str = "*") -> Callable[[FakeKubernetes], object]:
    return lambda server: server.watches.end(plural)


def _said(plural: str, *events: Any) -> Callable[[FakeKubernetes], object]:
    return lambda server: server.watches.say(plural, *events)


def _well(server: FakeKubernetes) -> None:
    server.faults.clear()
    server.denied = {"secrets"}
    server.tokens = {"reader-token-0000": "reader", "admin-token-0000": "admin"}


def _compacted(server: FakeKubernetes) -> None:
    server.state.put(node("gpu-b"))
    server.state.compact()
    server.watches.end("pods")


async def _gone(following: Following) -> None:
    await asyncio.to_thread(following.server.stop)


async def _back(following: Following) -> None:
    _well(following.server)
    following.server._tls = "good"
    await asyncio.to_thread(following.server.stop)
    following.server.start()


async def _mended(following: Following) -> None:
    _well(following.server)


async def _other_certificate(following: Following) -> None:
    await _restarted(following, lambda server: setattr(server, "_tls", "other-host"))


async def _restored(following: Following) -> None:
    """etcd was restored from a backup: the server counts on from an older revision."""

    def change(server: FakeKubernetes) -> None:
        with server.state.lock:
            server.state.history.clear()
            server.state.revision, server.state.compacted = 100, 0

    await _restarted(following, change)
    past = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "100"}}
    await following.watching("pods")
    following.server.watches.say("pods", {"type": "BOOKMARK", "object": past})


async def _out_of_order(following: Following) -> None:
    state = following.server.state
    old = state.get("Pod", "busy-1", "default")
    version = state.put(pod("busy-1", on="gpu-b"))["metadata"]["resourceVersion"]
    await following.until(lambda now: version in {item.metadata.resourceVersion for item in now.pods})
    following.server.watches.say("pods", {"type": "MODIFIED", "object": old}, {"type": "DELETED", "object": old})


async def _clock_jumps(following: Following) -> None:
    wall = iter((NOW - timedelta(days=1), NOW + timedelta(days=1)))
    following.mirror._clock = lambda: next(wall, NOW)


def _node_deleted(server: FakeKubernetes) -> None:
    server.state.delete("Node", "gpu-a")
    server.state.put(pod("late", on="gpu-a"))


WATCHING = [
    Watched(name="all is well", trouble=_after()),
    Watched(name="401, also with fresh credentials", trouble=_after(_no_tokens, _ended()), mended=_mended,
            outcome="cluster-unauthorized", says="does not accept the credentials"),
    Watched(name="403 on pods", trouble=_after(_deny("pods"), _ended()), mended=_mended,
            outcome="Pod: forbidden", says='resources: ["pods"]'),
    Watched(name="403 on nodes", trouble=_after(_deny("nodes"), _ended()), mended=_mended,
            outcome="cluster-forbidden", says='resources: ["nodes"]'),
    Watched(name="403 on watching pods only", trouble=_after(_deny("watch pods"), _ended()), mended=_mended),
    Watched(name="404 on an optional API", outcome="ClusterQueue: not-found, ResourceFlavor: not-found, "
            "Workload: not-found", says="does not serve the API group kueue.x-k8s.io",
            trouble=_after(lambda server: server.state.remove_group("kueue.x-k8s.io"), _ended())),
    Watched(name="410 in mid-watch, as a status", trouble=_after(fault("pods", status=410, reason="Expired",
            only_watch=True, times=1), _ended("pods"))),
    Watched(name="410 in mid-watch, inside a 200", trouble=_after(_compacted)),
    Watched(name="another ERROR inside a 200", trouble=_after(_said("pods", {"type": "ERROR", "object": {
            "kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd is slow"}}))),
    Watched(name="429 with Retry-After, then well", trouble=_after(fault("pods", status=429, retry_after=5, times=3),
            _ended("pods"))),
    Watched(name="429 for ever on pods", trouble=_after(fault("pods", status=429, retry_after=1), _ended("pods")),
            mended=_mended, outcome="Pod: error", says="429"),
    Watched(name="500 for ever on nodes", trouble=_after(fault("nodes", status=500), _ended("nodes")), mended=_mended,
            outcome="cluster-unavailable", says="500"),
    Watched(name="503, then well", trouble=_after(fault("*", status=503, times=30), _ended())),
    Watched(name="504, the revision is in the future", trouble=_after(fault("pods", status=504, times=1,
            only_watch=True, message="Timeout: Too large resource version: 9, current: 3"), _ended("pods"))),
    Watched(name="a watch goes silent", trouble=_after(lambda server: server.watches.mute("pods")),
            pace=Pace(silence=0.4)),
    Watched(name="pods hang", trouble=_after(fault("pods", hang=True), _ended("pods")), mended=_mended,
            pace=Pace(silence=0.4), outcome="Pod: error", says="stopped answering"),
    Watched(name="connection reset, once", trouble=_after(fault("pods", disconnect=True, times=1), _ended("pods"))),
    Watched(name="connection reset, for ever", trouble=_after(fault("nodes", disconnect=True), _ended("nodes")),
            mended=_mended, outcome="cluster-unreachable", says="hung up"),
    Watched(name="body cut within a change", trouble=_after(_said("pods", b'{"type":"ADDED","object":{"meta'),
            _ended("pods"))),
    Watched(name="malformed change, once", trouble=_after(_said("pods", b"<html>Sign in</html>\n"))),
    Watched(name="malformed, for ever", trouble=_after(fault("pods", body=b"<html>Sign in</html>\n"), _ended("pods")),
            mended=_mended, outcome="Pod: error", says="proxy or login page"),
    Watched(name="a certificate that does not match", trouble=_other_certificate, mended=_back,
            outcome="cluster-unreachable", says="tls-server-name"),
    Watched(name="the server goes away and comes back", trouble=_gone, mended=_back,
            outcome="cluster-unreachable", says="connection refused"),
    Watched(name="the server restarts", trouble=_restarted),
    Watched(name="the server comes back with an older past", trouble=_restored),
    Watched(name="the clock jumps", trouble=_clock_jumps),
    Watched(name="events out of order", trouble=_out_of_order),
    Watched(name="a node deleted while its pods still come", trouble=_after(_node_deleted)),
]  # fmt: skip


def outcome_of(collected: Collected) -> str:
    """``complete``, or what is unknown and why."""
    return ", ".join(f"{item.kind}: {item.reason}" for item in collected.unreadable) or "complete"


async def read_once(case: Case, directory: Path) -> Effect:
    """What becomes of a cluster that is read once."""
    tls: Any = case.tls
    server = FakeKubernetes(tls=tls).start()
    try:
        for item in small_cluster():
            server.state.put(item)
        connector = kubeconfig_connector(server, directory / "lab", **case.options)
        case.arrange(server)
        return await _effect(connector, directory)
    finally:
        await asyncio.to_thread(server.stop)


async def followed(case: Watched, directory: Path) -> Effect:
    """What becomes of a cluster that is followed."""
    with FakeKubernetes() as server:
        for item in small_cluster():
            server.state.put(item)
        async with Following(server, directory / "lab", pace=case.pace) as following:
            await following.watching("nodes", "pods", "workloads")
            await case.trouble(following)
            if case.outcome == "complete":
                await _probe(following)
                await following.until(
                    lambda now: "probe" in names(now.pods) and outcome_of(now) == "complete", step=0.25
                )
            else:
                await _reached(following, case.outcome)
            effect = await _effect(_Mirrored(following), directory)
            if case.mended is not None:
                await case.mended(following)
                await _probe(following)
                found = await following.until(
                    lambda now: "probe" in names(now.pods) and outcome_of(now) == "complete", step=2.0
                )
                effect = msgspec.structs.replace(effect, after=outcome_of(found))
            return effect


async def _reached(following: Following, wanted: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await _present(following) != wanted:
            await following._go_on(2.0)


async def _present(following: Following) -> str:
    try:
        return outcome_of(await following.mirror.collect())
    except AdvisorError as error:
        return error.code


class _Mirrored:
    """The connector of a followed cluster."""

    name, kind, notes = "lab", "kubeconfig", ()

    def __init__(self, following: Following) -> None:
        self._following = following

    async def collect(self) -> Collected:
        return await self._following.mirror.collect()

    async def close(self) -> None:
        """The mirror is closed by the one who made it."""


class _Told(Channel):
    def _note(self, verb: str, alert: AlertView) -> None:
        headline = str(alert_message(alert, "en").blocks[0]["text"]["text"])
        self.log.append((verb, alert.finding.rule, headline))


async def _effect(connector: Any, directory: Path) -> Effect:
    """Audit twice, beside a cluster that is well; ask over HTTP; look into the channel."""
    channel, clock = _Told(), Clock()
    with FakeKubernetes() as fine:
        for item in small_cluster():
            fine.state.put(item)
        other = kubeconfig_connector(fine, directory / "fine")
        other._settings = msgspec.structs.replace(other._settings, name="fine")  # type: ignore[attr-defined]
        async with _running([connector, other], channel, clock, directory) as (advisor, client):
            for _ in range(2):
                lab = await advisor.run_audit("lab", trigger="test")
                await advisor.deliver()
                clock.advance(300)
            answer = await client.post("/v1/clusters/fine/audits")
            beside = await advisor.run_audit("fine", trigger="test")
            assert answer.status_code == 202
            health = {item["name"]: item for item in (await client.get("/v1/clusters")).json()["items"]}
            shown = (await client.get(f"/v1/audits/{lab.id}")).json()
    own = [item for item in channel.log if item[1].startswith("cluster-")]
    return Effect(
        audit=_audit(lab),
        words=shown["error"]["detail"] if shown["error"] else " ".join(_details(shown["report"]["unreadable"])),
        state=health["lab"]["state"],
        unreadable=health["lab"]["unreadable"],
        told=[f"{verb}: {headline}" for verb, _, headline in own],
        rules=[rule for _, rule, _ in own],
        findings=[item.rule for item in lab.report.findings] if lab.report else [],
        others=_well_audited(beside) and health["fine"]["state"] == "ok",
    )


def _details(unreadable: Iterable[dict[str, Any]]) -> list[str]:
    return [str(item["detail"]) for item in unreadable]


def _audit(view: AuditView) -> str:
    if view.error is not None:
        return view.error.code
    assert view.report is not None
    assert view.report.failed_rules == ()
    return ", ".join(f"{item.kind}: {item.reason}" for item in view.report.unreadable) or "complete"


def _well_audited(view: AuditView) -> bool:
    return view.report is not None and "idle-gpu-node" in {item.rule for item in view.report.findings}


@asynccontextmanager
async def _running(
    connectors: "list[Connector]", channel: Channel, clock: Clock, directory: Path
) -> AsyncIterator[tuple[GpuAdvisor, httpx.AsyncClient]]:
    settings = Settings(
        database_url=f"sqlite+aiosqlite:///{directory}/state.db", alerts=AlertSettings(rules=frozenset())
    )
    advisor = GpuAdvisor(settings, connectors=connectors, prices=PriceBook(), notifier=channel, clock=clock)
    await advisor.open()
    try:
        app: Any = build(settings, advisor=advisor)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield advisor, client
    finally:
        await advisor.stop()


async def table(directory: Path) -> list[tuple[str, str, Effect]]:
    """Every case with its effect; each runs once."""
    stamina.set_testing(True, attempts=100, cap=True)
    try:
        rows: list[tuple[str, str, Effect]] = []
        for case in LISTING:
            rows.append(("list", case.name, await read_once(case, _place(directory, len(rows)))))
        for watched in WATCHING:
            rows.append(("watch", watched.name, await followed(watched, _place(directory, len(rows)))))
        return rows
    finally:
        stamina.set_testing(False)


def _place(directory: Path, number: int) -> Path:
    place = directory / str(number)
    place.mkdir(parents=True)
    return place


def row(when: str, name: str, effect: Effect) -> str:
    """One line of the table."""
    seen = effect.state + (f", unreadable: {', '.join(effect.unreadable)}" if effect.unreadable else "")
    told = " / ".join(effect.told) or "nothing"
    after = f"; afterwards {effect.after}" if effect.after else ""
    return f"{when:<5} {name:<42} audit: {effect.audit}{after} | API: {seen} | Slack: {told} | {effect.words}"
