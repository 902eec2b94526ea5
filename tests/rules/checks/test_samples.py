"""The rules on twelve sample clusters and twelve re-made public bug reports.

The tables were written by hand after reading each cluster; they name every object that a rule must name and, by being
complete, every one that it must not.
"""

from datetime import timedelta
from functools import cache
from pathlib import Path

import msgspec
import pytest

from rules.checks import RULES
from rules.checks._stack import OFFERS_NONE
from rules.engine import evaluate
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, Report, Severity
from rules.language import LANGUAGES
from rules.policy import Policy
from rules.words import render
from tests.rules.checks.kit import DATA, keys, sample
from tests.rules.checks.test_rule_files import check_rendering

CLUSTERS = {file.stem: file for file in sorted((DATA / "clusters").glob("*.json"))}
CASES = {folder.name: folder for folder in sorted((DATA / "cases").iterdir()) if folder.is_dir()}
SAMPLES: dict[str, Path] = {**CLUSTERS, **CASES}

IDLE = {
    "amd-mi300x": {"mi300x-node-03"},
    "broken-driver-not-ready": {"gpu-srv-a4"},
    "coreweave-h100-infiniband": {"g0a1c54", "g0a1c55"},
    "eks-managed-spot-ondemand": {"ip-192-0-2-12.eu-west-1.compute.internal"},
    "20-gang-waits-for-a-third-member": {"train-1", "train-2"},
}
NO_GPU = {
    "aks-t4-timeslicing": {
        "aks-gpuspot-20417733-vmss000003": ("device-plugin-missing", "kept_off", Severity.HIGH),
    },
    "broken-driver-not-ready": {
        "gpu-srv-a2": ("allocatable-zero-driver", "driver", Severity.HIGH),
        "gpu-srv-a3": ("allocatable-zero-driver", "driver", Severity.HIGH),
    },
    "dra-1-35": {"dra-worker-3": ("dra-slice-missing", "default", Severity.HIGH)},
    "gke-a100-mig-mixed": {
        "gke-ml-demo-a100-mig-3f9c1d20-r6n5": ("mig-config-failed", "default", Severity.HIGH),
    },
    "k3s-joined-vms-no-operator": {
        "vm-gpu-l40s-01": ("device-plugin-missing", "kept_off", Severity.MEDIUM),
    },
    "karpenter-idle-bill": {
        "ip-192-0-2-145.ec2.internal": ("device-plugin-missing", "plugin_absent", Severity.HIGH),
    },
    "openshift-gpu-operator": {
        "ocp-lab-7xk2p-gpu-us-east-2a-8w4dn": ("allocatable-zero-driver", "driver", Severity.HIGH),
    },
    "01-karpenter-gpu-node-stays-empty": {
        "ip-10-20-31-77.eu-west-1.compute.internal": ("device-plugin-missing", "plugin_absent", Severity.HIGH),
    },
    "10-device-plugin-restarted-269-times": {
        "onprem-gpu-1": ("driver-library-mismatch", "default", Severity.HIGH),
    },
    "12-gpu-node-up-but-no-gpu-after-new-taints": {
        "ip-10-10-22-8.us-west-2.compute.internal": ("device-plugin-missing", "kept_off", Severity.HIGH),
    },
    "15-g5-node-without-nvml-library": {
        "ip-10-4-55-3.ap-northeast-2.compute.internal": ("node-image-without-driver", "node_class", Severity.HIGH),
    },
    "24-cuda-image-on-another-vendors-card": {
        "ryzen-w7900": ("gpu-of-another-vendor", "amd", Severity.HIGH),
    },
}
UNHEALTHY = {
    "amd-mi300x": {"mi300x-node-03"},
    "coreweave-h100-infiniband": {"g0a1c55"},
    "18-eight-h100-seven-allocatable": {"h100-rack2-04"},
}
MISMATCH = {"oke-a10-a100-pools": {"asr-0": "minor_suspect"}}
PENDING = {
    "aks-t4-timeslicing": {"notebook-lab-0": "taint"},
    "amd-mi300x": {"bigmodel-0": "mixed"},
    "broken-driver-not-ready": {"vision-4gpu-0": "mixed"},
    "coreweave-h100-infiniband": {"pretrain-7b-worker-1": "mixed"},
    "dra-1-35": {"big-vram-0": "dra", "legacy-infer-0": "dra_only"},
    "eks-managed-spot-ondemand": {"llm-serve-7f9c6d8b55-m4t7z": "in_use"},
    "gke-a100-mig-mixed": {"finetune-small-4vq7m": "other_form", "doc-parse-6c9f7d5b48-l2j5x": "other_form"},
    "k3s-joined-vms-no-operator": {"llm-dev-5f6b7c8d9f-wn7t5": "in_use"},
    "03-gpu-group-stuck-at-zero": {"user-server-17": "scale_from_zero"},
    "06-allocatable-one-but-pod-waits": {"finetune-b": "in_use"},
    "10-device-plugin-restarted-269-times": {"transcode-0": "broken"},
    "12-gpu-node-up-but-no-gpu-after-new-taints": {"jupyter-0042": "broken"},
    "15-g5-node-without-nvml-library": {"whisper-0": "broken"},
    "18-eight-h100-seven-allocatable": {"sft-70b-0": "unhealthy"},
    "20-gang-waits-for-a-third-member": {"mpi-demo-worker-0": "gang_incomplete"},
    "24-cuda-image-on-another-vendors-card": {"webui-0": "other_maker"},
}
each_sample = pytest.mark.parametrize("name", list(SAMPLES))


