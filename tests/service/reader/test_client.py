"""The model is asked once, briefly and by schema; whatever it does, nothing worse than no answer comes of it."""

import asyncio
import json
from typing import Any

import prometheus_client
import pytest
import structlog

from service.reader import client
from service.reader.settings import ReaderSettings
from tests.fakes.model import WRONG_ENVELOPES, FakeModel
from tests.service.reader.conftest import Clock, Make

DOCUMENT = {"kind": "faq", "topic": "storage", "confidence": 0.9}


def counted(outcome: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value("gpu_advisor_reader_questions_total", {"outcome": outcome}) or 0


async def test_a_question_is_asked_by_schema_without_temperature(model: FakeModel, make: Make) -> None:
    model.reading = DOCUMENT
    before = counted("read")
    said = await make(api_key="k-123").read("where do I keep my data?")
    assert said is not None
    assert json.loads(said) == DOCUMENT
    headers, document = model.requests[0]
    assert headers["authorization"] == "Bearer k-123"
    assert (document["model"], document["temperature"]) == ("small", 0)
    assert document["max_tokens"] <= 400
    assert document["response_format"]["type"] == "json_schema"
    assert document["response_format"]["json_schema"]["schema"]["required"] == ["kind", "confidence"]
    assert model.asked == ["where do I keep my data?"]
    assert counted("read") == before + 1


async def test_no_key_sends_no_authorization(model: FakeModel, make: Make) -> None:
    await make().read("x")
    assert "authorization" not in model.requests[0][0]


async def test_the_same_question_is_asked_once(model: FakeModel, make: Make) -> None:
    reader = make()
    first = await reader.read("one")
    assert await reader.read("one") == first
    await reader.read("two")
    assert model.asked == ["one", "two"]
    assert reader.outcomes == {"read": 2, "cached": 1}


async def test_what_is_remembered_is_bounded_and_what_is_asked_again_stays(
    model: FakeModel, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "KEPT", 2)
    reader = make()
    for text in ("one", "two", "one", "three", "one", "two"):
        await reader.read(text)
    assert model.asked == ["one", "two", "three", "two"]


async def test_an_endpoint_that_knows_no_schema_is_asked_for_json(model: FakeModel, make: Make) -> None:
    model.trouble = "no-schema"
    reader = make()
    assert await reader.read("one") is not None
    assert await reader.read("two") is not None
    forms = [document["response_format"]["type"] for _, document in model.requests]
    assert forms == ["json_schema", "json_object", "json_object"]


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        ("status-500", "failed"),
        ("status-503", "failed"),
        ("status-401", "refused"),
        ("status-429", "refused"),
        ("status-400", "refused"),
        ("moved", "refused"),
        ("huge", "too-large"),
        ("packed", "garbage"),
        *((name, "garbage") for name in WRONG_ENVELOPES),
    ],
)
async def test_trouble_is_no_answer_with_a_reason(model: FakeModel, make: Make, trouble: str, outcome: Any) -> None:
    model.trouble = trouble
    before = counted(outcome)
    reader = make(api_key="k-123")
    with structlog.testing.capture_logs() as logs:
        assert await reader.read("a question of mine") is None
    assert reader.outcomes == {outcome: 1}
    assert counted(outcome) == before + 1
    assert [entry["reason"] for entry in logs] == [outcome]
    assert "k-123" not in str(logs)
    assert "a question of mine" not in str(logs)


@pytest.mark.parametrize("trouble", ["slow", "dripping"])
async def test_a_slow_answer_is_not_waited_for(model: FakeModel, make: Make, trouble: str) -> None:
    model.trouble = trouble
    reader = make(timeout_seconds=0.2)
    assert await reader.read("x") is None
    assert reader.outcomes == {"timeout": 1}


async def test_the_loop_goes_on_while_the_model_thinks(model: FakeModel, make: Make) -> None:
    model.trouble = "slow"
    reader = make()
    task = asyncio.create_task(reader.read("x"))
    await asyncio.to_thread(model.arrived.wait, 10)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nobody_there_is_no_answer(make: Make) -> None:
    reader = make(base_url="http://127.0.0.1:9/v1")
    assert await reader.read("x") is None
    assert reader.outcomes == {"unreachable": 1}


async def test_an_endpoint_that_keeps_failing_rests_and_is_tried_again(
    model: FakeModel, make: Make, clock: Clock
) -> None:
    model.trouble = "status-500"
    reader = make()
    for text in ("one", "two", "three", "four", "five"):
        assert await reader.read(text) is None
    assert model.asked == ["one", "two", "three"]
    clock.now += client.REST_SECONDS
    assert await reader.read("six") is None
    assert await reader.read("seven") is None
    assert model.asked[3:] == ["six"]
    clock.now += client.REST_SECONDS
    model.trouble = None
    assert await reader.read("eight") is not None
    model.trouble = "status-500"
    assert await reader.read("nine") is None
    assert await reader.read("ten") is None
    assert model.asked[4:] == ["eight", "nine", "ten"]
    assert reader.outcomes == {"failed": 6, "resting": 3, "read": 1}


async def test_what_is_remembered_is_there_while_the_endpoint_rests(model: FakeModel, make: Make) -> None:
    reader = make()
    known = await reader.read("known")
    model.trouble = "status-500"
    for text in ("one", "two", "three"):
        await reader.read(text)
    assert await reader.read("known") == known


async def test_more_questions_at_once_than_it_may_have_are_answered_without_it(
    model: FakeModel, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PARALLEL", 1)
    model.trouble = "slow"
    reader = make()
    task = asyncio.create_task(reader.read("one"))
    await asyncio.to_thread(model.arrived.wait, 10)
    assert await reader.read("two") is None
    assert reader.outcomes == {"busy": 1}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    model.trouble = None
    assert await reader.read("three") is not None


def test_settings_are_off_by_default_and_say_what_is_wrong() -> None:
    assert not ReaderSettings().enabled
    assert ReaderSettings(base_url="https://models.example.com/v1", model="m").enabled
    with pytest.raises(ValueError, match="needs model"):
        ReaderSettings(base_url="http://127.0.0.1:8000/v1")
    for wrong in (
        "models:8000/v1",
        "file:///etc/passwd",
        "http://me:pw@models/v1",
        "http://models:99999/",
        "http:///v1",
    ):
        with pytest.raises(ValueError, match="base_url needs to be"):
            ReaderSettings(base_url=wrong, model="m")
    with pytest.raises(ValueError, match="api_key needs"):
        ReaderSettings(base_url="http://models/v1", model="m", api_key="a\nb")
    assert "k-123" not in repr(ReaderSettings(base_url="http://models/v1", model="m", api_key="k-123"))
