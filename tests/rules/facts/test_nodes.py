"""What labels, resources and provider ids tell of a node."""

from typing import Any

import pytest

from rules.facts.identity import provider_of, region_of
from tests.rules.facts.make import cluster, container, facts_of, node, other, pod

GPU = "nvidia.com/gpu"
GFD = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


@pytest.mark.parametrize(
    ("labels", "gpus", "evidence", "vendor"),
    [
        ({}, {GPU: "1"}, "resource", "nvidia"),
        ({}, {"gpu.intel.com/xe": 2}, "resource", "intel"),
        ({}, {"habana.ai/gaudi": 8}, "resource", "habana"),
        ({"nvidia.com/gpu.present": "true"}, {GPU: "0"}, "feature-label", "nvidia"),
        ({"feature.node.kubernetes.io/pci-10de.present": "true"}, {}, "feature-label", "nvidia"),
        ({"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, {}, "feature-label", "nvidia"),
        ({"feature.node.kubernetes.io/pci-1200_1002.present": "true"}, {}, "feature-label", "amd"),
        ({"feature.node.kubernetes.io/amd-gpu": "true"}, {}, "feature-label", "amd"),
        ({"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X": "8"}, {}, "feature-label", "amd"),
        ({"intel.feature.node.kubernetes.io/gpu": "true"}, {}, "feature-label", "intel"),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, {}, "provider-label", "nvidia"),
        ({"kubernetes.azure.com/accelerator": "nvidia"}, {}, "provider-label", "nvidia"),
        ({"accelerator": "amd"}, {}, "provider-label", "amd"),
        (
            {"doks.digitalocean.com/gpu-model": "mi300x", "doks.digitalocean.com/gpu-brand": "amd"},
            {},
            "provider-label",
            "amd",
        ),
        ({"node.coreweave.cloud/class": "gpu"}, {}, "provider-label", None),
        ({"node.kubernetes.io/instance-type": "g5.xlarge"}, {}, "instance-type", "nvidia"),
        ({"gpu": "l40s"}, {}, "user-label", None),
        ({"example.com/gpu-type": "nvidia-a10"}, {}, "user-label", "nvidia"),
    ],
)
def test_the_strongest_sign_of_a_gpu_is_named(labels: Any, gpus: Any, evidence: str, vendor: str | None) -> None:
    found = facts_of(node(labels=labels, gpus=gpus))
    assert (found.gpu_evidence, found.vendor) == (evidence, vendor)


@pytest.mark.parametrize(
    ("labels", "gpus"),
    [
        ({}, {}),
        ({}, {GPU: "0"}),
        ({}, {"nvidia.com/hostdev": "2", "rdma/ib": "1", "gpu.intel.com/monitoring": 1}),
        ({"nvidia.com/gpu.present": "false"}, {}),
        ({"feature.node.kubernetes.io/pci-0300_8086.present": "true"}, {}),
        ({"feature.node.kubernetes.io/pci-1002.present": "true"}, {}),
        ({"feature.node.kubernetes.io/pci-15b3.present": "true"}, {}),
        ({"node.coreweave.cloud/class": "cpu"}, {}),
        ({"kubernetes.azure.com/accelerator": "none"}, {}),
        ({"node.kubernetes.io/instance-type": "m5.large"}, {}),
        ({"node.kubernetes.io/instance-type": "k3s"}, {}),
        ({"node-role.kubernetes.io/gpu-worker": ""}, {}),
        ({"gpu": "false"}, {}),
        ({"gpu": "none"}, {}),
    ],
)
def test_a_node_without_a_sign_of_a_gpu_is_none(labels: Any, gpus: Any) -> None:
    found = facts_of(node(labels=labels, gpus=gpus))
    assert (found.is_gpu_node, found.physical_gpus, found.price) == (False, None, None)


def share(strategy: str, replicas: str, product: str = "Tesla-T4-SHARED") -> dict[str, str]:
    return {
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.sharing-strategy": strategy,
        "nvidia.com/gpu.replicas": replicas,
    }


GKE = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-nodepool": "p"}
MIG_SINGLE = {"nvidia.com/gpu.count": "56", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}


@pytest.mark.parametrize(
    ("labels", "gpus", "mode", "replicas", "profiles", "cards"),
    [
        (share("time-slicing", "4"), {GPU: 8}, "time-slicing", 4, {}, 2),
        (share("mps", "10"), {GPU: 20}, "mps", 10, {}, 2),
        (share("time-slicing", "4", "Tesla-T4"), {GPU: 0, f"{GPU}.shared": 8}, "time-slicing", 4, {}, 2),
        (share("none", "1", "Tesla-T4"), {GPU: 2}, "none", 1, {}, 2),
        (share("none", "1", "Tesla-T4"), {GPU: 20}, None, None, {}, 2),
        ({}, {f"{GPU}.shared": 8}, "time-slicing", None, {}, None),
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, {GPU: 4}, "time-slicing", None, {}, None),
        (MIG_SINGLE, {GPU: 56}, "mig-single", None, {"1g.10gb": 56}, None),
        (
            {**MIG_SINGLE, "node.kubernetes.io/instance-type": "p5.48xlarge"},
            {GPU: 56},
            "mig-single",
            None,
            {"1g.10gb": 56},
            8,
        ),
        (
            {"nvidia.com/gpu.count": "0", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"},
            {GPU: 0},
            "mig-single",
            None,
            {},
            None,
        ),
        (
            {**GFD, "nvidia.com/mig.strategy": "mixed"},
            {GPU: 4, "nvidia.com/mig-1g.10gb": 7, "nvidia.com/mig-3g.40gb": 2},
            "mig-mixed",
            None,
            {"1g.10gb": 7, "3g.40gb": 2},
            8,
        ),
        (GKE, {GPU: 1}, "none", 1, {}, 1),
        (
            {
                **GKE,
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
            },
            {GPU: 6},
            "time-slicing",
            3,
            {},
            2,
        ),
        (
            {**GKE, "cloud.google.com/gke-gpu-partition-size": "1g.5gb", "cloud.google.com/gke-accelerator-count": "1"},
            {GPU: 7},
            "mig-single",
            None,
            {"1g.5gb": 7},
            1,
        ),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/compute-memory-partition": "cpx_nps4"},
            {"amd.com/gpu": 64},
            "partitioned",
            8,
            {"cpx_nps4": 64},
            8,
        ),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI999X", "amd.com/compute-memory-partition": "cpx_nps1"},
            {"amd.com/gpu": 64},
            "partitioned",
            None,
            {"cpx_nps1": 64},
            None,
        ),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/compute-memory-partition": "dpx_nps1"},
            {"amd.com/dpx_nps1": 16},
            "partitioned",
            2,
            {"dpx_nps1": 16},
            None,
        ),
        ({"karpenter.k8s.aws/instance-gpu-count": "8"}, {GPU: 8}, "none", 1, {}, 8),
        ({"karpenter.k8s.aws/instance-gpu-count": "8"}, {GPU: 32}, None, None, {}, 8),
        ({"gpu.nvidia.com/count": "8"}, {}, None, None, {}, 8),
        ({"node.kubernetes.io/instance-type": "Standard_NV6ads_A10_v5"}, {GPU: 1}, None, None, {}, 1),
        ({}, {GPU: 4}, None, None, {}, 4),
    ],
)
def test_cards_are_counted_and_never_their_shares(
    labels: Any, gpus: Any, mode: str | None, replicas: int | None, profiles: Any, cards: int | None
) -> None:
    found = facts_of(node(labels=labels, gpus=gpus))
    assert (found.sharing.mode, found.sharing.replicas, dict(found.sharing.profiles)) == (mode, replicas, profiles)
    assert found.physical_gpus == cards


