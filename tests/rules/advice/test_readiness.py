"""The readiness report: four requirements, three states, objects that show them, words in three languages."""

import re
from functools import cache
from typing import Any

import msgspec
import pytest

from rules.advice.readiness import Readiness, Requirement, readiness, say, words
from rules.facts.cluster import build
from rules.facts.decode import decode_objects
from rules.language import LANGUAGES
from tests.rules.checks.kit import DATA, NOW, Plain, node, pod, prices, sample

EVERYTHING = ("Node", "Pod", "Event", "DaemonSet", "Deployment", "StorageClass", "CustomResourceDefinition")
FABRIC = {"nvidia.com/gpu": 8, "rdma/ib": 1}
SAMPLES = [*sorted((DATA / "clusters").glob("*.json")), *sorted((DATA / "cases").iterdir())]


def judged(*objects: Plain, read: tuple[str, ...] = EVERYTHING) -> Readiness:
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    found = decode_objects(listed, "test")
    facts = build(
        "test",
        NOW,
        nodes=found.nodes,
        pods=found.pods,
        events=found.events,
        others=found.others,
        read_kinds={*found.kinds, *read},
        prices=prices(),
    )
    return readiness(facts)


def the(report: Readiness, topic: str) -> Requirement:
    return next(item for item in report.requirements if item.topic == topic)


def keys(requirement: Requirement) -> list[str]:
    return [reason.key for reason in requirement.reasons]


def shown(requirement: Requirement) -> set[str]:
    return {str(ref) for ref in requirement.objects}


def deployment(name: str, *, ready: int = 1) -> Plain:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ops"},
        "spec": {"replicas": 1},
        "status": {"readyReplicas": ready},
    }


def storage_class(name: str, provisioner: str) -> Plain:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
    }


def worker(name: str, **spec: Any) -> Plain:
    made = pod(name, gpus={"nvidia.com/gpu": 8}, owner=("PyTorchJob", "pretrain"), **spec)
    made["metadata"]["ownerReferences"][0]["apiVersion"] = "kubeflow.org/v1"
    return made


READY = (
    node("a", gpus=FABRIC),
    node("b", gpus=FABRIC),
    deployment("kueue-controller-manager"),
    deployment("jobset-controller-manager"),
    storage_class("lustre", "fsx.csi.aws.com"),
)


def test_a_cluster_that_has_all_four_is_ready() -> None:
    report = judged(*READY)
    assert report.state == "met"
    assert [item.topic for item in report.requirements] == [
        "interconnect",
        "gang_scheduling",
        "training_operator",
        "shared_storage",
    ]
    assert all(item.state == "met" and item.objects and item.step is None for item in report.requirements)
    assert shown(the(report, "interconnect")) == {"Node/a", "Node/b"}
    assert shown(the(report, "gang_scheduling")) == {"Deployment/ops/kueue-controller-manager"}


def test_an_empty_cluster_that_was_read_wholly_has_none_of_what_software_brings() -> None:
    report = judged(node())
    states = {item.topic: item.state for item in report.requirements}
    assert states == dict.fromkeys(states, "not_met")
    assert report.state == "not_met"


def test_what_was_not_read_is_unknown_and_named() -> None:
    report = judged(*READY[:2], read=("Node", "Pod"))
    for topic in ("gang_scheduling", "training_operator"):
        found = the(report, topic)
        assert (found.state, found.missing) == ("unknown", ("APIService",))
    storage = the(report, "shared_storage")
    assert (storage.state, storage.missing) == ("unknown", ("StorageClass", "PersistentVolume"))
    assert report.state == "unknown"


class TestInterconnect:
    TOPIC = "interconnect"

    def test_one_fast_node_is_not_enough(self) -> None:
        found = the(judged(node("a", gpus=FABRIC), node("b")), self.TOPIC)
        assert (found.state, keys(found), shown(found)) == ("not_met", ["one_fast_node"], {"Node/a"})

    def test_slow_nodes_among_fast_ones_are_named(self) -> None:
        found = the(judged(node("a", gpus=FABRIC), node("b", gpus=FABRIC), node("c")), self.TOPIC)
        assert (found.state, keys(found)) == ("met", ["fast_nodes", "slow_nodes"])

    def test_cards_that_no_pod_can_get(self) -> None:
        labels = {"nvidia.com/gpu.present": "true", "feature.node.kubernetes.io/rdma.available": "true"}
        found = the(judged(node("a", labels=labels), node("b", labels=labels)), self.TOPIC)
        assert (found.state, keys(found), found.step) == ("not_met", ["hidden_rdma"], "expose_rdma")

    def test_gke_machines_that_use_network_objects_are_unknown(self) -> None:
        labels = {"nvidia.com/gpu.present": "true", "node.kubernetes.io/instance-type": "a3-highgpu-8g"}
        made = [node(name, labels=labels, providerID=f"gce://p/z/{name}") for name in "ab"]
        assert the(judged(*made), self.TOPIC).state == "unknown"

    def test_without_gpu_nodes_nothing_can_be_said(self) -> None:
        assert keys(the(judged(), self.TOPIC)) == ["no_gpu_nodes"]


