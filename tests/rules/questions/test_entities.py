"""Exact entities of a text."""

from typing import Any

import pytest

from rules.questions.entities import entities
from rules.questions.text import clean, fold, words


def read(text: str) -> dict[str, Any]:
    cleaned = clean(text)
    return entities(cleaned, fold(cleaned), [word.folded for word in words(cleaned)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("driver 535.104.05 with cuda 12.4", {"driver": "535.104.05", "cuda": "12.4"}),
        ("il driver 470 va bene?", {"driver": "470"}),
        ("pytorch cu118", {"cuda": "11.8", "framework": "pytorch"}),
        ("A10 and A100 are not the same", {"gpu": ["A10", "A100"]}),
        ("8x H100 on CoreWeave", {"gpu": ["H100"], "gpu_count": 8, "provider": ["coreweave"]}),
        ("EKS or GKE", {"provider": ["aws", "gcp"]}),
        ("llama 70B in fp16", {"parameters_billion": 70.0}),
        ("un modello da 7,5b", {"parameters_billion": 7.5}),
        ("nvcr.io/nvidia/pytorch:24.05-py3 ok?", {"image": "nvcr.io/nvidia/pytorch:24.05-py3", "framework": "pytorch"}),
        ("together we do the work in azure", {"provider": ["azure"]}),
        ("nothing here", {}),
    ],
)
def test_entities_are_read_exactly(text: str, expected: dict[str, Any]) -> None:
    assert read(text) == expected
