"""Every error is a problem document (RFC 9457)."""

from typing import Any

import httpx
import pytest

from rules.errors import InternalFault
from service.app import BODY_LIMIT_BYTES
from service.errors import ClusterUnreachable, StoreUnavailable
from tests.service.api.doubles import DoubleAdvisor

SECRET = "postgresql://advisor:hunter2@db/advisor"


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The document, after checking what all of them have in common."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["type"] == f"urn:gpu-advisor:problem:{code}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["instance"] == f"urn:gpu-advisor:request:{response.headers['x-request-id']}"
    return document


async def test_an_unknown_route(client: httpx.AsyncClient) -> None:
    document = problem(await client.get("/v2/nothing"), 404, "route-unknown")
    assert "/v2/nothing" in document["detail"]


async def test_a_wrong_method_names_those_that_work(client: httpx.AsyncClient) -> None:
    response = await client.delete("/v1/ask")
    document = problem(response, 405, "method-not-allowed")
    assert "POST" in response.headers["allow"]
    assert "DELETE" in document["detail"]


@pytest.mark.parametrize(
    ("body", "path", "detail"),
    [
        ({"text": 5}, "body.text", "Expected `str`, got `int`"),
        ({}, "body", "missing required field `text`"),
        ({"text": ""}, "body.text", "matching regex"),
        ({"text": " \n\t"}, "body.text", "matching regex"),
        ({"text": "x" * 20_001}, "body.text", "length <= 20000"),
        ({"text": "hi", "language": "de"}, "body.language", "Invalid enum value 'de'"),
        ({"text": "hi", "txt": "hi"}, "body", "unknown field `txt`"),
        (["hi"], "body", "Expected `object`, got `array`"),
    ],
)
async def test_a_body_of_the_wrong_shape_names_the_field(
    client: httpx.AsyncClient, body: object, path: str, detail: str
) -> None:
    document = problem(await client.post("/v1/ask", json=body), 400, "request-invalid")
    assert [error["path"] for error in document["errors"]] == [path]
    assert detail in document["errors"][0]["detail"]
    assert path in document["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"text=hello", b"\xff\xfe", b"null", b'{"text": "a"} x', b"[" * 100_000])
async def test_a_body_that_is_no_question_at_all_is_the_callers_fault(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post("/v1/ask", content=body)
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_body_that_is_no_json_says_so(client: httpx.AsyncClient) -> None:
    document = problem(await client.post("/v1/ask", content=b"text=hello"), 400, "body-invalid")
    assert "JSON" in document["detail"]


async def test_a_body_over_the_limit(client: httpx.AsyncClient) -> None:
    document = problem(await client.post("/v1/ask", content=b"x" * (BODY_LIMIT_BYTES + 1)), 413, "body-too-large")
    assert str(BODY_LIMIT_BYTES) in document["detail"]


async def test_a_body_over_the_limit_without_a_declared_length(client: httpx.AsyncClient) -> None:
    async def endless() -> Any:
        for _ in range(BODY_LIMIT_BYTES // 50_000 + 2):
            yield b"x" * 50_000

    problem(await client.post("/v1/ask", content=endless()), 413, "body-too-large")


async def test_an_unknown_cluster_names_the_known_ones(client: httpx.AsyncClient) -> None:
    for response in (await client.post("/v1/clusters/prd/audits"), await client.get("/v1/findings?cluster=prd")):
        document = problem(response, 404, "cluster-unknown")
        assert document["known"] == ["prod"]
        assert "'prd'" in document["detail"]


async def test_an_unknown_rule_names_the_known_ones(client: httpx.AsyncClient) -> None:
    document = problem(await client.get("/v1/rules/idle"), 404, "rule-unknown")
    assert "idle-gpu-node" in document["known"]


async def test_an_unknown_audit(client: httpx.AsyncClient) -> None:
    problem(await client.get("/v1/audits/nope"), 404, "audit-unknown")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "query.limit"),
        ("limit=201", "query.limit"),
        ("limit=many", "query.limit"),
        ("severity=urgent", "query.severity"),
        ("state=closed", "query.state"),
        ("lang=de", "query.lang"),
    ],
)
async def test_a_wrong_filter_is_named_as_the_caller_spelled_it(
    client: httpx.AsyncClient, query: str, path: str
) -> None:
    document = problem(await client.get(f"/v1/findings?{query}"), 400, "request-invalid")
    assert [error["path"] for error in document["errors"]] == [path]


async def test_a_cursor_that_was_not_given_out(client: httpx.AsyncClient) -> None:
    problem(await client.get("/v1/findings?cursor=abc"), 400, "cursor-invalid")


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (ClusterUnreachable("prod", "connection refused", "Check the address."), 502, "cluster-unreachable"),
        (StoreUnavailable("connection refused"), 503, "store-unavailable"),
    ],
)
async def test_trouble_with_other_systems_is_not_our_fault(
    client: httpx.AsyncClient, advisor: DoubleAdvisor, fault: Exception, status: int, code: str
) -> None:
    advisor.fault = fault
    document = problem(await client.post("/v1/ask", json={"text": "hi"}), status, code)
    assert "connection refused" in document["detail"]


@pytest.mark.parametrize("fault", [RuntimeError(SECRET), InternalFault(SECRET), KeyError(SECRET)])
async def test_a_fault_of_ours_says_nothing_but_its_instance(
    client: httpx.AsyncClient, advisor: DoubleAdvisor, fault: Exception
) -> None:
    advisor.fault = fault
    response = await client.post("/v1/ask", json={"text": "hi"}, headers={"x-request-id": "trace-7"})
    document = problem(response, 500, "internal-fault")
    assert "trace-7" in document["detail"]
    assert "hunter2" not in response.text
    assert type(fault).__name__ not in response.text
