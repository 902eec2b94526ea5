"""The OpenAPI document."""

from typing import Any

import httpx
import jsonschema
import pytest
import yaml
from litestar.testing import AsyncTestClient

from service.app import build
from service.settings import Settings
from tests.service.api.doubles import DoubleAdvisor


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    response = await client.get("/schema/openapi.json")
    assert response.status_code == 200
    loaded: dict[str, Any] = response.json()
    return loaded


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, item) for path, methods in document["paths"].items() for method, item in methods.items()]


async def test_all_resources_are_in_it_and_nothing_else(document: dict[str, Any]) -> None:
    assert {f"{method.upper()} {path}" for path, method, _ in operations(document)} == {
        "POST /v1/ask",
        "GET /v1/clusters",
        "POST /v1/clusters/{name}/audits",
        "GET /v1/clusters/{name}/readiness",
        "GET /v1/clusters/{name}/compare",
        "GET /v1/audits/{audit_id}",
        "GET /v1/findings",
        "GET /v1/rules",
        "GET /v1/rules/{rule_id}",
        "POST /v1/answers/{answer_id}/feedback",
        "GET /v1/questions/unanswered",
        "DELETE /v1/questions/{question_id}",
        "POST /v1/compat",
        "POST /v1/plan/sharing",
        "POST /v1/advise",
        "GET /v1/providers",
        "GET /v1/providers/compare",
        "GET /v1/providers/{provider_id}",
        "GET /v1/offers",
        "GET /health/live",
        "GET /health/ready",
    }


async def test_every_operation_is_described_tagged_and_documents_its_problems(document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert len(operation["tags"]) == 1, where
        assert operation["tags"][0] in tags, where
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (where, parameter["name"])
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (where, status)
        if path != "/health/live":
            assert {"401", "500"} <= set(operation["responses"]), where
    assert "202" in document["paths"]["/v1/clusters/{name}/audits"]["post"]["responses"]
    assert {"400", "413"} <= set(document["paths"]["/v1/ask"]["post"]["responses"])
    assert "503" in document["paths"]["/health/ready"]["get"]["responses"]


async def test_every_reference_leads_somewhere_and_every_schema_is_one(document: dict[str, Any]) -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        if isinstance(node, list):
            return [found for value in node for found in references(value)]
        return []

    found = references(document)
    assert found
    for reference in found:
        node: Any = document
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


async def test_answers_and_reports_are_as_the_document_says(
    client: httpx.AsyncClient, document: dict[str, Any]
) -> None:
    started = await client.post("/v1/clusters/prod/audits")
    answered = {
        ("/v1/ask", "post", "200"): await client.post("/v1/ask", json={"text": "hi"}),
        ("/v1/clusters", "get", "200"): await client.get("/v1/clusters"),
        ("/v1/clusters/{name}/audits", "post", "202"): started,
        ("/v1/clusters/{name}/readiness", "get", "200"): await client.get("/v1/clusters/prod/readiness"),
        ("/v1/clusters/{name}/readiness", "get", "404"): await client.get("/v1/clusters/none/readiness"),
        ("/v1/audits/{audit_id}", "get", "200"): await client.get(started.headers["location"]),
        ("/v1/findings", "get", "200"): await client.get("/v1/findings"),
        ("/v1/rules", "get", "200"): await client.get("/v1/rules"),
        ("/v1/rules/{rule_id}", "get", "200"): await client.get("/v1/rules/idle-gpu-node"),
        ("/v1/compat", "post", "200"): await client.post("/v1/compat", json={"driver": "535.183.01", "cuda": "12.8"}),
        ("/v1/compat", "post", "400"): await client.post("/v1/compat", json={}),
        ("/health/live", "get", "200"): await client.get("/health/live"),
        ("/v1/rules/{rule_id}", "get", "404"): await client.get("/v1/rules/none"),
        ("/v1/ask", "post", "400"): await client.post("/v1/ask", json={}),
    }
    for (path, method, status), response in answered.items():
        assert str(response.status_code) == status
        content = document["paths"][path][method]["responses"][status]["content"]
        schema = next(iter(content.values()))["schema"]
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(response.json())


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/compat"])
async def test_the_examples_of_a_request_are_valid_and_work(
    document: dict[str, Any], client: httpx.AsyncClient, path: str
) -> None:
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": document["components"]}
    examples = content["schema"]["examples"]
    assert len(examples) >= 3
    for example in examples:
        jsonschema.Draft202012Validator(schema).validate(example)
        assert (await client.post(path, json=example)).status_code == 200


async def test_yaml_and_json_say_the_same(client: httpx.AsyncClient, document: dict[str, Any]) -> None:
    assert yaml.safe_load((await client.get("/schema/openapi.yaml")).text) == document
    assert (await client.get("/schema")).json() == document


async def test_no_page_of_the_service_loads_anything_from_elsewhere(client: httpx.AsyncClient) -> None:
    for path in ("/", "/schema", "/schema/openapi.yaml", "/metrics"):
        text = (await client.get(path)).text
        assert "<script" not in text
        assert "cdn" not in text.lower()


@pytest.mark.parametrize("token", [None, "secret"])
async def test_the_document_says_whether_a_token_is_needed(token: str | None) -> None:
    app = build(Settings(api_token=token), advisor=DoubleAdvisor())
    headers = {"host": "localhost", "authorization": f"Bearer {token}"}
    async with AsyncTestClient(app) as client:
        document = (await client.get("/schema/openapi.json", headers=headers)).json()
    assert bool(document.get("security")) == (token is not None)
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
