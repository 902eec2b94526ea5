"""The failure table: what each trouble of an API server becomes. Run with ``-s`` to see it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rules.errors import AdvisorError
from service.clusters import ClusterSettings, connect
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_config import Tls
from tests.service.clusters.conftest import kubeconfig_connector
from tests.service.clusters.objects import small_cluster

Arrange = Callable[[FakeKubernetes], None]


class Case(msgspec.Struct, kw_only=True):
    """One trouble.

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


def fault(plural: str, **fields: Any) -> Arrange:
    return lambda server: server.faults.add(plural, **fields)


def _deny(resource: str) -> Arrange:
    return lambda server: server.denied.add(resource)


def _no_tokens(server: FakeKubernetes) -> None:
    for token in list(server.tokens):
        server.tokens[token + "-replaced"] = server.tokens.pop(token)


CASES = [
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


_seen: dict[str, tuple[str, str]] = {}


async def outcome(case: Case, directory: Path) -> tuple[str, str]:
    """What becomes of a case: outcome and words. Every case runs once, however many tests look at it."""
    if case.name not in _seen:
        _seen[case.name] = await _run(case, directory)
    return _seen[case.name]


async def _run(case: Case, directory: Path) -> tuple[str, str]:
    tls: Any = case.tls
    server = FakeKubernetes(tls=tls).start()
    try:
        for item in small_cluster():
            server.state.put(item)
        connector = kubeconfig_connector(server, directory, **case.options)
        case.arrange(server)
        try:
            collected = await connector.collect()
        except AdvisorError as error:
            return error.code, str(error)
    finally:
        await asyncio.to_thread(server.stop)
    for unknown in collected.unreadable:
        assert unknown.kind not in collected.read_kinds
    assert collected.nodes
    named = [f"{item.kind}: {item.reason}" for item in collected.unreadable]
    return ", ".join(named) or "complete", " ".join(item.detail for item in collected.unreadable)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_trouble_has_a_typed_and_readable_outcome(case: Case, tmp_path: Path) -> None:
    found, words = await outcome(case, tmp_path)
    assert found == case.outcome
    assert case.says in words
    assert "token-0000" not in words


async def test_names_that_do_not_resolve(tmp_path: Path) -> None:
    with FakeKubernetes() as server:
        file = server.kubeconfig(tmp_path)
        file.write_text(file.read_text(encoding="utf-8").replace(server.url, "https://no-such-host.invalid:6443"))
        with pytest.raises(AdvisorError, match="cannot be resolved") as caught:
            await connect(ClusterSettings(name="lab", kubeconfig=str(file))).collect()
    assert caught.value.code == "cluster-unreachable"


@pytest.mark.parametrize(("tls", "scheme", "says"), [("off", "https", "does not speak TLS"), ("good", "http", "")])
async def test_the_wrong_scheme(tmp_path: Path, tls: Tls, scheme: str, says: str) -> None:
    with FakeKubernetes(tls=tls) as server:
        file = server.kubeconfig(tmp_path)
        wrong = f"{scheme}://127.0.0.1:{server.port}"
        file.write_text(file.read_text(encoding="utf-8").replace(server.url, wrong))
        with pytest.raises(AdvisorError) as caught:
            await connect(ClusterSettings(name="lab", kubeconfig=str(file))).collect()
    assert caught.value.code == "cluster-unreachable"
    assert says in str(caught.value)


async def test_prints_the_failure_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(case.name, *await outcome(case, tmp_path / str(index))) for index, case in enumerate(CASES)]
    with capsys.disabled():
        print("\n" + "\n".join(f"{name:<40} {found:<26} {words}" for name, found, words in rows))
    assert {name: found for name, found, _ in rows} == {case.name: case.outcome for case in CASES}