def test_unhealthy_cards_are_still_there() -> None:
    assert facts_of(node(gpus={GPU: "7"}, capacity={GPU: "8"})).physical_gpus == 8


@pytest.mark.parametrize(
    "register",
    [
        "GPU-1,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:GPU-2,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:",
        '[{"id":"GPU-1","count":10},{"id":"GPU-2","count":10}]',
    ],
)
def test_hami_multiplies_units_and_its_register_names_the_cards(register: str) -> None:
    found = facts_of(node(gpus={GPU: 20}, annotations={"hami.io/node-nvidia-register": register}))
    assert (found.sharing.mode, found.physical_gpus) == ("hami", 2)


@pytest.mark.parametrize(
    ("labels", "version", "source", "cuda"),
    [
        (
            {"nvidia.com/cuda.driver-version.full": "550.107.02", "nvidia.com/cuda.runtime-version.full": "12.4"},
            "550.107.02",
            "nvidia.com/cuda.driver-version.full",
            "12.4",
        ),
        (
            {
                "nvidia.com/cuda.driver.major": "535",
                "nvidia.com/cuda.driver.minor": "183",
                "nvidia.com/cuda.driver.rev": "01",
                "nvidia.com/cuda.runtime.major": "12",
                "nvidia.com/cuda.runtime.minor": "2",
            },
            "535.183.01",
            "nvidia.com/cuda.driver.major, minor, rev",
            "12.2",
        ),
        (
            {
                "nvidia.com/cuda.driver.major": "595",
                "nvidia.com/cuda.driver.minor": "10",
                "nvidia.com/cuda.driver.rev": "",
            },
            "595.10",
            "nvidia.com/cuda.driver.major, minor, rev",
            None,
        ),
        ({"nvidia.com/cuda.driver.major": "535"}, None, None, None),
        ({"cloud.google.com/cuda.driver-version.major": "535"}, None, None, None),
        (
            {"cloud.google.com/cuda.driver-version.full": "535.1.2"},
            "535.1.2",
            "cloud.google.com/cuda.driver-version.full",
            None,
        ),
        ({"nvidia.com/cuda.driver-version.full": "unknown"}, None, None, None),
        ({"amd.com/gpu.driver-version": "6.16.6"}, "6.16.6", "amd.com/gpu.driver-version", None),
    ],
)
def test_the_driver_is_known_exactly_or_not_at_all(
    labels: Any, version: str | None, source: str | None, cuda: str | None
) -> None:
    found = facts_of(node(labels=labels, gpus={GPU: 1}))
    assert (found.driver_version, found.driver_source, found.cuda_ceiling) == (version, source, cuda)


