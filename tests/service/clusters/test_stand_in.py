"""The stand-in API server answers as the real one was recorded to."""

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes import kubernetes_config
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.objects import node, pod

RECORDED = Path("tests/data/apiserver")
ADMIN = {"Authorization": "Bearer admin-token-0000"}
READER = {"Authorization": "Bearer reader-token-0000"}


def recorded(name: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of a recording."""
    head, _, body = (RECORDED / f"{name}.txt").read_text(encoding="utf-8").partition("HTTP/1.1 ")[2].partition("\n\n")
    status, *lines = head.splitlines()
    return int(status.split()[0]), dict(line.split(": ", 1) for line in lines), body.strip()


def shape(value: Any) -> Any:
    """What must be equal: keys and constant words; numbers, tokens and names may differ."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return (
        re.sub(r"eyJ[\w-]+", "<token>", re.sub(r"\d+", "0", value)) if isinstance(value, str) else type(value).__name__
    )


@pytest.fixture(name="cluster")
def _cluster() -> Iterator[FakeKubernetes]:
    with FakeKubernetes(tls="off") as server:
        for index in range(24):
            server.state.put(pod(f"pod-{index:02}", on="gpu-a"))
        server.state.put(node("gpu-a"))
        yield server


async def ask(
    server: FakeKubernetes, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    async with (
        aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as session,
        session.get(f"{server.url}{path}", headers=ADMIN if headers is None else headers) as answer,
    ):
        return answer.status, {**answer.headers}, (await answer.text()).strip()


@pytest.mark.parametrize(
    ("name", "path", "headers"),
    [
        ("unauthorized", "/api/v1/nodes", {}),
        ("forbidden", "/api/v1/secrets", READER),
        ("forbidden-crd-kind", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues", READER),
        ("not-found-api", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues", ADMIN),
        ("not-found-object", "/api/v1/nodes/nope", ADMIN),
        ("continue-invalid", "/api/v1/pods?limit=2&continue=abc", ADMIN),
        ("list-rv-in-the-future", "/api/v1/nodes?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", ADMIN),
        ("field-selector-bad", "/api/v1/pods?fieldSelector=spec.foo%3Dx", ADMIN),
        ("version", "/version", ADMIN),
        ("watch-too-old", "/api/v1/nodes?watch=true&resourceVersion=5&timeoutSeconds=4", ADMIN),
    ],
)
async def test_answers_as_recorded(cluster: FakeKubernetes, name: str, path: str, headers: dict[str, str]) -> None:
    cluster.state.compact()
    cluster.state.remove_group("kueue.x-k8s.io")  # the recorded cluster had no such custom resources
    status, sent, body = await ask(cluster, path, headers)
    want_status, want_headers, want_body = recorded(name)
    assert status == want_status
    for header in ("Cache-Control", "Content-Type", "Retry-After", "X-Content-Type-Options"):
        assert header not in want_headers or sent.get(header, "").split(";")[0] == want_headers[header].split(";")[0]
    if want_body.startswith("{"):
        assert shape(json.loads(body)) == shape(json.loads(want_body))
        assert list(json.loads(body)) == list(json.loads(want_body))
    else:
        assert body == want_body


async def test_pages_with_opaque_tokens_of_one_revision(cluster: FakeKubernetes) -> None:
    _, _, first = await ask(cluster, "/api/v1/pods?limit=10")
    metadata = json.loads(first)["metadata"]
    assert metadata["remainingItemCount"] == 14
    cluster.state.put(pod("pod-99"))
    _, _, second = await ask(cluster, f"/api/v1/pods?limit=20&continue={metadata['continue']}")
    names = [item["metadata"]["name"] for item in json.loads(second)["items"]]
    assert names == [f"pod-{index:02}" for index in range(10, 24)]
    assert json.loads(second)["metadata"] == {"resourceVersion": metadata["resourceVersion"]}
    recording = json.loads(recorded("list-page-1")[2].split(',"items"')[0] + "}")
    assert list(recording) == list(json.loads(first))[:3]
    assert set(recording["metadata"]) == set(metadata)
    assert "kind" not in json.loads(first)["items"][0]


async def test_expired_token_gives_410_with_a_fresh_one(cluster: FakeKubernetes) -> None:
    _, _, first = await ask(cluster, "/api/v1/pods?limit=10")
    cluster.state.compact()
    status, _, body = await ask(cluster, f"/api/v1/pods?limit=10&continue={json.loads(first)['metadata']['continue']}")
    assert status == 410
    assert shape(json.loads(body)) == shape(json.loads(recorded("continue-expired")[2]))
    status, _, rest = await ask(cluster, f"/api/v1/pods?continue={json.loads(body)['metadata']['continue']}")
    assert status == 200
    assert len(json.loads(rest)["items"]) == 14


async def test_resource_version_zero_ignores_the_limit(cluster: FakeKubernetes) -> None:
    _, _, body = await ask(cluster, "/api/v1/pods?limit=2&resourceVersion=0")
    assert len(json.loads(body)["items"]) == 24
    assert set(json.loads(body)["metadata"]) == {"resourceVersion"}


async def test_compresses_only_large_answers(cluster: FakeKubernetes) -> None:
    accepts = {**ADMIN, "Accept-Encoding": "gzip"}
    _, small, _ = await ask(cluster, "/api/v1/pods", accepts)
    assert "Content-Encoding" not in small
    for index in range(400):
        cluster.state.put(pod(f"more-{index}"))
    _, large, body = await ask(cluster, "/api/v1/pods", accepts)
    assert large["Content-Encoding"] == "gzip"
    assert large["Vary"] == "Accept-Encoding"
    assert len(json.loads(body)["items"]) == 424


async def test_watch_tells_changes_and_ends_with_a_bookmark(cluster: FakeKubernetes) -> None:
    revision = cluster.state.revision
    cluster.state.put(node("gpu-a", {"changed": "yes"}))
    cluster.state.delete("Node", "gpu-a")
    _, _, body = await ask(
        cluster, f"/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=0.3"
    )
    events = [json.loads(line) for line in body.splitlines()]
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["resourceVersion"] == str(revision + 2)


async def test_streaming_list_marks_the_end_of_the_initial_events(cluster: FakeKubernetes) -> None:
    _, _, body = await ask(
        cluster,
        "/api/v1/nodes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&timeoutSeconds=0.3",
    )
    events = [json.loads(line) for line in body.splitlines()]
    assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_takes_a_client_certificate_for_a_user() -> None:
    with FakeKubernetes() as server:
        context = ssl.create_default_context()
        kubernetes_config._authority().configure_trust(context)
        kubernetes_config._client_certificate("reader").configure_cert(context)
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/version", ssl=context) as answer:
            assert answer.status == 200
        assert server.requests[-1].user == "reader"
