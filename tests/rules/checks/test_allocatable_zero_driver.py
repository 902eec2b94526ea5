"""A GPU node without a usable GPU: when it is one, and which layer is named."""

from datetime import timedelta
from typing import Any

import pytest

from rules.checks._stack import OFFERS_NONE
from rules.findings import Severity
from rules.language import LANGUAGES
from rules.words import render
from tests.rules.checks.kit import Plain, container_status, daemon_set, findings, keys, node, only, pod, stamp

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


def told(*objects: Plain) -> tuple[str, str]:
    """The rule that tells of the node without a GPU, and its remedy; it must be one alone."""
    said = [item for rule in OFFERS_NONE for item in findings(rule, *objects)]
    assert len(said) == 1, said
    return said[0].rule, said[0].remedy


def test_a_node_whose_gpus_are_published_by_dra_needs_no_resource() -> None:
    assert findings(RULE, bare(), slice_of("gpu-1")) == []
    assert told(bare(), slice_of("gpu-2")) == ("dra-slice-missing", "no_pod")
    assert told(bare(), slice_of("gpu-1", driver="compute-domain.nvidia.com")) == (RULE, "default")


def test_without_slices_in_view_a_working_dra_plugin_is_trusted() -> None:
    name, image = "dra-driver-nvidia-gpu-kubelet-plugin", "dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
    assert findings("dra-slice-missing", bare(), component(name, image, up=timedelta(days=1), ready=True)) == []
    assert told(bare(), component(name, image, waiting="CrashLoopBackOff", restarts=9))[0] == "dra-slice-missing"


@pytest.mark.parametrize("resource", ["nvidia.com/GA102GL_A10", "volcano.sh/vgpu-number", "aliyun.com/gpu-mem"])
def test_gpus_that_are_handed_out_in_another_way_are_no_trouble(resource: str) -> None:
    assert not [item for rule in OFFERS_NONE for item in findings(rule, node(gpus={resource: 2}, labels=PCI))]


def test_gpu_software_that_is_just_starting_is_waited_for() -> None:
    young = component("nvidia-driver-daemonset", "nvidia/driver:580")
    young["metadata"]["creationTimestamp"] = stamp(timedelta(minutes=4))
    assert findings(RULE, bare(), young) == []


def test_gpu_software_that_is_switched_off_on_purpose_weighs_less() -> None:
    found = only(RULE, bare(labels={**PCI, "nvidia.com/gpu.deploy.operands": "false"}))
    assert (found.remedy, found.severity) == ("switched_off", Severity.MEDIUM)


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


MISMATCH = "nvml init failed: ERROR_LIB_RM_VERSION_MISMATCH (Driver/library version mismatch)"
NO_NVML = "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file"


@pytest.mark.parametrize(
    ("said", "rule", "remedy"),
    [
        (MISMATCH, "driver-library-mismatch", "default"),
        (NO_NVML, "node-image-without-driver", "default"),
        ("Incompatible strategy detected auto. did you configure the NVIDIA Container Toolkit?", RULE, "toolkit"),
        ("permission denied on the kubelet socket", RULE, "plugin"),
        (None, RULE, "plugin"),
    ],
)
def test_the_last_words_of_the_plugin_tell_the_layer(said: str | None, rule: str, remedy: str) -> None:
    plugin = component("nvidia-device-plugin", PLUGIN, waiting="CrashLoopBackOff", restarts=35, said=said)
    assert told(bare(), plugin) == (rule, remedy)


def test_a_plugin_without_library_beside_a_working_driver_lacks_the_runtime() -> None:
    plugin = component("nvidia-device-plugin", PLUGIN, waiting="CrashLoopBackOff", restarts=35, said=NO_NVML)
    driver = component("nvidia-driver-daemonset", "nvidia/driver:580", up=timedelta(days=2), ready=True)
    assert told(bare(), plugin, driver) == (RULE, "toolkit")
    k3s = bare()
    k3s["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://2.1.4-k3s2"
    assert told(k3s, plugin) == (RULE, "toolkit")


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


DEDICATED = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def test_a_taint_that_keeps_driver_or_toolkit_off_is_named() -> None:
    driver = daemon_set("nvidia-driver-daemonset", "nvidia/driver:580")
    found = only(RULE, bare(taints=[DEDICATED]), driver, daemon_set("nvidia-device-plugin", PLUGIN, **TOLERANT))
    assert (found.remedy, found.value("layer")) == ("kept_off", "driver")
    assert "dedicated" in render(found, "en").detail
    assert "DaemonSet/kube-system/nvidia-driver-daemonset" in {str(ref) for ref in found.objects}


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/unschedulable",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "amd-gpu-unhealthy",
    ],
)
def test_taints_that_pass_never_keep_a_daemon_set_off(key: str) -> None:
    tainted = bare(taints=[{"key": key, "effect": "NoSchedule"}], unschedulable=True)
    assert told(tainted, daemon_set("nvidia-device-plugin", PLUGIN)) == (RULE, "default")


def test_a_failed_mig_configuration_has_a_rule_of_its_own() -> None:
    labels = {**PCI, "nvidia.com/mig.config": "all-7g.80gb", "nvidia.com/mig.config.state": "failed"}
    assert told(node(gpus={"nvidia.com/gpu": 0}, labels=labels)) == ("mig-config-failed", "default")


def test_an_nvidia_plugin_on_an_amd_card_gets_no_nvidia_advice() -> None:
    amd = bare(labels={"feature.node.kubernetes.io/pci-0300_1002.present": "true"})
    plugin = component("nvidia-device-plugin", PLUGIN, waiting="CrashLoopBackOff", restarts=14, said=NO_NVML)
    assert told(amd, plugin) == ("gpu-of-another-vendor", "amd")
    for language in LANGUAGES:
        assert "NVIDIA driver" not in render(only("gpu-of-another-vendor", amd, plugin), language).remedy


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
