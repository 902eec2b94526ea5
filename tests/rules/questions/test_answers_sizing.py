"""Answers to how many GPUs: the planner's numbers, in words and as data."""

from typing import Any

import pytest

from rules.language import LANGUAGES, Language
from tests.rules.questions.asking import composed, told


@pytest.mark.parametrize(
    ("text", "entities", "answer"),
    [
        ("12 models of 3 GB, MIG", {"count": 12, "vram_gb": 3.0, "gpu": "A100 40GB"}, {"gpus": 2, "profile": "1g.5gb"}),
        ("time slicing", {"count": 10, "vram_gb": 5.0, "gpu": "L4"}, {"gpus": 3, "per_gpu": 4}),
        ("70B in fp16", {"params_b": 70.0, "precision": "fp16", "gpu": "H100"}, {"min_gpus": 2, "weights_gb": 140.0}),
        ("does it fit", {"params_b": 8.0, "precision": "fp16", "gpu": "L4"}, {"fits": True, "weights_gb": 16.0}),
        ("does it fit", {"params_b": 70.0, "precision": "fp16", "gpu": "L4"}, {"fits": False}),
        ("how many of 11 GB with mig", {"vram_gb": 11.0, "gpu": "A30"}, {"per_gpu": 2, "profile": "2g.12gb"}),
        ("mps, 8 processes", {"count": 8, "vram_gb": 3.5, "gpu": "V100 32GB", "gpus": 1}, {"fits": True}),
        ("94 GB of weights", {"vram_gb": 94.0, "params_b": 47.0, "gpu": "H100 80GB"}, {"min_gpus": 2}),
        ("1g.10gb slices", {"count": 16, "vram_gb": 9.0, "gpu": "H100 80GB", "profile": "1g.10gb"}, {"gpus": 3}),
    ],
)
def test_the_numbers_are_those_of_the_planner(text: str, entities: dict[str, Any], answer: dict[str, Any]) -> None:
    found = composed("sizing", "plan", text, entities=entities).fields["answer"]
    assert {key: found.get(key) for key in answer} == answer


def test_a_precision_that_was_not_given_is_said_to_be_assumed() -> None:
    text = told(composed("sizing", "plan", "how many?", entities={"params_b": 70.0, "gpu": "H100"}))
    assert "No precision was given: reckoned in fp16" in text


@pytest.mark.parametrize(
    ("entities", "missing"),
    [({"count": 5, "gpu": "L4"}, "memory_gib"), ({"params_b": 13.0, "precision": "int4"}, "gpus"), ({}, "memory_gib")],
)
def test_what_is_missing_is_asked_for(entities: dict[str, Any], missing: str) -> None:
    piece = composed("sizing", "plan", "how many?", entities=entities)
    assert piece.clarify
    assert missing in piece.fields["answer"]["needs_more"]


def test_a_card_nobody_knows_is_asked_about() -> None:
    assert composed("sizing", "plan", "?", entities={"vram_gb": 3.0, "gpu": "X999"}).clarify


def test_own_cards_are_compared() -> None:
    entities = {"params_b": 70.0, "precision": "fp16", "gpu": "H100 80GB", "gpus": 1}
    piece = composed("sizing", "plan", "have I enough?", entities=entities)
    assert piece.verdict == "no"
    assert "that is not enough" in told(piece)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_told_in_every_language(language: Language) -> None:
    entities = {"count": 12, "vram_gb": 3.0, "gpu": "A100 40GB"}
    text = told(composed("sizing", "plan", "mig", language, entities=entities))
    assert "**2 A100-40GB**" in text
    assert {"en": "Mind", "es": "Ten en cuenta", "it": "Da tenere presente"}[language] in text