@pytest.mark.parametrize(
    ("labels", "product", "memory"),
    [
        ({"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.memory": "15360"}, "Tesla-T4", 15360),
        ({"nvidia.com/gpu.product": "NVIDIA-A30-MIG-1g.6gb", "nvidia.com/gpu.memory": "5952"}, "NVIDIA-A30", None),
        ({"beta.amd.com/gpu.product-name.Instinct_MI300X": "8"}, "Instinct_MI300X", None),
        (
            {
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/gpu.vram": "24G",
                "amd.com/compute-memory-partition": "cpx_nps4",
            },
            "AMD_Instinct_MI300X_OAM",
            192 * 1024,
        ),
        (
            {"karpenter.k8s.aws/instance-gpu-name": "l40s", "karpenter.k8s.aws/instance-gpu-memory": "46080"},
            "l40s",
            46080,
        ),
        ({"accelerator": "nvidia-t4"}, "nvidia-t4", None),
        ({"accelerator": "nvidia"}, None, None),
        ({"gpu": "rtx4090"}, "rtx4090", None),
        ({"gpu": "true"}, None, None),
        ({"node.kubernetes.io/instance-type": "g4dn.xlarge"}, "T4", None),
    ],
)
def test_the_model_is_named_without_suffixes_of_sharing(labels: Any, product: str | None, memory: int | None) -> None:
    found = facts_of(node(labels=labels))
    assert (found.product, found.gpu_memory_mib) == (product, memory)


@pytest.mark.parametrize(
    ("provider_id", "labels", "provider"),
    [
        ("aws:///us-east-1a/i-0123", {}, "aws"),
        ("gce://p/us-central1-a/n", {}, "gcp"),
        ("azure:///subscriptions/x", {}, "azure"),
        ("ocid1.instance.oc1.eu-frankfurt-1.x", {}, "oci"),
        ("oci://ocid1.instance.oc1.iad.x", {}, "oci"),
        ("cn-hangzhou.i-bp1234", {}, "alibaba"),
        ("linode://1", {}, "akamai"),
        ("hrobot://2", {}, "hetzner"),
        ("nebius://computeinstance-x", {}, "nebius"),
        ("openstack:///uuid", {"node.k8s.ovh/type": "gpu"}, "ovhcloud"),
        ("openstack:///uuid", {"servers.ngpc.rxt.io/class": "gpu"}, "rackspace-spot"),
        ("openstack:///uuid", {}, None),
        ("k3s://n1", {}, None),
        ("kind://docker/c/n", {}, None),
        ("eks-hybrid:///r/c/n", {}, None),
        (None, {"eks.amazonaws.com/nodegroup": "g"}, "aws"),
        (None, {"cloud.google.com/gke-nodepool": "p"}, "gcp"),
        (None, {"kubernetes.io/hostname": "n"}, None),
    ],
)
def test_the_provider_is_recognised_or_unknown(provider_id: str | None, labels: Any, provider: str | None) -> None:
    assert provider_of(provider_id, labels) == provider


def test_an_instance_type_of_one_provider_only_tells_the_provider() -> None:
    assert facts_of(node(labels={"node.kubernetes.io/instance-type": "g4dn.xlarge"})).provider == "aws"
    assert facts_of(node(labels={"node.kubernetes.io/instance-type": "H100"}, gpus={GPU: 1})).provider is None


