"""A GPU node without a usable GPU: when it is one, and which layer is named."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from rules.words import render
from tests.rules.checks.kit import Plain, container_status, daemon_set, findings, keys, node, only, pod

RULE = "allocatable-zero-driver"
PLUGIN = "nvidia/k8s-device-plugin:v0.19.3"
PCI = {"feature.node.kubernetes.io/pci-10de.present": "true"}
TOLERANT = {"tolerations": [{"operator": "Exists"}]}


def bare(**changes: Any) -> dict[str, Any]:
    return node(gpus={}, labels=changes.pop("labels", PCI), **changes)


def component(name: str, image: str, **status: Any) -> dict[str, Any]:
    return pod(
        f"{name}-x7k2a",
        namespace="gpu-operator",
        on="gpu-1",
        image=image,
        owner=("DaemonSet", name),
        status=container_status(**status),
    )


@pytest.mark.parametrize(
    "fine",
    [
        node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 16}),
        node(gpus={"nvidia.com/gpu": 0, "nvidia.com/mig-1g.5gb": 7}),
        node(gpus={"nvidia.com/gpu": 3}, capacity={"nvidia.com/gpu": 4}),
        bare(age=timedelta(minutes=10)),
        bare(age=timedelta(days=9), ready_for=timedelta(minutes=4)),
        bare(ready="False"),
        bare(ready="Unknown"),
        node(gpus={}, labels={"kubernetes.io/hostname": "cpu-1"}),
    ],
    ids=["renamed", "mig", "partly", "young", "just-rebooted", "not-ready", "unknown", "cpu-node"],
)
def test_nodes_that_are_healthy_young_or_unready_are_left_alone(fine: Plain) -> None:
    assert findings(RULE, fine) == []


def test_allocatable_zero_of_four_is_found() -> None:
    found = only(RULE, node(gpus={"nvidia.com/gpu": 0}, capacity={"nvidia.com/gpu": 4}))
    assert found.value("resources") == ["nvidia.com/gpu=0"]
    assert found.cost is None or found.cost.usd_so_far is None


def slice_of(node_name: str, driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}"},
        "spec": {"nodeName": node_name, "driver": driver, "devices": []},
    }


def test_a_node_whose_gpus_are_published_by_dra_needs_no_resource() -> None:
    assert findings(RULE, bare(), slice_of("gpu-1")) == []
    only(RULE, bare(), slice_of("gpu-2"))
    only(RULE, bare(), slice_of("gpu-1", driver="compute-domain.nvidia.com"))


def test_without_slices_in_view_a_working_dra_plugin_is_trusted() -> None:
    name, image = "dra-driver-nvidia-gpu-kubelet-plugin", "dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
    assert findings(RULE, bare(), component(name, image, up=timedelta(days=1), ready=True)) == []
    assert only(RULE, bare(), component(name, image, waiting="CrashLoopBackOff", restarts=9)).remedy == "dra"


def test_the_lowest_broken_layer_speaks_alone() -> None:
    driver = component("nvidia-driver-daemonset", "nvidia/driver:580", waiting="CrashLoopBackOff", restarts=198)
    plugin = component("nvidia-device-plugin-daemonset", PLUGIN, waiting="CrashLoopBackOff", restarts=12)
    found = only(RULE, bare(), driver, plugin)
    assert found.value("layer") == "driver"
    assert [str(ref) for ref in found.objects] == [
        "Node/gpu-1",
        "Pod/gpu-operator/nvidia-driver-daemonset-x7k2a",
    ]
    assert "198 restarts" in render(found, "en").detail


@pytest.mark.parametrize(
    ("said", "remedy", "layer"),
    [
        (
            "nvml init failed: ERROR_LIB_RM_VERSION_MISMATCH (Driver/library version mismatch)",
            "library_mismatch",
            "driver",
        ),
        ("could not load NVML library: libnvidia-ml.so.1: cannot open shared object file", "driver_missing", "driver"),
        ("Incompatible strategy detected auto. did you configure the NVIDIA Container Toolkit?", "toolkit", "toolkit"),
        ("permission denied on the kubelet socket", "plugin", "plugin"),
        (None, "plugin", "plugin"),
    ],
)
def test_the_last_words_of_the_plugin_tell_the_layer(said: str | None, remedy: str, layer: str) -> None:
    plugin = component("nvidia-device-plugin", PLUGIN, waiting="CrashLoopBackOff", restarts=35, said=said)
    found = only(RULE, bare(), plugin)
    assert (found.remedy, found.value("layer")) == (remedy, layer)


def validator(layer: str) -> dict[str, Any]:
    order = ["driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"]
    done = order[: order.index(layer)]
    statuses = [
        {
            "name": name,
            "state": {"terminated": {"exitCode": 0}} if name in done else {"waiting": {"reason": "PodInitializing"}},
        }
        for name in order
    ]
    return pod(
        "nvidia-operator-validator-1",
        namespace="gpu-operator",
        on="gpu-1",
        owner=("DaemonSet", "nvidia-operator-validator"),
        phase="Pending",
        status={"initContainerStatuses": statuses},
    )


@pytest.mark.parametrize(
    ("waits_in", "layer"),
    [("driver-validation", "driver"), ("toolkit-validation", "toolkit"), ("plugin-validation", "plugin")],
)
def test_the_validator_names_the_layer_it_waits_for(waits_in: str, layer: str) -> None:
    assert only(RULE, bare(), validator(waits_in)).value("layer") == layer


def test_a_taint_that_the_plugin_does_not_tolerate_is_named() -> None:
    tainted = bare(taints=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])
    found = only(RULE, tainted, plugin)
    assert found.remedy == "toleration"
    assert "dedicated" in render(found, "en").detail
    assert "DaemonSet/kube-system/nvidia-device-plugin" in {str(ref) for ref in found.objects}


def test_taints_of_the_node_life_cycle_never_keep_a_daemon_set_off() -> None:
    tainted = bare(taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], unschedulable=True)
    assert only(RULE, tainted, daemon_set("nvidia-device-plugin", PLUGIN)).remedy == "default"


def test_a_plugin_that_does_not_select_the_node_is_named() -> None:
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, nodeSelector={"gpu": "on"}, **TOLERANT)
    found = only(RULE, bare(), plugin)
    assert (found.remedy, keys(found)[0]) == ("not_selected", "not_selected")


def test_a_cluster_without_any_plugin_is_told_so_only_when_daemon_sets_were_read() -> None:
    other = daemon_set("kube-proxy", "eks/kube-proxy:v1.35")
    assert only(RULE, bare(), other).remedy == "plugin_absent"
    assert only(RULE, bare()).remedy == "default"


def test_mps_control_daemon_is_no_device_plugin() -> None:
    mps = daemon_set("nvdp-nvidia-device-plugin-mps-control-daemon", PLUGIN, **TOLERANT)
    assert only(RULE, bare(), mps).remedy == "plugin_absent"


def test_an_nvidia_plugin_on_an_amd_card_gets_no_nvidia_advice() -> None:
    amd = bare(labels={"feature.node.kubernetes.io/pci-0300_1002.present": "true"})
    plugin = component("nvidia-device-plugin", PLUGIN, waiting="CrashLoopBackOff", restarts=14)
    found = only(RULE, amd, plugin)
    assert found.remedy == "other_vendor"
    assert "NVIDIA driver" not in render(found, "en").remedy


def test_a_failed_mig_configuration_is_named() -> None:
    labels = {**PCI, "nvidia.com/mig.config": "all-7g.80gb", "nvidia.com/mig.config.state": "failed"}
    found = only(RULE, node(gpus={"nvidia.com/gpu": 0}, labels=labels))
    assert found.remedy == "mig"
    assert "all-7g.80gb" in render(found, "it").detail


def test_a_users_own_label_weighs_less_and_says_so() -> None:
    found = only(RULE, bare(labels={"gpu": "l40s"}))
    assert found.severity == Severity.MEDIUM
    assert "user_label" in keys(found)
    assert only(RULE, bare()).severity == Severity.HIGH


def test_a_node_that_never_registered_its_gpu_costs_since_its_creation() -> None:
    labels = {"node.kubernetes.io/instance-type": "g5.xlarge", "topology.kubernetes.io/region": "eu-west-1"}
    where: dict[str, Any] = {"providerID": "aws:///eu-west-1a/i-0123456789abcdef0"}
    never = only(RULE, bare(labels=labels, age=timedelta(days=2), **where))
    assert never.cost is not None
    assert never.cost.usd_so_far == pytest.approx(48 * never.cost.usd_hour, abs=0.01)
    lost = only(RULE, node(gpus={"nvidia.com/gpu": 0}, labels=labels, age=timedelta(days=2), **where))
    assert lost.cost is not None
    assert lost.cost.usd_so_far is None