@cache
def audited(name: str) -> tuple[ClusterFacts, Report]:
    return sample(SAMPLES[name])


@cache
def of_rule(name: str, rule: str) -> list[Finding]:
    """What a rule says by itself, whether or not another one explains it in the whole report."""
    alone = [item for item in RULES if item.id == rule]
    return list(evaluate(audited(name)[0], Policy(), alone).findings)


def the(name: str, rule: str, about: str) -> Finding:
    return next(item for item in of_rule(name, rule) if about in {ref.name for ref in item.objects})


def test_all_samples_are_there() -> None:
    assert len(CLUSTERS) == 12
    assert len(CASES) == 12
    for table in (IDLE, NO_GPU, UNHEALTHY, MISMATCH, PENDING):
        assert set(table) <= set(SAMPLES)


@each_sample
def test_no_rule_fails_and_none_is_skipped_that_could_judge(name: str) -> None:
    facts, report = audited(name)
    assert report.failed_rules == ()
    for skipped in report.skipped_rules:
        assert not set(skipped.missing) & facts.read_kinds


@each_sample
def test_idle_nodes_are_exactly_those_without_a_gpu_pod(name: str) -> None:
    assert {item.objects[0].name for item in of_rule(name, "idle-gpu-node")} == IDLE.get(name, set())


@each_sample
def test_nodes_without_a_gpu_are_told_of_by_one_rule_that_names_the_lowest_broken_layer(name: str) -> None:
    said = [item for rule in OFFERS_NONE for item in of_rule(name, rule)]
    assert len(said) == len({item.objects[0] for item in said})
    assert {item.objects[0].name: (item.rule, item.remedy, item.severity) for item in said} == NO_GPU.get(name, {})


@each_sample
def test_unhealthy_gpus_are_found(name: str) -> None:
    assert {item.objects[0].name for item in of_rule(name, "allocatable-below-capacity")} == UNHEALTHY.get(name, set())


@each_sample
def test_driver_mismatches_are_found_and_no_others(name: str) -> None:
    found = {item.objects[0].name: item.remedy for item in of_rule(name, "driver-cuda-mismatch")}
    assert found == MISMATCH.get(name, {})


@each_sample
def test_pending_pods_are_found_with_their_cause(name: str) -> None:
    found = {item.objects[0].name: item.remedy for item in of_rule(name, "gpu-pod-pending")}
    assert found == PENDING.get(name, {})


