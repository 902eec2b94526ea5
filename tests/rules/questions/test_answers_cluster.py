"""Answers about one's own clusters: every intent, on every sample, in every language, and the numbers in them."""

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rules.facts.cluster import ClusterFacts, build
from rules.facts.decode import decode_objects
from rules.facts.prices import bundled
from rules.language import LANGUAGES, Language
from rules.questions import data
from rules.questions.answers_cluster import INTENTS
from rules.questions.composers import Known, Piece
from tests.rules.questions.asking import composed, told

CLUSTERS = Path(__file__).parents[2] / "data" / "clusters"
NAMES = sorted(path.name.removesuffix(".json") for path in CLUSTERS.glob("*.json"))
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
EKS = "eks-managed-spot-ondemand"


@cache
def sample(name: str) -> ClusterFacts:
    path = CLUSTERS / f"{name}.json"
    objects = decode_objects(path.read_bytes(), path.name)
    return build(
        name, NOW, nodes=objects.nodes, pods=objects.pods, events=objects.events, others=objects.others,
        read_kinds=objects.kinds, prices=bundled(),
    )  # fmt: skip


def asked(intent: str, *clusters: ClusterFacts, language: Language = "en", **entities: Any) -> Piece:
    return composed("cluster", intent, "?", language, Known(clusters=clusters), entities=entities)


def test_every_intent_of_the_vocabulary_is_answered() -> None:
    corpus = data.parse_yaml((Path(data.__file__).parents[1] / "corpus" / "cluster.en.yaml").read_text("utf-8"))
    assert set(corpus) == set(INTENTS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("intent", sorted(INTENTS))
def test_every_intent_says_something_of_every_sample_in_every_language(intent: str, name: str) -> None:
    texts = [told(asked(intent, sample(name), language=language)) for language in LANGUAGES]
    for text in texts:
        assert name in text
        assert len(text.splitlines()) > 1
        assert not re.search(r"\{\w+\}|\bNone\b", text)
        assert len(text) < 9000
    assert len(set(texts)) == len(LANGUAGES)


@pytest.mark.parametrize("intent", sorted(INTENTS))
def test_without_a_cluster_it_says_how_to_connect_one(intent: str) -> None:
    piece = asked(intent)
    assert piece.verdict == "unknown"
    assert "No cluster is connected" in told(piece)


@pytest.mark.parametrize("intent", sorted(INTENTS))
def test_what_was_not_read_is_never_told_as_nothing(intent: str) -> None:
    blind = build("blind", NOW, nodes=(), pods=(), read_kinds=(), prices=bundled())
    assert asked(intent, blind).verdict in ("unknown", None)


def test_free_gpus_are_those_that_nobody_requested() -> None:
    piece = asked("free_gpus", sample(EKS))
    assert "1 of 6 free" in told(piece)
    assert piece.verdict == "yes"


def test_inventory_counts_cards() -> None:
    assert "**6 GPUs in all**, on 3 nodes." in told(asked("gpu_inventory", sample(EKS)))


def test_idle_nodes_come_with_time_and_money() -> None:
    text = told(asked("idle_nodes", sample(EKS)))
    assert "`ip-192-0-2-12.eu-west-1.compute.internal`: 1 GPU without a GPU pod, for up to 59 days" in text
    assert "per hour, list price" in text
    assert "a month" in told(asked("idle_cost", sample(EKS)))


def test_a_node_that_is_named_is_the_only_one_told_of() -> None:
    node = "ip-192-0-2-21.eu-west-1.compute.internal"
    text = told(asked("gpu_pods", sample(EKS), node=node))
    assert "training/finetune-llama-run7" in text
    assert "llm-serve" not in text
    assert "There is no node `gpu-77` here" in told(asked("scale_down_blockers", sample(EKS), node="gpu-77"))


def test_a_pod_that_is_named_gets_its_own_reason() -> None:
    text = told(asked("pending_reason", sample(EKS), pod="llm-serve-7f9c6d8b55-m4t7z"))
    assert "waits for the GPU of its old pod" in text
    assert "is not waiting" in told(asked("pending_reason", sample(EKS), pod="finetune-llama-run7"))
    assert "There is no pod `nope`" in told(asked("pending_reason", sample(EKS), pod="nope"))


def test_a_namespace_that_is_named_is_the_only_one_told_of() -> None:
    text = told(asked("namespace_usage", sample(EKS), namespace="training"))
    assert "`training`: 4 GPUs, 1 pod" in text
    assert "inference" not in text


def test_a_drain_says_what_is_freed_moved_and_lost() -> None:
    text = told(asked("drain_impact", sample(EKS), node="ip-192-0-2-21.eu-west-1.compute.internal"))
    assert "frees 4 GPUs" in text
    assert "Lost for good, as nothing recreates them: `training/finetune-llama-run7`" in text
    assert "Under a PodDisruptionBudget" in text
    assert "Which node?" in told(asked("drain_impact", sample(EKS)))


def test_a_cluster_that_is_not_there_is_said_and_those_that_are_there_are_named() -> None:
    assert f"There is no cluster `west`; connected are `{EKS}`" in told(
        asked("idle_nodes", sample(EKS), cluster="west")
    )


def test_several_clusters_are_told_one_by_one() -> None:
    piece = asked("idle_nodes", *(sample(name) for name in NAMES))
    text = told(piece)
    assert all(f"In {name}" in text for name in NAMES[:4])
    assert all(name in text for name in NAMES)
    assert piece.verdict == "yes"
