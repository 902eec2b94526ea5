"""Device plugins that are not there: absent, kept off by a taint, made for other nodes, or two at once."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Finding, Severity
from rules.words import render
from tests.rules.checks.kit import Plain, container_status, daemon_set, findings, keys, node, only, pod

PLUGIN = "nvidia/k8s-device-plugin:v0.19.3"
PCI = {"feature.node.kubernetes.io/pci-10de.present": "true"}
DEDICATED = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
NVIDIA_TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
TOLERANT: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
NVIDIA_ONLY: dict[str, Any] = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


def bare(name: str = "gpu-1", **changes: Any) -> dict[str, Any]:
    return node(name, gpus={}, labels=changes.pop("labels", PCI), **changes)


def plugin_pod(name: str = "nvidia-device-plugin", on: str = "gpu-1", image: str = PLUGIN, **more: Any) -> Plain:
    status = container_status(up=timedelta(days=1), ready=True)
    return pod(
        f"{name}-{on}", namespace="kube-system", on=on, image=image, owner=("DaemonSet", name), status=status, **more
    )


def objects(found: Finding) -> set[str]:
    return {str(ref) for ref in found.objects}


def test_a_plugin_that_is_not_installed_is_told_only_where_daemon_sets_were_read() -> None:
    other = daemon_set("kube-proxy", "eks/kube-proxy:v1.35")
    assert only("device-plugin-missing", bare(), other).remedy == "plugin_absent"
    assert findings("device-plugin-missing", bare()) == []


@pytest.mark.parametrize(
    ("maker_label", "remedy"),
    [
        ({"feature.node.kubernetes.io/pci-0300_1002.present": "true"}, "amd"),
        ({"intel.feature.node.kubernetes.io/gpu": "true"}, "intel"),
    ],
)
def test_the_plugin_to_install_is_that_of_the_cards_maker(maker_label: dict[str, str], remedy: str) -> None:
    nvidia = daemon_set("nvidia-device-plugin", PLUGIN, **TOLERANT)
    found = only("device-plugin-missing", bare(labels=maker_label), nvidia)
    assert found.remedy == remedy
    assert "nvidia" not in render(found, "en").remedy.lower()


def test_mps_daemons_and_feature_discovery_are_no_device_plugins() -> None:
    for name in ("nvdp-nvidia-device-plugin-mps-control-daemon", "gpu-feature-discovery"):
        assert only("device-plugin-missing", bare(), daemon_set(name, PLUGIN, **TOLERANT)).remedy == "plugin_absent"


@pytest.mark.parametrize(
    "managed",
    [
        bare(providerID="gce://p/europe-west4-a/gpu-1"),
        bare(labels={**PCI, "eks.amazonaws.com/compute-type": "auto"}),
    ],
    ids=["gke", "eks-auto-mode"],
)
def test_a_plugin_that_the_provider_brings_is_not_missed(managed: Plain) -> None:
    assert findings("device-plugin-missing", managed, daemon_set("kube-proxy", "kube-proxy:1")) == []
    assert only("allocatable-zero-driver", managed, daemon_set("kube-proxy", "kube-proxy:1")).remedy == "built_in"


def test_gke_with_its_plugin_switched_off_needs_one() -> None:
    labels = {**PCI, "gke-no-default-nvidia-gpu-device-plugin": "true"}
    gke = bare(labels=labels, providerID="gce://p/europe-west4-a/gpu-1")
    assert only("device-plugin-missing", gke, daemon_set("kube-proxy", "kube-proxy:1")).remedy == "plugin_absent"


def test_a_taint_that_the_plugin_does_not_tolerate_is_one_finding_per_daemon_set() -> None:
    nodes = [bare(f"gpu-{index}", taints=[DEDICATED]) for index in (1, 2)]
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **NVIDIA_ONLY)
    exporter = daemon_set("nvidia-container-toolkit-daemonset", "toolkit:1", **NVIDIA_ONLY)
    found = only("plugin-not-tolerating-taint", *nodes, plugin)
    assert objects(found) == {"DaemonSet/kube-system/nvidia-device-plugin", "Node/gpu-1", "Node/gpu-2"}
    assert "{key: dedicated, operator: Exists}" in render(found, "es").remedy
    # The toolkit is the lower layer, so that it is named first, and as a part that lacks what ... the plugin lacks too.
    assert findings("operand-without-toleration", *nodes, plugin, exporter) == []


def test_a_plugin_that_serves_the_node_makes_others_that_do_not_irrelevant() -> None:
    strict = daemon_set("nvidia-device-plugin", PLUGIN, **NVIDIA_ONLY)
    other = daemon_set("nvdp-nvidia-device-plugin", PLUGIN, **TOLERANT)
    assert findings("plugin-not-tolerating-taint", bare(taints=[DEDICATED]), strict, other) == []


def test_a_plugin_of_another_maker_is_not_to_be_made_tolerant() -> None:
    amd = bare(labels={"feature.node.kubernetes.io/pci-0300_1002.present": "true"}, taints=[DEDICATED])
    assert findings("plugin-not-tolerating-taint", amd, daemon_set("nvidia-device-plugin", PLUGIN)) == []


def test_a_plugin_that_was_there_before_the_taint_was_repelled() -> None:
    gone = node(gpus={"nvidia.com/gpu": 0}, capacity={"nvidia.com/gpu": 4}, labels=PCI, taints=[DEDICATED])
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **NVIDIA_ONLY)
    found = only("plugin-repelled-by-taint", gone, plugin)
    assert (found.remedy, found.severity) == ("gone", Severity.HIGH)
    assert findings("plugin-not-tolerating-taint", gone, plugin) == []


def test_a_plugin_that_still_runs_behind_a_later_taint_will_not_come_back() -> None:
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **NVIDIA_ONLY)
    found = only("plugin-repelled-by-taint", node(taints=[DEDICATED]), plugin, plugin_pod())
    assert (found.remedy, found.severity, keys(found)[0]) == ("default", Severity.MEDIUM, "soon")
    leaving = node(taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}])
    assert findings("plugin-repelled-by-taint", leaving, plugin, plugin_pod()) == []
    assert findings("plugin-repelled-by-taint", node(taints=[NVIDIA_TAINT]), plugin, plugin_pod()) == []


SELECTIVE: dict[str, Any] = {"nodeSelector": {"feature.node.kubernetes.io/pci-10de.present": "true"}}
EKS = {"node.kubernetes.io/instance-type": "g5.xlarge"}


def eks(name: str = "gpu-1", **more: Any) -> dict[str, Any]:
    return bare(name, labels=EKS, providerID="aws:///eu-west-1a/i-0123456789abcdef0", **more)


def test_a_daemon_set_that_selects_no_node_is_named_with_what_it_asks_for() -> None:
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **SELECTIVE, **TOLERANT)
    found = only("plugin-desired-zero", eks(), plugin)
    assert found.value("selector") == ["feature.node.kubernetes.io/pci-10de.present=true"]
    assert only("device-plugin-missing", eks(), plugin).remedy == "not_selected"


def test_a_daemon_set_that_has_other_nodes_is_left_alone() -> None:
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **SELECTIVE, **TOLERANT)
    served = node("gpu-2", labels=PCI)
    assert findings("plugin-desired-zero", eks(), served, plugin) == []


WORKER = "nfd/node-feature-discovery:v0.18.2"
PRESENT: dict[str, Any] = {
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}]
}


def test_a_taint_with_another_value_locks_feature_discovery_and_plugin_out() -> None:
    worker = daemon_set("nvdp-node-feature-discovery-worker", WORKER, **PRESENT)
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **SELECTIVE, **NVIDIA_ONLY)
    found = only("plugin-taint-deadlock-nfd", eks(taints=[NVIDIA_TAINT]), worker, plugin)
    assert {"DaemonSet/kube-system/nvdp-node-feature-discovery-worker", "Node/gpu-1"} <= objects(found)
    assert findings("plugin-desired-zero", eks(taints=[NVIDIA_TAINT]), worker, plugin) == []
    tolerated = {**NVIDIA_TAINT, "value": "present"}
    assert findings("plugin-taint-deadlock-nfd", eks(taints=[tolerated]), worker, plugin) == []
    only("plugin-desired-zero", eks(taints=[tolerated]), worker, plugin)


def test_a_part_of_the_stack_that_lacks_a_toleration_weighs_by_what_it_does() -> None:
    plugin = daemon_set("nvidia-device-plugin", PLUGIN, **TOLERANT)
    tainted = node(taints=[DEDICATED])
    exporter = daemon_set("nvidia-dcgm-exporter", "nvidia/k8s/dcgm-exporter:4")
    assert only("operand-without-toleration", tainted, plugin, exporter).severity == Severity.MEDIUM
    toolkit = daemon_set("nvidia-container-toolkit-daemonset", "nvidia/k8s/container-toolkit:v1.19.0")
    assert only("operand-without-toleration", tainted, plugin, toolkit).severity == Severity.HIGH
    assert findings("operand-without-toleration", tainted, plugin, daemon_set("kube-proxy", "kube-proxy:1")) == []


def test_two_plugins_of_one_maker_on_a_node_are_told_two_makers_are_not() -> None:
    second = plugin_pod("nvdp-nvidia-device-plugin")
    found = only("two-plugins", node(), plugin_pod(), second)
    assert found.value("nodes") == ["gpu-1"]
    assert findings("two-plugins", node(), plugin_pod()) == []
    amd = plugin_pod("amdgpu-device-plugin-daemonset", image="rocm/k8s-device-plugin:1.31")
    assert findings("two-plugins", node(), plugin_pod(), amd) == []
    hami = plugin_pod("hami-device-plugin", image="projecthami/hami:v2.8.0")
    only("two-plugins", node(), plugin_pod(), hami)
