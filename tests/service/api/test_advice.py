"""``POST /v1/advise`` over real HTTP."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.main import main
from tests.service.api.test_problems import problem

LLM: dict[str, Any] = {
    "kind": "inference",
    "models": [{"name": "llm", "parameters_b": 70, "precision": "fp8"}],
    "gpu": ["H100"],
    "autoscaling": True,
}


async def test_the_advice_is_what_the_command_prints(
    client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    response = await client.post("/v1/advise", json=LLM)
    assert response.status_code == 200, response.text
    file = tmp_path / "request.json"
    file.write_text(json.dumps(LLM), "utf-8")
    capsys.readouterr()
    main(["advise", "--file", str(file), "--format", "json"])
    printed = json.loads(capsys.readouterr().out)
    assert {**response.json(), "providers": None, "found": None} == {**printed, "providers": None, "found": None}
    assert response.json()["kubernetes"]["verdict"] == "yes"


@pytest.mark.parametrize(("lang", "words"), [("en", "is worth it"), ("es", "compensa"), ("it", "conviene")])
async def test_the_words_are_in_the_language(client: httpx.AsyncClient, lang: str, words: str) -> None:
    response = await client.post("/v1/advise", params={"lang": lang}, json=LLM)
    assert words in response.json()["kubernetes"]["text"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"kind": "batch", "gpu": ["L4", "X9000"]}, "gpu[1]"),
        ({"kind": "batch", "gpu": ["L4"], "region": "mars"}, "region"),
        ({"kind": "batch", "gpu": ["L4"], "models": [{"name": "a", "memory_gib": -1}]}, "models[0].memory_gib"),
    ],
)
async def test_a_wrong_value_is_named(client: httpx.AsyncClient, body: dict[str, Any], named: str) -> None:
    found = problem(await client.post("/v1/advise", json=body), 400, "advice-invalid")
    assert found["errors"][0]["path"] == f"body.{named}"


async def test_a_body_of_another_shape_is_refused(client: httpx.AsyncClient) -> None:
    found = problem(await client.post("/v1/advise", json={"kind": "game"}), 400, "request-invalid")
    assert "kind" in found["detail"]


async def test_a_cluster_is_priced_elsewhere(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/clusters/prod/compare", params={"lang": "it", "region": "eu"})
    assert response.status_code == 200, response.text
    found = response.json()
    assert [shape["gpus"] for shape in found["shapes"]] == [2, 8, 1]
    assert found["unpriced"] == 1
    assert "senza prezzo noto: 1" in found["remarks"][0]["text"]
    assert all(place["difference_usd_month"] is None for place in found["places"])
    assert any(place["usd_month"] for place in found["places"])


async def test_an_unknown_cluster_and_an_unknown_region_are_said(client: httpx.AsyncClient) -> None:
    problem(await client.get("/v1/clusters/nowhere/compare"), 404, "cluster-unknown")
    problem(await client.get("/v1/clusters/prod/compare", params={"region": "mars"}), 400, "advice-invalid")
