"""The numbers that a right audit of every sample cluster reports."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import yaml

from rules.facts.cluster import ClusterFacts, GpuResource, build
from rules.facts.decode import decode_objects, newest_timestamp
from rules.facts.prices import bundled
from tests.rules.facts.make import DATA

CLUSTERS = sorted(path.name.removesuffix(".json") for path in (DATA / "clusters").glob("*.json"))
CASES = sorted(path.name for path in (DATA / "cases").iterdir())


def facts(path: str) -> ClusterFacts:
    file = DATA / path
    objects = decode_objects(file.read_bytes(), str(file))
    observed_at = newest_timestamp(objects)
    assert observed_at is not None
    return build(
        file.stem,
        observed_at,
        nodes=objects.nodes,
        pods=objects.pods,
        events=objects.events,
        others=objects.others,
        read_kinds=objects.kinds,
        prices=bundled(),
    )


def expected(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load((DATA / "clusters" / f"{name}.expected.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def resources(cluster: ClusterFacts, *forms: str) -> list[GpuResource]:
    return [item for node in cluster.gpu_nodes for item in node.resources if not forms or item.form in forms]


def total(cluster: ClusterFacts, field: str, *forms: str) -> int:
    return sum(getattr(item, field) or 0 for item in resources(cluster, *forms))


def mig(cluster: ClusterFacts, field: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in resources(cluster, "mig"):
        name = item.name.removeprefix("nvidia.com/")
        found[name] = found.get(name, 0) + (getattr(item, field) or 0)
    return {name: amount for name, amount in found.items() if amount}


def cards(cluster: ClusterFacts) -> int:
    return sum(node.physical_gpus or 0 for node in cluster.gpu_nodes)


def free(cluster: ClusterFacts, *, cordoned: bool) -> int:
    nodes = [node for node in cluster.gpu_nodes if node.unschedulable is cordoned]
    return sum(item.free or 0 for node in nodes for item in node.resources)


def live(cluster: ClusterFacts) -> list[Any]:
    return [node for node in cluster.gpu_nodes if node.ready]


def spot(cluster: ClusterFacts) -> int:
    return sum(node.spot is True for node in cluster.gpu_nodes)


NUMBERS: dict[str, Callable[[ClusterFacts], Any]] = {
    "gpu_nodes": lambda cluster: len(cluster.gpu_nodes),
    "gpu_nodes_by_label_or_resource": lambda cluster: len(cluster.gpu_nodes),
    "gpu_nodes_advertising": lambda cluster: sum(any(item.allocatable for item in n.resources) for n in live(cluster)),
    "physical_gpus": cards,
    "physical_gpus_visible": cards,
    "physical_gpus_known": lambda cluster: sum(node.physical_gpus or 0 for node in live(cluster)),
    "physical_gpus_unknown_nodes": lambda cluster: sum(node.physical_gpus is None for node in cluster.gpu_nodes),
    "allocatable_slots": lambda cluster: total(cluster, "allocatable"),
    "allocatable_units": lambda cluster: total(cluster, "allocatable"),
    "allocatable_gpus": lambda cluster: total(cluster, "allocatable"),
    "healthy_gpus": lambda cluster: total(cluster, "allocatable"),
    "whole_gpus_allocatable": lambda cluster: total(cluster, "allocatable", "device"),
    "shared_slots_allocatable": lambda cluster: total(cluster, "allocatable", "shared"),
    "slots_requested_bound": lambda cluster: total(cluster, "requested"),
    "units_requested_bound": lambda cluster: total(cluster, "requested"),
    "gpus_requested_bound": lambda cluster: total(cluster, "requested"),
    "gpus_allocated_to_workloads": lambda cluster: total(cluster, "requested"),
    "gpus_without_request": lambda cluster: cards(cluster) - total(cluster, "requested"),
    "gpus_free": lambda cluster: sum(item.free or 0 for item in resources(cluster)),
    "gpus_free_usable": lambda cluster: sum(item.free or 0 for item in resources(cluster)),
    "gpus_free_schedulable": lambda cluster: free(cluster, cordoned=False),
    "gpus_on_cordoned_nodes": lambda cluster: free(cluster, cordoned=True),
    "gpus_tainted": lambda cluster: total(cluster, "capacity") - total(cluster, "allocatable"),
    "mig_devices_allocatable": lambda cluster: mig(cluster, "allocatable"),
    "mig_devices_used": lambda cluster: mig(cluster, "requested"),
    "pending_gpu_pods": lambda cluster: len(cluster.pending_gpu_pods),
    "spot_gpu_nodes": spot,
    "preemptible_gpu_nodes": spot,
}

NOT_IN_OBJECTS = {
    "physical_gpus_expected": "one node has no label that tells its number; the sample takes it from its siblings",
    "admin_access_results_ignored": "results that are left out are not counted either",
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_numbers_of_a_sample_cluster_are_exact(name: str) -> None:
    cluster = facts(f"clusters/{name}.json")
    wanted = expected(name)["numbers"]
    unknown = set(wanted) - set(NUMBERS) - set(NOT_IN_OBJECTS)
    assert not unknown
    found = {key: NUMBERS[key](cluster) for key in wanted if key in NUMBERS}
    assert found == {key: value for key, value in wanted.items() if key in NUMBERS}


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_newest_timestamp_is_shortly_before_the_moment_of_observation(name: str) -> None:
    observed = datetime.fromisoformat(expected(name)["observed_at"])
    assert 0 <= (observed - facts(f"clusters/{name}.json").observed_at).total_seconds() < 600


def test_a_node_whose_labels_are_gone_has_an_unknown_number_of_gpus() -> None:
    cluster = facts("clusters/broken-driver-not-ready.json")
    assert {node.name: node.physical_gpus for node in cluster.gpu_nodes} == {
        "gpu-srv-a1": 4,
        "gpu-srv-a2": 4,
        "gpu-srv-a3": None,
        "gpu-srv-a4": 4,
        "gpu-srv-a5": 4,
    }


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("aks-t4-timeslicing", {"time-slicing": 2, None: 1}),
        ("amd-mi300x", {"none": 2, "partitioned": 1}),
        ("broken-driver-not-ready", {"none": 3, "time-slicing": 1, None: 1}),
        ("gke-a100-mig-mixed", {"mig-mixed": 3}),
        ("karpenter-idle-bill", {"none": 4, None: 1}),
        ("openshift-gpu-operator", {"none": 3}),
    ],
)
def test_the_sharing_of_every_node_is_told_from_its_labels(name: str, modes: dict[str | None, int]) -> None:
    found: dict[str | None, int] = {}
    for node in facts(f"clusters/{name}.json").gpu_nodes:
        found[node.sharing.mode] = found.get(node.sharing.mode, 0) + 1
    assert found == modes


@pytest.mark.parametrize(
    ("name", "providers"),
    [
        ("aks-t4-timeslicing", {"azure"}),
        ("amd-mi300x", {None}),
        ("coreweave-h100-infiniband", {"coreweave"}),
        ("doks-single-h100", {"digitalocean"}),
        ("eks-managed-spot-ondemand", {"aws"}),
        ("gke-a100-mig-mixed", {"gcp"}),
        ("k3s-joined-vms-no-operator", {None}),
        ("oke-a10-a100-pools", {"oci"}),
        ("openshift-gpu-operator", {"aws"}),
    ],
)
def test_the_provider_of_a_cluster_is_recognised(name: str, providers: set[str | None]) -> None:
    assert {node.provider for node in facts(f"clusters/{name}.json").nodes} == providers


def test_owned_hardware_has_no_made_up_price() -> None:
    for name in CLUSTERS:
        if any(item["topic"] == "no_price_key" for item in expected(name)["must_find"]):
            assert [node.price for node in facts(f"clusters/{name}.json").nodes if node.price] == []


def test_list_prices_of_the_expensive_nodes() -> None:
    cluster = facts("clusters/karpenter-idle-bill.json")
    prices = {node.instance_type: node.price for node in cluster.gpu_nodes}
    for name, usd in (("p4d.24xlarge", 21.9576), ("p5.48xlarge", 55.04)):
        price = prices[name]
        assert price is not None
        assert (price.usd_hour, price.basis, price.as_of) == (usd, "list", "2026-07-20")
    assert prices["g6.xlarge"] is None  # a spot node, and no spot price is known


def test_a_pod_that_sees_all_gpus_without_asking_is_counted_as_a_maybe() -> None:
    node = facts("cases/26-cuda-pod-without-a-gpu-request/cluster.json").node("ws-gpu-3")
    assert node is not None
    holders = {pod.ref.name: (dict(pod.gpu_requests), pod.other_gpu_claim) for pod in node.gpu_pods}
    assert holders == {
        "gpu-resource-test": ({}, "visible-devices"),
        "fraud-model-0": ({"nvidia.com/gpu": 1}, None),
    }
    plugins = [pod for pod in facts("clusters/eks-managed-spot-ondemand.json").pods if pod.is_daemon]
    assert plugins
    assert all(pod.other_gpu_claim is None for pod in plugins)


def test_a_finished_pod_tells_only_when_it_let_go() -> None:
    cluster = facts("clusters/eks-managed-spot-ondemand.json")
    node = cluster.node("ip-192-0-2-21.eu-west-1.compute.internal")
    assert node is not None
    assert [pod.ref.name for pod in node.gpu_pods] == ["finetune-llama-run7"]
    assert str(node.last_gpu_release) == "2026-11-29 03:12:40+00:00"


def test_virtual_functions_of_network_cards_are_no_gpus() -> None:
    node = facts("clusters/oke-a10-a100-pools.json").node("192.0.2.93")
    assert node is not None
    assert [(item.name, item.allocatable) for item in node.resources] == [("nvidia.com/gpu", 8)]


@pytest.mark.parametrize("name", CASES)
def test_every_case_can_be_read_and_its_gpu_nodes_are_found(name: str) -> None:
    cluster = facts(f"cases/{name}/cluster.json")
    gpu_nodes = {
        "01": 1, "03": 0, "06": 1, "10": 1, "12": 1, "15": 1, "18": 1, "20": 2, "24": 1, "26": 1, "27": 1, "29": 1,
    }  # fmt: skip
    assert len(cluster.gpu_nodes) == gpu_nodes[name[:2]]


def test_a_real_scheduler_and_the_facts_agree_on_who_waits() -> None:
    cluster = facts("apiserver/pending-pods-1.36.json")
    waiting = {pod.ref.name for pod in cluster.pending_gpu_pods}
    assert len(waiting) == 14
    assert {pod.ref.name for pod in cluster.pending_gpu_pods if pod.scheduling_gated} == {"gated"}
    assert {node.name: sum(item.free or 0 for item in node.resources) for node in cluster.nodes} == {
        "h100-aws-00000": 8,
        "h100-aws-00001": 0,
        "h100-aws-00002": 7,
        "h100-aws-00003": 7,
        "h100-gke-00004": 0,
        "h100-gke-00005": 0,
    }


def test_events_are_found_by_their_object_oldest_first() -> None:
    cluster = facts("apiserver/pending-pods-1.36.json")
    pod = next(pod for pod in cluster.pods if pod.ref.name == "sixteen-gpus")
    events = cluster.events_of(pod.ref)
    assert [event.reason for event in events] == ["FailedScheduling"] * len(events)
    assert events
