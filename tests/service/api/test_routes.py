"""The resources over real HTTP."""

import json
import shutil
import subprocess

import httpx
import pytest

from rules.checks import RULES
from tests.service.api.doubles import DoubleAdvisor

QUESTION = "¿puedo ejecutar más de una carga por GPU?"

ANSWER_KEYS = [
    *("language", "kind", "topic", "also_topics", "provider", "field", "filters", "entities", "intent", "cause"),
    *("verdict", "abstain", "clarify", "text", "evidence", "follow_ups"),
]


async def test_a_question_is_answered_with_every_key_of_the_vocabulary(
    client: httpx.AsyncClient, advisor: DoubleAdvisor
) -> None:
    response = await client.post("/v1/ask", json={"text": QUESTION})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    assert set(ANSWER_KEYS) <= set(response.json())
    assert response.json()["text"] == "Sí, **puedes**."
    assert advisor.asked == [(QUESTION, None)]


async def test_the_body_is_json_whatever_its_content_type(client: httpx.AsyncClient) -> None:
    body = json.dumps({"text": QUESTION}, ensure_ascii=False).encode()
    for content_type in ("application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8", None):
        headers = {"content-type": content_type} if content_type else {}
        response = await client.post("/v1/ask", content=body, headers=headers)
        assert response.status_code == 200, (content_type, response.text)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
async def test_the_command_of_the_readme_works_with_curl(client: httpx.AsyncClient, advisor: DoubleAdvisor) -> None:
    import asyncio

    process = await asyncio.create_subprocess_exec(
        *("curl", "-s", f"{client.base_url}/v1/ask", "-d", json.dumps({"text": QUESTION}, ensure_ascii=False)),
        stdout=subprocess.PIPE,
        env={"NO_PROXY": "*"},
    )
    out, _ = await process.communicate()
    assert json.loads(out)["language"] == "es"
    assert advisor.asked == [(QUESTION, None)]


async def test_the_language_of_the_reader_is_passed_on(client: httpx.AsyncClient, advisor: DoubleAdvisor) -> None:
    response = await client.post("/v1/ask", json={"text": "hola", "language": "it"})
    assert response.json()["language"] == "it"
    assert advisor.asked == [("hola", "it")]