def test_a_region_is_read_from_the_zone_where_that_is_safe() -> None:
    assert region_of({"topology.kubernetes.io/zone": "eu-west-1b"}, "aws") == "eu-west-1"
    assert region_of({"topology.kubernetes.io/zone": "us-west-2-lax-1a"}, "aws") is None
    assert region_of({"topology.kubernetes.io/zone": "europe-west4-a"}, "gcp") == "europe-west4"
    assert region_of({"topology.kubernetes.io/zone": "eu-west-1b"}, None) is None
    assert region_of({"failure-domain.beta.kubernetes.io/region": "r"}, None) == "r"


@pytest.mark.parametrize(
    ("labels", "taints", "spot"),
    [
        ({"karpenter.sh/capacity-type": "spot"}, [], True),
        ({"karpenter.sh/capacity-type": "on-demand"}, [], False),
        ({"karpenter.sh/capacity-type": "reserved"}, [], False),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, [], True),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, [], False),
        ({"node.kubernetes.io/lifecycle": "Ec2Spot"}, [], True),
        ({"cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-spot": "true"}, [], True),
        ({"cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-preemptible": "true"}, [], True),
        ({"cloud.google.com/gke-nodepool": "p"}, [], False),
        ({"kubernetes.azure.com/agentpool": "p", "kubernetes.azure.com/scalesetpriority": "spot"}, [], True),
        ({"kubernetes.azure.com/agentpool": "p"}, [], False),
        ({"oci.oraclecloud.com/oke-is-preemptible": "true"}, [], True),
        ({"spotinst.io/node-lifecycle": "od"}, [], False),
        ({"node.alibabacloud.com/spot-strategy": "SpotAsPriceGo"}, [], True),
        ({}, [{"key": "qos.coreweave.cloud/interruptable", "effect": "NoExecute"}], True),
        ({}, [{"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}], True),
        ({"doks.digitalocean.com/node-pool": "p"}, [], None),
        ({}, [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}], None),
        ({}, [], None),
    ],
)
def test_spot_is_told_by_labels_and_taints_only(labels: Any, taints: Any, spot: bool | None) -> None:
    assert facts_of(node(labels=labels, taints=taints)).spot is spot


def test_the_pool_of_an_openshift_node_is_the_machine_set_of_its_machine() -> None:
    machine = other(
        "Machine",
        "m1",
        "machine.openshift.io/v1beta1",
        namespace="openshift-machine-api",
        labels={"machine.openshift.io/cluster-api-machineset": "gpu-us-east-2a"},
    )
    one = node(annotations={"machine.openshift.io/machine": "openshift-machine-api/m1"})
    assert cluster([one], others={"Machine": [machine]}).nodes[0].pool == "gpu-us-east-2a"
    assert facts_of(node(labels={"nodepool": "mine"})).pool is None
    assert facts_of(node(labels={"nodepool": "gpu", "node.k8s.ovh/type": "gpu"})).pool == "gpu"


def test_what_is_bound_is_counted_and_what_has_finished_is_not() -> None:
    ended = {"containerStatuses": [{"name": "c", "state": {"terminated": {"finishedAt": "2026-11-29T10:00:00Z"}}}]}
    found = facts_of(
        node(gpus={GPU: "8", "nvidia.com/mig-1g.10gb": "7"}),
        pod("a", container({GPU: 2})),
        pod("b", container({GPU: 1}), phase="Pending"),
        pod("c", container({GPU: 4}), phase="Succeeded", status=ended),
        pod("d", container({GPU: 4}), phase="Failed"),
        pod("e", container({"nvidia.com/mig-1g.10gb": 3})),
        pod("f", container({GPU: 1}), on="gone"),
        pod("g", container({GPU: 1}), on=None, phase="Pending"),
        pod("h", container({"amd.com/gpu": 1})),
        pod("i", container({"cpu": 1})),
    )
    assert {item.name: (item.allocatable, item.requested, item.free) for item in found.resources} == {
        GPU: (8, 3, 5),
        "nvidia.com/mig-1g.10gb": (7, 3, 4),
        "amd.com/gpu": (None, 1, None),
    }
    assert [item.ref.name for item in found.pods] == ["a", "b", "e", "h", "i"]
    assert [item.ref.name for item in found.gpu_pods] == ["a", "b", "e", "h"]
    assert str(found.last_gpu_release) == "2026-11-29 10:00:00+00:00"


def test_free_units_are_never_negative() -> None:
    assert facts_of(node(gpus={GPU: "0"}, capacity={GPU: "1"}), pod("a", container({GPU: 1}))).resources[0].free == 0


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False), (None, None)])
def test_a_node_that_stopped_reporting_is_not_ready(status: str | None, ready: bool | None) -> None:
    import msgspec

    from rules.facts.objects import Node

    conditions = [{"type": "Ready", "status": status}] if status else []
    one = msgspec.convert({"metadata": {"name": "n"}, "status": {"conditions": conditions}}, Node)
    assert facts_of(one).ready is ready
