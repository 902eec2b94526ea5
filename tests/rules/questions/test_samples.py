"""Answers over the sample clusters: what a reader of the files would say, in every language, and short enough."""

import json
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pytest

from rules import knowledge
from rules.facts.cluster import ClusterFacts, build
from rules.facts.decode import decode_objects
from rules.facts.prices import PriceBook
from rules.language import LANGUAGES
from rules.questions import answer
from rules.questions.state import describe

CLUSTERS = Path(__file__).parents[2] / "data" / "clusters"
NAMES = sorted(path.stem for path in CLUSTERS.glob("*.json"))
NOW = datetime(2026, 11, 30, tzinfo=UTC)
SLACK_READABLE = 4000
"""Characters of a whole answer with one cluster: it still fits in one Slack message of two sections."""


@lru_cache
def facts(name: str) -> ClusterFacts:
    path = CLUSTERS / f"{name}.json"
    read = decode_objects(path.read_bytes(), path.name)
    return build(
        name,
        NOW,
        nodes=read.nodes,
        pods=read.pods,
        events=read.events,
        others=read.others,
        read_kinds=read.kinds,
        prices=PriceBook(),
    )


DESCRIBED = ("drivers_preinstalled", "multiple_workloads_per_gpu", "single_gpu_worth_it", "multinode_checklist")


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_described_for_every_topic_in_every_language(name: str) -> None:
    known = facts(name)
    for topic in DESCRIBED:
        texts = {language: describe(topic, [known], language) for language in LANGUAGES}
        for text, evidence in texts.values():
            assert name in text
            assert evidence
            assert all(item.source and item.source.startswith(name) for item in evidence)
        assert len({text.count("\n") for text, _ in texts.values()}) == 1
        assert len({str(evidence) for _, evidence in texts.values()}) == 1
        for language, (text, _) in texts.items():
            told = knowledge.topic(topic, language)
            assert len(told.lead) + len(text) + len(told.why) + len(told.verify) <= SLACK_READABLE


@pytest.mark.parametrize("name", NAMES)
def test_every_gpu_node_of_a_sample_is_counted_once(name: str) -> None:
    known = facts(name)
    for topic in ("drivers_preinstalled", "multiple_workloads_per_gpu"):
        _, evidence = describe(topic, [known], "en")
        listed = [
            node for item in evidence if item.name == "nodes" and isinstance(item.value, list) for node in item.value
        ]
        assert sorted(listed) == sorted(node.name for node in known.gpu_nodes)


@pytest.mark.parametrize(
    ("name", "topic", "said"),
    [
        (
            "aks-t4-timeslicing",
            "multiple_workloads_per_gpu",
            "2 nodes of pool `gput4`: time-slicing ×4, units: 3 of 8 free",
        ),
        ("gke-a100-mig-mixed", "multiple_workloads_per_gpu", "MIG, slices: 4 of 7 free (`1g.5gb`)"),
        ("k3s-joined-vms-no-operator", "drivers_preinstalled", "driver unknown, no label tells it"),
        ("broken-driver-not-ready", "drivers_preinstalled", "GPU not advertised"),
        ("coreweave-h100-infiniband", "multinode_checklist", "fast network advertised on 4 of 4 GPU nodes: `rdma/ib`"),
        ("coreweave-h100-infiniband", "multinode_checklist", "nodes with 8 or more GPUs: 4"),
        ("coreweave-h100-infiniband", "multinode_checklist", "training operator seen: Kubeflow"),
        ("doks-single-h100", "single_gpu_worth_it", "1 GPU on 1 GPU node; 1 pod holds a GPU"),
    ],
)
def test_what_the_samples_hold_is_told(name: str, topic: str, said: str) -> None:
    assert said in describe(topic, [facts(name)], "en")[0]


def test_the_label_that_was_read_is_in_the_sample() -> None:
    reply = answer("vienen los drivers instalados?", clusters=[facts("aks-t4-timeslicing")])
    known = next(item for item in reply.evidence if item.name == "driver_version" and item.value)
    label = (known.source or "").partition(": ")[2]
    nodes = json.loads((CLUSTERS / "aks-t4-timeslicing.json").read_text())["items"]
    assert any(item["metadata"].get("labels", {}).get(label) == known.value for item in nodes if item["kind"] == "Node")