async def test_clusters_are_listed(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/clusters")
    assert response.json() == {
        "items": [
            {
                "name": "prod",
                "state": "ok",
                "gpu_nodes": 3,
                "open_findings": {"medium": 5},
                "audited_at": 1.0,
                "error": None,
                "unreadable": [],
                "notes": [],
            }
        ]
    }


async def test_an_audit_is_started_in_the_background_and_read_at_its_location(client: httpx.AsyncClient) -> None:
    started = await client.post("/v1/clusters/prod/audits")
    assert started.status_code == 202
    assert started.json()["state"] == "queued"
    assert started.json()["trigger"] == "api"
    audit = (await client.get(started.headers["location"])).json()
    assert audit["state"] == "done"
    report = audit["report"]
    assert report["findings"][0]["rule"] == "idle-gpu-node"
    assert report["findings"][0]["objects"] == [{"kind": "Node", "namespace": "", "name": "gpu-1"}]
    assert report["findings"][0]["cost"]["usd_hour"] == 1.5
    (unread,) = report["unreadable"]
    assert unread == {"kind": "Event", "reason": "forbidden", "detail": "events is forbidden", "namespaces": []}
    assert report["skipped_rules"] == [{"rule": "gpu-pod-pending", "missing": ["Event"]}]


async def test_findings_speak_the_language_asked_for_by_query_or_header(client: httpx.AsyncClient) -> None:
    await client.post("/v1/clusters/prod/audits")

    async def title(path: str, accept: str | None = None) -> str:
        response = await client.get(path, headers={"accept-language": accept} if accept else {})
        document = response.json()
        found = document["items"] if "items" in document else document["report"]["findings"]
        return str(found[0]["title"])

    for path in ("/v1/audits/audit-1", "/v1/findings"):
        english = await title(path)
        spanish, italian = await title(path + "?lang=es"), await title(path + "?lang=it")
        assert len({english, spanish, italian}) == 3
        assert await title(path, "fr, it;q=0.9, en;q=0.3") == italian
        assert await title(path, "de-DE, *;q=0.5") == english
        assert await title(path + "?lang=es", "it") == spanish


async def test_pages_of_findings_join_to_the_whole_by_link_header_or_cursor(
    client: httpx.AsyncClient, advisor: DoubleAdvisor
) -> None:
    ids: list[str] = []
    path = "/v1/findings?limit=2&severity=low&cluster=prod"
    while path:
        response = await client.get(path)
        ids += [item["id"] for item in response.json()["items"]]
        following = response.links.get("next", {}).get("url", "")
        assert bool(following) == (response.json()["next_cursor"] is not None)
        path = str(following)
    assert ids == [view.id for view in advisor.views]
    assert all(item["severity"] == "low" and item["cluster"] == "prod" for item in advisor.filters)
    assert len(advisor.filters) == 3


async def test_rules_are_listed_and_explained(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/v1/rules?lang=it")).json()["items"]
    assert [item["id"] for item in listed] == [rule.id for rule in RULES]
    rule = (await client.get("/v1/rules/idle-gpu-node")).json()
    assert rule["seeds"] == ["S23", "S24"]
    assert "Why:" in rule["doc"]
    assert set(rule["words"]["name"]) == {"en", "es", "it"}
    assert "default" in rule["remedies"]


async def test_live_always_answers_and_ready_names_its_reasons(
    client: httpx.AsyncClient, advisor: DoubleAdvisor
) -> None:
    assert (await client.get("/health/live")).json() == {"status": "ok"}
    assert (await client.get("/health/ready")).status_code == 200
    advisor.problems = ["the database does not answer", "the schedule is not running"]
    response = await client.get("/health/ready")
    assert response.status_code == 503
    assert [item["detail"] for item in response.json()["errors"]] == advisor.problems
    assert (await client.get("/health/live")).status_code == 200


async def test_the_front_page_says_what_to_try_at_this_very_address(client: httpx.AsyncClient) -> None:
    response = await client.get("/")
    assert response.headers["content-type"].startswith("text/plain")
    assert f"curl -s {client.base_url}/v1/ask" in response.text.replace("127.0.0.1", str(client.base_url.host))


async def test_metrics_count_requests_by_route_not_by_address(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await client.get(f"/v1/audits/none-{number}")
    text = (await client.get("/metrics")).text
    lines = [line for line in text.splitlines() if line.startswith("gpu_advisor_http_requests_total")]
    assert any("/v1/audits/{audit_id" in line for line in lines)
    assert not any("none-" in line for line in lines)


async def test_every_response_carries_a_request_id_and_keeps_a_sane_one_that_was_sent(
    client: httpx.AsyncClient,
) -> None:
    sent = await client.get("/health/live", headers={"x-request-id": "trace-42"})
    assert sent.headers["x-request-id"] == "trace-42"
    made = await client.get("/health/live", headers={"x-request-id": "a b"})
    assert made.headers["x-request-id"] not in ("", "a b")
    assert made.headers["x-content-type-options"] == "nosniff"


async def test_readiness_is_told_in_the_language_of_the_reader(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/clusters/prod/readiness", headers={"accept-language": "es"})
    assert response.status_code == 200
    [gang] = response.json()["requirements"]
    assert (gang["topic"], gang["state"], gang["name"]) == (
        "gang_scheduling",
        "not_met",
        "Planificación en grupo (gang)",
    )
    assert gang["objects"] == [{"kind": "PyTorchJob", "namespace": "train", "name": "pretrain"}]
    unknown = await client.get("/v1/clusters/none/readiness")
    assert (unknown.status_code, unknown.json()["known"]) == (404, ["prod"])