@each_sample
def test_every_finding_can_be_said_in_every_language(name: str) -> None:
    for item in audited(name)[1].findings:
        check_rendering(item)


@each_sample
def test_the_same_snapshot_gives_the_same_bytes(name: str) -> None:
    again = sample(SAMPLES[name])[1]
    assert msgspec.json.encode(again) == msgspec.json.encode(audited(name)[1])


@each_sample
def test_fingerprints_are_unique_and_survive_an_hour(name: str) -> None:
    facts, report = audited(name)
    marks = [item.fingerprint for item in report.findings]
    assert len(set(marks)) == len(marks)
    later = msgspec.structs.replace(facts, observed_at=facts.observed_at + timedelta(hours=1))
    assert set(marks) <= {item.fingerprint for item in evaluate(later, Policy(), RULES).findings}


def test_an_idle_node_has_its_price_and_names_the_pods_that_keep_it() -> None:
    found = the("eks-managed-spot-ondemand", "idle-gpu-node", "ip-192-0-2-12.eu-west-1.compute.internal")
    assert found.cost is not None
    assert 0.5 < found.cost.usd_hour < 3
    assert found.cost.usd_so_far is not None
    assert found.value("cpu_pods") == ["web/billing-cache-0", "web/billing-web-5c8b9d7f6b-8kq2n"]
    assert "kubectl drain" in render(found, "en").remedy
    assert {"since_creation", "cost", "cpu_pods"} <= set(keys(found))


def test_a_cordoned_idle_node_says_so() -> None:
    assert "cordoned" in keys(the("coreweave-h100-infiniband", "idle-gpu-node", "g0a1c54"))


def test_nodes_that_a_waiting_gang_could_use_are_not_to_be_removed() -> None:
    for node in ("train-1", "train-2"):
        assert the("20-gang-waits-for-a-third-member", "idle-gpu-node", node).remedy == "pending"


def test_the_paid_node_without_a_plugin_has_a_cost_since_its_creation() -> None:
    found = the(
        "01-karpenter-gpu-node-stays-empty", "device-plugin-missing", "ip-10-20-31-77.eu-west-1.compute.internal"
    )
    assert found.cost is not None
    assert found.cost.usd_so_far is not None
    assert found.cost.usd_so_far > 24 * 3 * found.cost.usd_hour


@pytest.mark.parametrize(
    ("name", "rule", "about", "objects"),
    [
        (
            "12-gpu-node-up-but-no-gpu-after-new-taints",
            "plugin-not-tolerating-taint",
            "ip-10-10-22-8.us-west-2.compute.internal",
            {"DaemonSet/kube-system/nvidia-driver-installer"},
        ),
        (
            "10-device-plugin-restarted-269-times",
            "driver-library-mismatch",
            "onprem-gpu-1",
            {"Pod/gpu-operator/nvidia-device-plugin-daemonset-6fj8k"},
        ),
        (
            "openshift-gpu-operator",
            "allocatable-zero-driver",
            "ocp-lab-7xk2p-gpu-us-east-2a-8w4dn",
            {
                "Pod/nvidia-gpu-operator/nvidia-driver-daemonset-9.6.20261020-0-q7z2k",
                "Pod/nvidia-gpu-operator/nvidia-operator-validator-4k8sv",
            },
        ),
        (
            "aks-t4-timeslicing",
            "plugin-not-tolerating-taint",
            "aks-gpuspot-20417733-vmss000003",
            {"DaemonSet/gpu-resources/nvdp-nvidia-device-plugin"},
        ),
        (
            "dra-1-35",
            "dra-slice-missing",
            "dra-worker-3",
            {"Pod/dra-driver-nvidia-gpu/dra-driver-nvidia-gpu-kubelet-plugin-w3c8t"},
        ),
        (
            "coreweave-h100-infiniband",
            "gpu-pod-pending",
            "pretrain-7b-worker-1",
            {"Pod/train/pretrain-7b-worker-1", "Pod/train/pretrain-7b-worker-2"},
        ),
        ("18-eight-h100-seven-allocatable", "gpu-pod-pending", "sft-70b-0", {"Node/h100-rack2-04"}),
        ("06-allocatable-one-but-pod-waits", "gpu-pod-pending", "finetune-b", {"Node/lab-gpu-2"}),
        ("oke-a10-a100-pools", "driver-cuda-mismatch", "asr-0", {"Pod/speech/asr-0", "Node/192.0.2.91"}),
    ],
)
def test_the_objects_that_show_it_are_named(name: str, rule: str, about: str, objects: set[str]) -> None:
    assert objects <= {str(ref) for ref in the(name, rule, about).objects}


