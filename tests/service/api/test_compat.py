"""``POST /v1/compat`` over real HTTP."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.main import main
from tests.service.api.test_problems import problem

CASES = yaml.safe_load((Path(__file__).parents[2] / "data" / "compat_cases.yaml").read_text("utf-8"))
L4 = {"driver": "535.183.01", "image": "nvidia/cuda:12.8.1-base-ubuntu22.04", "gpu": "L4"}
KEYS = ("driver", "cuda", "image", "gpu", "vendor", "driver_cuda", "mig", "kernel_modules", "compute_capability")


async def verdict(client: httpx.AsyncClient, body: object, **options: Any) -> dict[str, Any]:
    response = await client.post("/v1/compat", json=body, **options)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def test_one_case_gives_what_the_command_prints(
    client: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = await verdict(client, {"id": 7, **L4})
    capsys.readouterr()
    main(["compat", "--format", "json", *(text for key, value in L4.items() for text in (f"--{key}", value))])
    assert answer == {"id": 7, **json.loads(capsys.readouterr().out)}
    assert answer["verdict"] == "ok_minor_compat"
    assert answer["reasons"][0]["source"].startswith("https://")


async def test_several_cases_are_judged_in_order_with_their_ids(client: httpx.AsyncClient) -> None:
    cases = [case for case in CASES if set(case) <= {*KEYS, "id", "expect", "also_ok", "why", "source"}][:500]
    assert len(cases) > 50
    sent = [{key: case[key] for key in ("id", *KEYS) if case.get(key) is not None} for case in cases]
    items = (await verdict(client, {"cases": sent}))["items"]
    assert [item["id"] for item in items] == [case["id"] for case in cases]
    wrong = [
        case["id"]
        for case, item in zip(cases, items, strict=True)
        if item["verdict"] not in (case["expect"], *case.get("also_ok", ()))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("query", "accept", "words"),
    [
        ("", "", "older than"),
        ("?lang=es", "it", "es anterior a"),
        ("", "fr, it;q=0.8", "è precedente a"),
    ],
)
async def test_the_words_are_in_the_language_asked_for(
    client: httpx.AsyncClient, query: str, accept: str, words: str
) -> None:
    response = await client.post(f"/v1/compat{query}", json=L4, headers={"accept-language": accept})
    assert words in response.text


async def test_a_missing_fact_is_unknown_not_an_error(client: httpx.AsyncClient) -> None:
    for case in ({"driver": "535.183.01"}, {"image": "nvidia/cuda:12.4.1-base"}, {"gpu": "h100", "cuda": "nonsense"}):
        assert (await verdict(client, case))["verdict"] == "unknown"


async def test_versions_may_be_numbers_and_a_configuration_decides_over_the_tag(client: httpx.AsyncClient) -> None:
    assert (await verdict(client, {"driver": 535, "cuda": 12.2}))["verdict"] == "ok"
    config = {"config": {"Env": ["CUDA_VERSION=13.0.1"]}}
    answer = await verdict(client, {**L4, "image_config": config})
    assert (answer["cuda"], answer["verdict"]) == ("13.0.1", "needs_forward_compat")
    assert answer["image"]["how"] == "config"


@pytest.mark.parametrize(
    ("body", "path", "detail"),
    [
        ({}, "body", "at least one of"),
        ({"cases": []}, "body.cases", "length >= 1"),
        ({"cases": [L4] * 501}, "body.cases", "length <= 500"),
        ({"cases": [L4, {}]}, "body.cases[1]", "at least one of"),
        ({"cases": [L4], "gpu": "h100"}, "body", "either `cases` or one case"),
        ({"cases": [L4, {"driver": []}]}, "body.cases[1].driver", "got `array`"),
        ({"cases": [{**L4, "driverr": "1"}]}, "body.cases[0]", "unknown field `driverr`"),
        ({**L4, "mig": "yes"}, "body.mig", "got `str`"),
        ({**L4, "arch": "riscv"}, "body.arch", "Invalid enum value 'riscv'"),
        ({**L4, "image_config": "x"}, "body.image_config", "got `str`"),
        ({"image": "x" * 1001}, "body.image", "length <= 1000"),
        ([L4], "body", "Expected `object`, got `array`"),
    ],
)
async def test_a_body_of_the_wrong_shape_names_the_field(
    client: httpx.AsyncClient, body: object, path: str, detail: str
) -> None:
    document = problem(await client.post("/v1/compat", json=body), 400, "request-invalid")
    assert [error["path"] for error in document["errors"]] == [path]
    assert detail in document["errors"][0]["detail"]


async def test_a_full_request_does_not_keep_others_waiting(client: httpx.AsyncClient) -> None:
    full = asyncio.create_task(verdict(client, {"cases": [{"id": number, **L4} for number in range(500)]}))
    await asyncio.sleep(0)
    begun = time.monotonic()
    assert (await client.get("/health/live")).status_code == 200
    assert time.monotonic() - begun < 5
    assert len((await full)["items"]) == 500
