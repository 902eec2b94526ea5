"""``POST /v1/plan/sharing`` over real HTTP."""

import json
from typing import Any

import httpx
import pytest

from service.main import main
from tests.service.api.test_problems import problem

SMALL = {
    "models": [{"name": "model-1", "replicas": 12, "memory_gib": 3.0, "isolation": "fault"}],
    "gpus": ["A100-40GB"],
}


async def test_the_plan_is_what_the_command_prints(
    client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    response = await client.post("/v1/plan/sharing", json=SMALL)
    assert response.status_code == 200, response.text
    capsys.readouterr()
    main(["plan", "--model", "3GiBx12", "--gpu", "A100-40GB", "--isolation", "fault", "--format", "json"])
    assert response.json() == json.loads(capsys.readouterr().out)
    assert (response.json()["gpus"], response.json()["optimal"], response.json()["whole_gpus"]) == (2, True, 12)


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "instead of 12"), ("es", "en lugar de 12"), ("it", "al posto di 12")]
)
async def test_the_words_are_in_the_language(client: httpx.AsyncClient, lang: str, words: str) -> None:
    response = await client.post("/v1/plan/sharing", params={"lang": lang}, json=SMALL)
    assert words in response.json()["summary"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"models": []}, "models"),
        ({"models": [{"name": "a", "memory_gib": -1}]}, "models[0].memory_gib"),
        ({"models": [{"name": "a", "memory_gib": 1, "replicas": 0}]}, "models[0].replicas"),
        ({"models": [{"name": "a", "memory_gib": 1, "load": 2}]}, "models[0].load"),
        ({"models": [{"name": "a", "memory_gib": 1}, {"name": "a", "memory_gib": 1}]}, "models[1].name"),
        ({"models": [{"name": "a", "memory_gib": 1, "memory_gb": 1}]}, "models[0].memory_gb"),
        ({"models": [{"name": "a", "memory_gib": 1}], "gpus": ["L4", "X9000"]}, "gpus[1]"),
        ({"models": [{"name": "a", "memory_gib": 1}], "gpus": ["L4"], "prices": {"L4": -1}}, "prices.L4"),
        ({"models": [{"name": "a", "memory_gib": 1, "profile": "1g.5gb"}], "gpus": ["L4"]}, "models[0].profile"),
    ],
)
async def test_a_wrong_value_is_named(client: httpx.AsyncClient, body: dict[str, Any], named: str) -> None:
    response = await client.post("/v1/plan/sharing", json=body)
    found = problem(response, 400, "plan-invalid")
    assert found["errors"][0]["path"] == f"body.{named}"
    assert named in found["detail"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"models": [{"name": "a", "precision": "fp17"}]}, "precision"),
        ({"models": [{"name": "a"}], "colour": 1}, "colour"),
    ],
)
async def test_a_body_of_another_shape_is_refused(client: httpx.AsyncClient, body: dict[str, Any], named: str) -> None:
    found = problem(await client.post("/v1/plan/sharing", json=body), 400, "request-invalid")
    assert named in found["detail"]


async def test_what_is_missing_is_asked_for(client: httpx.AsyncClient) -> None:
    body = {"models": [{"name": "llm", "parameters_b": 70}], "gpus": ["H100"]}
    answer = (await client.post("/v1/plan/sharing", json=body)).json()
    assert answer["needs_more"] == ["models[0].precision"]
    assert (answer["complete"], answer["sizings"][0]["fits"]) == (False, None)
