"""Images against drivers: what is reported, how heavy, and what stays silent."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rules.checks import RULES
from rules.engine import evaluate
from rules.findings import Finding, Severity
from rules.policy import Policy
from rules.words import render
from tests.rules.checks.kit import Plain, cluster, container_status, findings, keys, node, only, pod

RULE = "driver-cuda-mismatch"
OLD, NEW = "535.183.01", "580.126.20"
CUDA_13 = "apps/train:2.0-cuda13.0"
CRASH = container_status(waiting="CrashLoopBackOff", restarts=12)
FINE = container_status(up=timedelta(hours=3), ready=True)


def with_driver(
    driver: str, ceiling: str, product: str = "NVIDIA-GeForce-RTX-4090", name: str = "gpu-1"
) -> dict[str, Any]:
    return node(
        name,
        gpus={"nvidia.com/gpu": 8},
        labels={
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": product,
            "nvidia.com/cuda.driver-version.full": driver,
            "nvidia.com/cuda.runtime-version.full": ceiling,
        },
    )


OLD_NODE = with_driver(OLD, "12.2")


def gpu_pod(
    name: str = "train", image: str = CUDA_13, on: str = "gpu-1", status: Plain = CRASH, **more: Any
) -> dict[str, Any]:
    return pod(name, on=on, image=image, gpus={"nvidia.com/gpu": 1}, status=status, **more)


def test_a_driver_below_the_floor_is_found_with_the_driver_it_needs() -> None:
    found = only(RULE, OLD_NODE, gpu_pod())
    assert (found.remedy, found.severity) == ("driver_too_old", Severity.HIGH)
    assert "580.65.06" in render(found, "en").detail
    assert [str(ref) for ref in found.objects] == ["Pod/ml/train", "Node/gpu-1"]


def test_a_container_that_has_run_for_hours_is_reported_with_doubt() -> None:
    found = only(RULE, OLD_NODE, gpu_pod(status=FINE))
    assert found.severity == Severity.MEDIUM
    assert "running" in keys(found)


@pytest.mark.parametrize(
    ("image", "driver", "ceiling"),
    [
        ("apps/train:2.0-cuda12.8", "550.163.01", "12.4"),
        ("apps/train:2.0-cuda13.0", NEW, "13.0"),
        ("apps/train:2.0", OLD, "12.2"),
        ("apps/train:latest", OLD, "12.2"),
        ("apps/train@sha256:" + "0" * 64, OLD, "12.2"),
    ],
    ids=["minor-compatibility", "new-enough", "no-cuda-in-tag", "moving-tag", "digest"],
)
def test_what_runs_or_is_unknown_stays_silent(image: str, driver: str, ceiling: str) -> None:
    assert findings(RULE, with_driver(driver, ceiling), gpu_pod(image=image, status=FINE)) == []


def test_an_unknown_image_stays_silent_even_when_it_crashes() -> None:
    assert findings(RULE, OLD_NODE, gpu_pod(image="apps/train:2.0")) == []


def test_a_node_without_a_known_driver_stays_silent() -> None:
    assert findings(RULE, node(), gpu_pod()) == []


MINOR = with_driver("550.163.01", "12.4", "NVIDIA-A10")


def test_within_one_major_version_only_a_crashing_container_is_suspected() -> None:
    found = only(RULE, MINOR, gpu_pod(image="speech/asr:3.1.0-cu128"))
    assert (found.remedy, found.severity) == ("minor_suspect", Severity.MEDIUM)
    assert "Suspected, not proven" in render(found, "en").detail


@pytest.mark.parametrize(
    "status",
    [
        container_status(waiting="CrashLoopBackOff", restarts=5, said="CUDA out of memory. Tried to allocate 2 GiB"),
        container_status(waiting="CrashLoopBackOff", restarts=5, said="ncclSystemError: NCCL shared memory segment"),
        container_status(waiting="ImagePullBackOff"),
        {
            "containerStatuses": [
                {
                    "name": "main",
                    "restartCount": 9,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                }
            ]
        },
    ],
    ids=["cuda-memory", "nccl", "image-pull", "host-memory"],
)
def test_a_crash_with_another_cause_is_no_suspicion(status: Plain) -> None:
    assert findings(RULE, MINOR, gpu_pod(image="speech/asr:3.1.0-cu128", status=status)) == []


def test_the_containers_own_words_are_quoted() -> None:
    said = "CUDA driver version is insufficient for CUDA runtime version"
    crash = container_status(waiting="CrashLoopBackOff", restarts=5, said=said)
    assert said in render(only(RULE, OLD_NODE, gpu_pod(status=crash)), "en").detail


def test_an_image_that_runs_under_a_newer_driver_is_named() -> None:
    newer = with_driver(NEW, "13.0", name="gpu-2")
    found = only(RULE, OLD_NODE, newer, gpu_pod("asr-0"), gpu_pod("asr-1", on="gpu-2", status=FINE))
    assert "ml/asr-1" in render(found, "en").detail
    assert NEW in render(found, "en").detail


def test_pods_of_one_owner_are_one_finding_that_survives_their_replacement() -> None:
    owner = ("ReplicaSet", "serve-6b7d9c5f44")
    before = only(RULE, OLD_NODE, gpu_pod("serve-a", owner=owner), gpu_pod("serve-b", owner=owner))
    after = only(RULE, OLD_NODE, gpu_pod("serve-c", owner=owner))
    assert before.value("pods") == ["ml/serve-a", "ml/serve-b"]
    assert before.fingerprint == after.fingerprint


def test_other_owners_images_and_drivers_are_other_findings() -> None:
    other = with_driver("550.163.01", "12.4", name="gpu-2")
    found = findings(
        RULE,
        OLD_NODE,
        other,
        gpu_pod("a", owner=("Job", "a")),
        gpu_pod("b", owner=("Job", "b")),
        gpu_pod("c", owner=("Job", "b"), image="apps/train:2.1-cuda13.0"),
        gpu_pod("d", owner=("Job", "b"), on="gpu-2"),
    )
    assert len({item.fingerprint for item in found}) == 4


def test_only_containers_that_ask_for_the_gpu_are_judged() -> None:
    serving = gpu_pod(image="apps/serve:1.0-cuda12.2", status=FINE)
    serving["spec"]["containers"].append({"name": "sidecar", "image": CUDA_13})
    assert findings(RULE, OLD_NODE, serving) == []


def test_a_stated_cuda_version_counts_where_the_tag_says_nothing() -> None:
    assert (
        only(RULE, OLD_NODE, gpu_pod(image="apps/train:7", env={"CUDA_VERSION": "13.0.1"})).remedy == "driver_too_old"
    )
    assert findings(RULE, OLD_NODE, gpu_pod(image="apps/train:7", env={"CUDA_VERSION": "$(VERSION)"})) == []


def test_forward_compatibility_is_no_trouble_when_the_image_carries_it() -> None:
    datacentre = with_driver(OLD, "12.2", "NVIDIA-A100-SXM4-80GB")
    carrying = gpu_pod(image="nvidia/cuda:13.0.0-runtime-ubuntu24.04", status=FINE)
    assert findings(RULE, datacentre, carrying) == []
    assert only(RULE, datacentre, gpu_pod(status=FINE)).severity == Severity.LOW
    assert only(RULE, datacentre, gpu_pod()).severity == Severity.HIGH


def test_a_cuda_image_on_an_amd_card_does_not_fit_whatever_the_driver() -> None:
    amd = node(
        gpus={"amd.com/gpu": 8},
        labels={
            "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
            "amd.com/gpu.driver-version": "6.16.6",
            "feature.node.kubernetes.io/pci-1200_1002.present": "true",
        },
    )
    wrong = pod(on="gpu-1", image=CUDA_13, gpus={"amd.com/gpu": 1}, status=CRASH)
    assert only(RULE, amd, wrong).remedy == "arch_unsupported"


def test_finished_pods_are_history() -> None:
    assert findings(RULE, OLD_NODE, gpu_pod(phase="Failed")) == []


def test_the_configuration_of_what_runs_decides_over_the_tag() -> None:
    status = {"containerStatuses": [{**CRASH["containerStatuses"][0], "imageID": f"apps/train@sha256:{'a' * 64}"}]}

    def judged(image: str, configs: dict[str, Any]) -> list[Finding]:
        facts = cluster(OLD_NODE, gpu_pod(image=image, status=status))
        result = evaluate(msgspec.structs.replace(facts, image_configs=configs), Policy(), RULES)
        assert result.failed_rules == ()
        return [item for item in result.findings if item.rule == RULE]

    old = {"config": {"Env": ["CUDA_VERSION=11.8.0"]}}
    new = {"config": {"Env": ["CUDA_VERSION=13.0.1"]}}
    running = f"apps/train@sha256:{'a' * 64}"
    assert judged("apps/train:latest", {}) == []
    (found,) = judged("apps/train:latest", {running: new})
    assert (found.value("software"), found.remedy) == ("CUDA 13.0.1", "driver_too_old")
    assert "configuration" in str(next(item.source for item in found.evidence if item.name == "software"))
    assert len(judged(CUDA_13, {})) == 1
    assert judged(CUDA_13, {running: old}) == []
    assert judged(CUDA_13, {running: {"config": {}}}) == judged(CUDA_13, {})


def test_two_images_behind_one_moving_tag_are_one_trouble() -> None:
    statuses = [
        {"containerStatuses": [{**CRASH["containerStatuses"][0], "imageID": f"apps/train@sha256:{letter * 64}"}]}
        for letter in "ab"
    ]
    pods = [
        gpu_pod(f"train-{index}", "apps/train:latest", status=status, owner=("ReplicaSet", "train"))
        for index, status in enumerate(statuses)
    ]
    configs = {
        f"apps/train@sha256:{letter * 64}": {"config": {"Env": [f"CUDA_VERSION={version}"]}}
        for letter, version in (("a", "13.0.1"), ("b", "13.1.0"))
    }
    facts = msgspec.structs.replace(cluster(OLD_NODE, *pods), image_configs=configs)
    result = evaluate(facts, Policy(), RULES)
    assert result.failed_rules == ()
    assert len([item for item in result.findings if item.rule == RULE]) == 1
