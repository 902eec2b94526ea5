"""Follow-ups take the place of what they name in the question before; a question of its own takes nothing."""

from typing import Any

import pytest

from rules.answers import Answer, previous
from rules.questions import answer

EKS = "does EKS do time slicing?"
SEARCH = "cheapest H100 in europe"
COMPAT = "driver 535 with cuda 12.4?"
SIZING = "12 models of 3GB on A100 40 with mig"
IDLE = "which nodes are idle in prod?"


def after(first: str, then: str) -> Answer:
    return answer(then, previous=previous(answer(first)))


@pytest.mark.parametrize(
    ("first", "then", "language", "want"),
    [
        (EKS, "and on GKE?", "en", {"kind": "provider", "field": "sharing", "provider": "gcp"}),
        (EKS, "what about CoreWeave?", "en", {"kind": "provider", "field": "sharing", "provider": "coreweave"}),
        ("¿EKS permite time slicing?", "¿y en GKE?", "es", {"field": "sharing", "provider": "gcp"}),
        ("EKS permette il time slicing?", "e su GKE?", "it", {"field": "sharing", "provider": "gcp"}),
        ("do the GPU nodes come with drivers preinstalled?", "and on CoreWeave?", "en",
         {"field": "drivers_preinstalled", "provider": "coreweave"}),
        ("¿los nodos GPU traen los controladores instalados?", "¿y en Nebius?", "es",
         {"field": "drivers_preinstalled", "provider": "nebius"}),
        ("is MIG better than MPS?", "why?", "en", {"kind": "faq", "topic": "sharing_options"}),
        ("meglio MIG o MPS?", "perché?", "it", {"kind": "faq", "topic": "sharing_options"}),
        ("¿qué es el device plugin?", "cuéntame más", "es", {"kind": "faq", "topic": "device_plugin"}),
        ("libcuda.so.1: cannot open shared object file", "y en el nodo gpu-3?", "es",
         {"kind": "error", "cause": "runtime_not_nvidia"}),
        ("which nodes are idle?", "and in staging?", "en", {"kind": "cluster", "intent": "idle_nodes"}),
    ],
)  # fmt: skip
def test_what_is_named_takes_its_place(first: str, then: str, language: str, want: dict[str, Any]) -> None:
    reply = after(first, then)
    assert {name: getattr(reply, name) for name in want} == want
    assert reply.language == language
    assert reply.matched[0].startswith("follows ")


@pytest.mark.parametrize(
    ("first", "then", "filters"),
    [
        (SEARCH, "e in euro?", {"gpu": "H100", "region": "eu", "currency": "eur"}),
        (SEARCH, "and with infiniband?", {"gpu": "H100", "region": "eu", "interconnect": "infiniband"}),
        (SEARCH, "what about L4?", {"gpu": "L4", "region": "eu"}),
        (SEARCH, "¿y en spot?", {"gpu": "H100", "region": "eu", "spot": True}),
        (SEARCH, "e in Francia?", {"gpu": "H100", "region": "fr"}),
        (SEARCH, "and for 2 nodes?", {"gpu": "H100", "nodes": 2}),
        ("who has L40S under 2 dollars?", "and A100?", {"gpu": "A100", "max_price_usd_hour": 2.0}),
        ("¿quién tiene A100 en Alemania?", "¿y gestionado?", {"gpu": "A100", "region": "de", "managed": True}),
        ("chi ha H200?", "e sotto i 3 euro?", {"gpu": "H200", "max_price_eur_hour": 3.0}),
    ],
)
def test_a_search_is_narrowed(first: str, then: str, filters: dict[str, Any]) -> None:
    reply = after(first, then)
    assert reply.kind == "provider"
    assert {name: reply.filters.get(name) for name in filters} == filters


@pytest.mark.parametrize(
    ("first", "then", "entities"),
    [
        (COMPAT, "and 12.8?", {"driver": "535", "cuda": "12.8"}),
        (COMPAT, "what about 570?", {"driver": "570", "cuda": "12.4"}),
        (COMPAT, "and on a T4?", {"driver": "535", "cuda": "12.4", "gpu": "T4"}),
        ("va cuda 12.8 con il driver 535?", "e con il 570?", {"driver": "570", "cuda": "12.8"}),
        ("¿va cuda 12.8 con el 535?", "¿y en una H100?", {"driver": "535", "cuda": "12.8", "gpu": "H100"}),
        (SIZING, "and with 20 models?", {"count": 20, "vram_gb": 3, "sharing": "mig"}),
        (SIZING, "and 20?", {"count": 20, "vram_gb": 3}),
        ("¿cuántas L4 para 10 pods de 5GB con time slicing?", "¿y si son T4?", {"gpu": "T4", "count": 10}),
        ("quante L4 per 10 pod da 5 GB con time slicing?", "e con MPS?", {"gpu": "L4", "sharing": "mps"}),
        (IDLE, "and in staging?", {"cluster": "staging"}),
    ],
)
def test_entities_are_replaced_one_by_one(first: str, then: str, entities: dict[str, Any]) -> None:
    reply = after(first, then)
    assert reply.kind == answer(first).kind

    def one(value: Any) -> Any:
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    assert {name: one(reply.entities.get(name)) for name in entities} == entities


def test_the_numbers_of_a_follow_up_are_worked_out_anew() -> None:
    first, then = answer(SIZING), after(SIZING, "and with 20 models?")
    assert first.answer
    assert then.answer
    assert then.answer["gpus"] > first.answer["gpus"]


@pytest.mark.parametrize(
    "then",
    [
        "how do I share a GPU between pods?",
        "what is the weather tomorrow?",
        "thanks!",
        "¿qué hago si el pod se queda en Pending por un taint?",
        "come faccio l'autoscaling dell'inferenza?",
        "which of our nodes run on spot right now?",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "write me a poem",
    ],
)
@pytest.mark.parametrize("first", [SEARCH, EKS, COMPAT, SIZING, IDLE])
def test_a_question_of_its_own_takes_nothing_from_before(first: str, then: str) -> None:
    alone, following = answer(then), after(first, then)
    assert (following.kind, following.topic, following.intent, following.cause, following.filters) == (
        alone.kind, alone.topic, alone.intent, alone.cause, alone.filters,
    )  # fmt: skip
    assert not any(reason.startswith("follows") for reason in following.matched)


def test_what_was_outside_is_not_taken_up() -> None:
    assert after("what is the weather?", "and on GKE?").matched == answer("and on GKE?").matched


def test_without_a_message_before_nothing_follows() -> None:
    assert not any(reason.startswith("follows") for reason in answer("and on GKE?").matched)
