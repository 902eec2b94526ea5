"""Answers about compatibility: what the engine says, on what is named or on the clusters' drivers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rules.facts.cluster import ClusterFacts, build
from rules.facts.objects import Node, NodeStatus, ObjectMeta
from rules.facts.prices import PriceBook
from rules.language import LANGUAGES, Language
from rules.questions.composers import Known
from tests.rules.questions.asking import composed, told

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def cluster(**drivers: str) -> ClusterFacts:
    nodes = []
    for name, driver in drivers.items():
        labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/cuda.driver-version.full": driver}
        amounts: dict[str, Any] = {"nvidia.com/gpu": "1"}
        status = NodeStatus(capacity=amounts, allocatable=amounts)
        nodes.append(Node(metadata=ObjectMeta(name=name, labels=labels), status=status))
    return build("prod", NOW, nodes=nodes, pods=(), read_kinds=("Node", "Pod"), prices=PriceBook())


@pytest.mark.parametrize(
    ("entities", "verdict"),
    [
        ({"driver": "570.86.10", "cuda": "12.4", "gpu": "L4"}, "yes"),
        ({"driver": "535", "cuda": "12.4"}, "yes"),
        ({"driver": "470.82.01", "cuda": "12.4"}, "depends"),
        ({"driver": "570", "cuda": "13.0", "gpu": "RTX 4090"}, "no"),
        ({"cuda": "11.4", "gpu": ["H100"]}, "no"),
        ({"cuda": "12.8"}, "unknown"),
        ({"driver": "550", "cuda": ["12.4", "13.0"]}, "depends"),
    ],
)
def test_the_verdict_is_that_of_the_engine(entities: dict[str, Any], verdict: str) -> None:
    assert composed("compat", "check", "does it run?", entities=entities).verdict == verdict


def test_without_a_driver_the_least_one_is_told() -> None:
    text = told(composed("compat", "check", "which driver for cuda 12.8?", entities={"cuda": "12.8"}))
    assert text.startswith("CUDA 12.8")
    assert "570.26" in text
    assert "525.60.13" in text


def test_without_a_driver_the_nodes_of_the_clusters_are_judged() -> None:
    known = Known(clusters=[cluster(old="470.82.01", new="570.86.10", newer="570.86.10")])
    piece = composed("compat", "check", "will cuda 12.4 run?", known=known, entities={"cuda": "12.4"})
    text = told(piece)
    assert "`prod`" in text
    assert "470.82.01" in text
    assert piece.verdict == "depends"
    assert {item.value for item in piece.evidence if item.name == "driver_version"} == {"470.82.01", "570.86.10"}


def test_clusters_without_the_gpu_that_is_asked_for_do_not_count() -> None:
    known = Known(clusters=[cluster(new="570.86.10")])
    entities = {"cuda": "12.4", "gpu": ["H100"]}
    assert "`prod`" not in told(composed("compat", "check", "on H100?", known=known, entities=entities))


def test_what_nvidia_smi_shows_beside_an_image_is_the_driver() -> None:
    entities = {"image": "vllm/vllm-openai:v0.8.5", "cuda": "12.2"}
    piece = composed("compat", "check", "nvidia-smi says CUDA 12.2, does it run?", entities=entities)
    assert piece.fields["answer"]["driver"] == "535"


def test_a_driver_alone_tells_what_it_brings_and_asks_for_the_software() -> None:
    text = told(composed("compat", "check", "what can 550 run?", entities={"driver": "550"}))
    assert "CUDA 12.4" in text
    assert "CUDA version or the image" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_its_own_sentences(language: Language) -> None:
    entities = {"driver": "470.82.01", "image": "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", "gpu": "A100"}
    piece = composed("compat", "check", "?", language, entities=entities)
    assert piece.sources
    assert all(source.as_of for source in piece.sources if source.url)
    others = {told(composed("compat", "check", "?", other, entities=entities)) for other in LANGUAGES}
    assert len(others) == len(LANGUAGES)


@pytest.mark.parametrize(
    ("entities", "least"),
    [
        ({"cuda": "12.6", "gpu": ["H200"]}, "525.60.13"),  # the toolkit asks for more than the card
        ({"cuda": "12.8", "gpu": ["B200"]}, "570.133.20"),  # the card asks for more than the toolkit
        ({"cuda": "12.9", "gpu": ["B300"]}, "575"),
    ],
)
def test_the_least_driver_is_the_larger_of_what_toolkit_and_card_ask_for(entities: dict[str, Any], least: str) -> None:
    piece = composed("compat", "check", "which minimum driver?", entities=entities)
    assert f"So the node needs at least driver {least}." in told(piece)
    assert (piece.verdict, piece.clarify) == (None, False)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_least_driver_of_a_card_is_told_without_software(language: Language) -> None:
    piece = composed("compat", "check", "minimum driver?", language, entities={"gpu": ["B200", "H200"]})
    assert [("570.133.20" in block, "520" in block) for block in piece.blocks] == [(True, False), (False, True)]
    assert "525.53" in piece.blocks[1]  # MIG
    assert piece.sources
    assert (piece.verdict, piece.clarify) == (None, False)


def test_a_card_whose_least_driver_is_not_known_asks_back() -> None:
    piece = composed("compat", "check", "minimum driver?", entities={"gpu": ["MI300X"]})
    assert piece.clarify