class TestSoftware:
    def test_jobs_that_start_pod_by_pod_show_the_want_of_a_gang_scheduler(self) -> None:
        report = judged(node("a"), worker("w-0", on="a"), worker("w-1"), read=("Node", "Pod"))
        found = the(report, "gang_scheduling")
        assert (found.state, shown(found)) == ("not_met", {"PyTorchJob/ml/pretrain"})

    def test_jobs_outside_of_the_gang_scheduler_that_is_there_are_named(self) -> None:
        found = the(judged(*READY, worker("w-0", on="a"), worker("w-1", on="b")), "gang_scheduling")
        assert (found.state, keys(found)) == ("met", ["installed", "loose_jobs"])

    def test_what_does_not_run_does_not_count(self) -> None:
        found = the(judged(node(), deployment("kueue-controller-manager", ready=0)), "gang_scheduling")
        assert (found.state, found.step) == ("not_met", "mend")
        assert shown(found) == {"Deployment/ops/kueue-controller-manager"}

    def test_one_that_works_is_enough(self) -> None:
        broken, fine = deployment("mpi-operator", ready=0), deployment("jobset-controller-manager")
        found = the(judged(node(), broken, fine), "training_operator")
        assert (found.state, keys(found)) == ("met", ["installed", "troubled"])


class TestStorage:
    TOPIC = "shared_storage"

    @pytest.mark.parametrize(
        ("provisioners", "state"),
        [
            (["ebs.csi.aws.com", "efs.csi.aws.com"], "met"),
            (["ebs.csi.aws.com"], "not_met"),
            (["ebs.csi.aws.com", "csi.trident.netapp.io"], "unknown"),
            (["csi.example.com"], "unknown"),
        ],
    )
    def test_the_drivers_of_the_classes_decide(self, provisioners: list[str], state: str) -> None:
        classes = [storage_class(f"c{number}", name) for number, name in enumerate(provisioners)]
        assert the(judged(node(), *classes), self.TOPIC).state == state

    def test_a_volume_made_by_hand_counts(self) -> None:
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "data"},
            "spec": {"nfs": {"server": "192.0.2.1", "path": "/"}},
        }
        found = the(judged(node(), storage_class("gp3", "ebs.csi.aws.com"), volume), self.TOPIC)
        assert (found.state, shown(found)) == ("met", {"PersistentVolume/data"})


@cache
def of_sample(name: str) -> Readiness:
    return readiness(sample(next(path for path in SAMPLES if path.stem == name))[0])


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("coreweave-h100-infiniband", ["met", "not_met", "met", "met"]),
        ("oke-a10-a100-pools", ["not_met", "unknown", "met", "met"]),
        ("k3s-joined-vms-no-operator", ["not_met", "unknown", "unknown", "not_met"]),
        ("gke-a100-mig-mixed", ["not_met", "unknown", "unknown", "met"]),
        ("20-gang-waits-for-a-third-member", ["not_met", "met", "met", "unknown"]),
        ("03-gpu-group-stuck-at-zero", ["unknown", "unknown", "unknown", "unknown"]),
    ],
)
def test_sample_clusters(name: str, states: list[str]) -> None:
    assert [item.state for item in of_sample(name).requirements] == states


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_report_can_be_said_in_every_language(path: Any) -> None:
    for requirement in of_sample(path.stem).requirements:
        for language in LANGUAGES:
            said = say(requirement, language)
            assert said.name
            assert said.state
            assert said.reasons
            assert not [text for text in said.reasons if "{" in text or not text]
            assert (said.step is None) == (requirement.state == "met")
        assert requirement.objects or requirement.state == "unknown" or requirement.step


def test_the_three_languages_use_the_same_values_and_commands() -> None:
    known = words()
    for key, text in {**known.reasons, **known.steps}.items():
        named = {language: sorted(re.findall(r"\{(\w+)\}", text.in_(language))) for language in LANGUAGES}
        assert named["en"] == named["es"] == named["it"], key
        commands = {language: re.findall(r"`[^`]*`", text.in_(language)) for language in LANGUAGES}
        assert commands["en"] == commands["es"] == commands["it"], key