@pytest.mark.parametrize(
    ("name", "about", "free_total", "most_free", "holders"),
    [
        ("06-allocatable-one-but-pod-waits", "finetune-b", 0, 0, ["students/finetune-a"]),
        ("18-eight-h100-seven-allocatable", "sft-70b-0", 5, 5, ["llm/eval-small"]),
        ("20-gang-waits-for-a-third-member", "mpi-demo-worker-0", 8, 4, []),
        ("broken-driver-not-ready", "vision-4gpu-0", 3, 3, ["apps/rag-api-5d9c8b7f6d-v6n2p"]),
        (
            "coreweave-h100-infiniband",
            "pretrain-7b-worker-1",
            7,
            7,
            ["train/pretrain-7b-master-0", "train/pretrain-7b-worker-0"],
        ),
    ],
)
def test_free_gpus_are_counted_as_the_scheduler_counts_them(
    name: str, about: str, free_total: int, most_free: int, holders: list[str]
) -> None:
    found = the(name, "gpu-pod-pending", about)
    assert found.value("free_total") == free_total
    assert found.value("most_free") == most_free
    assert found.value("holders") == holders


MUST_NOT_SAY = [
    ("01-karpenter-gpu-node-stays-empty", ["initialized", "DaemonSet pods stop", "is in use", "CUDA"]),
    ("03-gpu-group-stuck-at-zero", ["raise the maximum", "quota", "toleration"]),
    ("06-allocatable-one-but-pod-waits", ["bug", "finetune-old"]),
    ("10-device-plugin-restarted-269-times", ["CUDA image", "replace the GPU", "more GPU nodes"]),
    ("12-gpu-node-up-but-no-gpu-after-new-taints", ["larger node group", "has no GPU"]),
    ("15-g5-node-without-nvml-library", ["toleration", "plugin version"]),
    ("20-gang-waits-for-a-third-member", ["not enough GPUs", "add a GPU node"]),
    ("24-cuda-image-on-another-vendors-card", ["NVIDIA driver", "runtime class", "another CUDA version"]),
    ("29-gpu-node-stays-with-no-users", ["Karpenter is broken", "GPU is idle"]),
]


@pytest.mark.parametrize(("name", "forbidden"), MUST_NOT_SAY)
def test_no_answer_says_what_is_known_to_be_wrong(name: str, forbidden: list[str]) -> None:
    said = []
    for item in audited(name)[1].findings:
        words = render(item, "en")
        said += [words.title, words.detail, words.remedy]
    for phrase in forbidden:
        assert not [text for text in said if phrase.lower() in text.lower()], phrase


def test_a_health_taint_is_never_to_be_tolerated() -> None:
    found = the("amd-mi300x", "gpu-pod-pending", "bigmodel-0")
    assert "node_sick" in keys(found)
    for language in LANGUAGES:
        assert "tolerations:" not in render(found, language).remedy


def test_a_scheduled_pod_with_a_newer_sibling_driver_names_it() -> None:
    found = the("oke-a10-a100-pools", "driver-cuda-mismatch", "asr-0")
    assert found.severity == Severity.MEDIUM
    assert {"minor_suspect", "crashing", "works_elsewhere"} <= set(keys(found))
    assert "speech/asr-1" in render(found, "en").detail
    assert "570.195.03" in render(found, "en").detail
