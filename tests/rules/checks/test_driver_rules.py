"""Drivers: pods that fail, kernels without one, versions that differ, upgrades that stop, images that lack them."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from rules.words import render
from tests.rules.checks.kit import NOW, Plain, container_status, daemon_set, findings, keys, node, only, pod, stamp

DAY = timedelta(days=1)
NVIDIA_STATE = "nvidia.com/gpu-driver-upgrade-state"
AMD_STATE = "operator.amd.com/gpu-driver-upgrade-state"


def driver_pod(on: str = "gpu-1", image: str = "nvidia/driver:535.183.01-ubuntu22.04", **status: Any) -> dict[str, Any]:
    return pod(
        f"nvidia-driver-daemonset-{on}",
        namespace="gpu-operator",
        on=on,
        image=image,
        owner=("DaemonSet", "nvidia-driver-daemonset"),
        status=container_status(**status),
    )


def broken(name: str = "gpu-2", kernel: str = "6.8.0-90-generic", **more: Any) -> dict[str, Any]:
    made = node(name, gpus={"nvidia.com/gpu": 0}, capacity={"nvidia.com/gpu": 1}, **more)
    made["status"]["nodeInfo"]["kernelVersion"] = kernel
    return made


def working(name: str = "gpu-1", kernel: str = "5.15.0-161-generic", **more: Any) -> dict[str, Any]:
    made = node(name, **more)
    made["status"]["nodeInfo"]["kernelVersion"] = kernel
    return made


CRASHING: dict[str, Any] = {"waiting": "CrashLoopBackOff", "restarts": 198}


def test_a_kernel_on_which_the_driver_never_works_is_named() -> None:
    pods = [driver_pod("gpu-1", ready=True, up=DAY), driver_pod("gpu-2", **CRASHING)]
    found = only("driver-kernel-mismatch", working(), broken(), *pods)
    assert [str(ref) for ref in found.objects] == ["Node/gpu-2"]
    assert found.value("good_kernels") == ["5.15.0-161-generic"]


@pytest.mark.parametrize(
    "others",
    [
        [working(kernel="6.8.0-90-generic")],
        [],
        [working(labels={"agentpool": "another", "nvidia.com/gpu.present": "true"})],
    ],
    ids=["works-on-it-elsewhere", "nothing-to-compare", "another-pool"],
)
def test_without_a_like_node_that_works_the_kernel_is_not_blamed(others: list[Plain]) -> None:
    labels = {"agentpool": "a", "nvidia.com/gpu.present": "true"}
    pods = [driver_pod("gpu-2", **CRASHING)]
    if others and others[0]["metadata"]["labels"].get("agentpool") is None:
        labels.pop("agentpool")
        pods.append(driver_pod("gpu-1", ready=True, up=DAY))
    assert findings("driver-kernel-mismatch", broken(labels=labels), *others, *pods) == []


def test_a_precompiled_driver_that_was_never_published_is_a_kernel_without_driver() -> None:
    image = "nvidia/driver:535-6.8.0-90-generic-ubuntu22.04"
    found = only("driver-kernel-mismatch", broken(), driver_pod("gpu-2", image=image, waiting="ImagePullBackOff"))
    assert found.remedy == "image"
    assert (
        only("driver-pod-crashloop", broken(), driver_pod("gpu-2", image=image, waiting="ErrImagePull")).remedy
        == "image"
    )


def test_a_driver_pod_between_two_crashes_is_still_failing() -> None:
    looping = driver_pod("gpu-2", restarts=12, up=timedelta(seconds=20), said="build failed")
    found = only("driver-pod-crashloop", broken(), looping)
    assert found.value("reason") == "Error"
    assert "build failed" in render(found, "en").detail
    assert findings("driver-pod-crashloop", broken(), driver_pod("gpu-2", restarts=1, up=DAY, said="x")) == []


def test_pods_that_hold_the_module_are_named() -> None:
    holder = pod("train", on="gpu-1", gpus={"nvidia.com/gpu": 1})
    found = only("driver-pod-crashloop", node(), driver_pod(**CRASHING), holder)
    assert (found.remedy, found.value("holders")) == ("held", ["ml/train"])


def labelled(name: str, driver: str, **labels: str) -> dict[str, Any]:
    return node(
        name, labels={"nvidia.com/gpu.present": "true", "nvidia.com/cuda.driver-version.full": driver, **labels}
    )


def test_versions_of_one_branch_weigh_less_than_of_two() -> None:
    pool = {"agentpool": "a10"}
    apart = only("driver-version-skew", labelled("a", "550.163.01", **pool), labelled("b", "570.195.03", **pool))
    assert (apart.severity, apart.value("behind")) == (Severity.MEDIUM, ["a"])
    near = only("driver-version-skew", labelled("a", "580.95.05", **pool), labelled("b", "580.126.20", **pool))
    assert (near.severity, near.value("newest")) == (Severity.LOW, "580.126.20")


def test_nodes_that_offer_nothing_or_have_nothing_in_common_are_not_compared() -> None:
    stale = node(
        "b", gpus={"nvidia.com/gpu": 0}, labels={"agentpool": "x", "nvidia.com/cuda.driver-version.full": "535.1"}
    )
    assert findings("driver-version-skew", labelled("a", "550.163.01", agentpool="x"), stale) == []
    assert findings("driver-version-skew", labelled("a", "550.163.01"), labelled("b", "570.195.03")) == []


def upgrading(name: str, state: str, label: str = NVIDIA_STATE, **more: Any) -> dict[str, Any]:
    return node(name, labels={"nvidia.com/gpu.present": "true", label: state, **more.pop("labels", {})}, **more)


@pytest.mark.parametrize(
    ("label", "state", "remedy"),
    [
        (NVIDIA_STATE, "upgrade-failed", "nvidia_failed"),
        (AMD_STATE, "Upgrade-Failed", "amd_failed"),
        (AMD_STATE, "Drain-Failed", "amd_failed"),
        (AMD_STATE, "Upgrade-Timed-Out", "amd_failed"),
    ],
)
def test_a_failed_upgrade_is_stuck_at_once(label: str, state: str, remedy: str) -> None:
    found = only("driver-upgrade-stuck", upgrading("gpu-1", state, label), upgrading("gpu-2", "upgrade-done"))
    assert (found.remedy, found.severity) == (remedy, Severity.HIGH)
    assert [str(ref) for ref in found.objects] == ["Node/gpu-1"]


def test_nodes_that_wait_are_stuck_only_behind_a_failed_one_or_after_a_day() -> None:
    waiting = upgrading("gpu-2", "upgrade-required")
    assert findings("driver-upgrade-stuck", waiting) == []
    assert {
        str(ref) for ref in only("driver-upgrade-stuck", upgrading("gpu-1", "upgrade-failed"), waiting).objects
    } == {
        "Node/gpu-1",
        "Node/gpu-2",
    }
    began = str(int((NOW - 2 * DAY).timestamp()))
    annotation = {"nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time": began}
    long = upgrading("gpu-2", "wait-for-jobs-required", annotations=annotation)
    assert only("driver-upgrade-stuck", long).remedy == "nvidia_waiting"


def test_a_node_that_is_exempt_from_upgrades_is_left_alone() -> None:
    exempt = upgrading("gpu-1", "upgrade-failed", labels={"nvidia.com/gpu-driver-upgrade.skip": "true"})
    assert findings("driver-upgrade-stuck", exempt) == []


def policy(state: str, since: timedelta, name: str = "cluster-policy") -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(since)}
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "creationTimestamp": stamp(since + DAY)},
        "status": {"state": state, "conditions": [ready] if state == "notReady" else []},
    }


def test_an_operator_may_take_half_an_hour_and_a_second_policy_is_ignored() -> None:
    assert findings("clusterpolicy-not-ready", policy("notReady", timedelta(minutes=20))) == []
    assert only("clusterpolicy-not-ready", policy("notReady", timedelta(hours=2))).remedy == "default"
    assert only("clusterpolicy-not-ready", policy("ready", DAY), policy("ignored", DAY, "two")).remedy == "ignored"


def test_amds_operator_speaks_by_its_condition() -> None:
    config = {
        "apiVersion": "amd.com/v1alpha1",
        "kind": "DeviceConfig",
        "metadata": {"name": "default", "namespace": "kube-amd-gpu"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": stamp(DAY)}]},
    }
    found = only("clusterpolicy-not-ready", config)
    assert "deviceconfig.amd.com default -n kube-amd-gpu" in render(found, "it").remedy


def paused(pause: str = "driver-upgrade", **labels: str) -> dict[str, Any]:
    return node(labels={"nvidia.com/gpu.deploy.device-plugin": f"paused-for-{pause}", **labels})


def test_a_pause_is_reported_only_when_it_should_be_over() -> None:
    assert findings("operands-paused", paused()) == []
    assert keys(only("operands-paused", paused(**{NVIDIA_STATE: "upgrade-failed"}))) == ["upgrade_failed"]
    assert keys(only("operands-paused", paused(), policy("notReady", timedelta(hours=1)))) == ["operator_not_ready"]
    ended = paused("mig-change", **{"nvidia.com/mig.config.state": "success"})
    assert only("operands-paused", ended).remedy == "mig"
    driver = driver_pod(up=DAY, ready=True)
    driver["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(DAY)}]
    assert keys(only("operands-paused", paused(), driver)) == ["driver_ready"]


def test_a_pod_that_opts_out_matters_only_while_its_node_is_to_be_upgraded() -> None:
    stays = pod(
        "wb-0", on="gpu-1", gpus={"nvidia.com/gpu": 1}, labels={"nvidia.com/gpu-driver-upgrade-drain.skip": "true"}
    )
    only("upgrade-drain-skip", upgrading("gpu-1", "drain-required"), stays)
    assert findings("upgrade-drain-skip", upgrading("gpu-1", "upgrade-done"), stays) == []
    plain = pod("wb-0", on="gpu-1", gpus={"nvidia.com/gpu": 1})
    assert findings("upgrade-drain-skip", upgrading("gpu-1", "drain-required"), plain) == []


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


def test_a_workload_that_says_so_is_evidence_even_while_the_node_still_offers_gpus() -> None:
    failing = pod("infer", on="gpu-1", gpus={"nvidia.com/gpu": 1}, status=container_status(**CRASHING, said=MISMATCH))
    found = only("driver-library-mismatch", node(), failing)
    assert keys(found)[0] == "still_offered"
    assert {str(ref) for ref in found.objects} == {"Node/gpu-1", "Pod/ml/infer"}
    assert "image" not in render(found, "en").remedy


def bottlerocket(variant: str) -> dict[str, Any]:
    made = node(gpus={}, labels={"node.kubernetes.io/instance-type": "g5.xlarge"}, providerID="aws:///a/i-1")
    made["status"]["nodeInfo"]["osImage"] = f"Bottlerocket OS 1.52.0 ({variant})"
    return made


def test_a_bottlerocket_image_tells_by_its_variant() -> None:
    assert only("node-image-without-driver", bottlerocket("aws-k8s-1.35")).remedy == "bottlerocket"
    assert findings("node-image-without-driver", bottlerocket("aws-k8s-1.35-nvidia")) == []


def test_a_driver_daemon_set_makes_a_plain_image_right() -> None:
    operator = daemon_set("nvidia-driver-daemonset", "nvidia/driver:580", tolerations=[{"operator": "Exists"}])
    assert findings("node-image-without-driver", bottlerocket("aws-k8s-1.35"), operator) == []


@pytest.mark.parametrize("names", [["my-own-image"], ["amazon-eks-gpu-node-1.31-v20260101"], []])
def test_an_image_that_is_not_known_to_be_bare_is_not_blamed(names: list[str]) -> None:
    chosen = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu"},
        "status": {"amis": [{"id": "ami-1", "name": name} for name in names]},
    }
    labels = {"node.kubernetes.io/instance-type": "g5.xlarge", "karpenter.k8s.aws/ec2nodeclass": "gpu"}
    assert findings("node-image-without-driver", node(gpus={}, labels=labels), chosen) == []


def test_cuda_software_on_an_amd_card_is_told_by_its_last_words_alone() -> None:
    amd = node(gpus={"amd.com/gpu": 1}, labels={"feature.node.kubernetes.io/amd-gpu": "true"})
    said = "RuntimeError: Found no NVIDIA driver on your system."
    lost = pod("webui", on="gpu-1", status=container_status(**CRASHING, said=said))
    assert only("gpu-of-another-vendor", amd, lost).remedy == "amd"
    nvidia = pod("webui", on="gpu-1", status=container_status(**CRASHING, said=said))
    assert findings("gpu-of-another-vendor", node(), nvidia) == []
