"""Topics: three languages of one shape, every source dated, short enough for Slack, every needed point in them."""

import re

import pytest

from rules import knowledge
from rules.knowledge import LENGTH_BUDGET, TopicInvalid, parse
from rules.language import LANGUAGES, Language

EVERY = [(name, language) for name in knowledge.topics() for language in LANGUAGES]

POINTS: dict[str, tuple[str, ...]] = {
    "drivers_preinstalled": (
        "Container Toolkit", "nvidia.com/gpu", "GPU Operator", "libcuda", "EKS", "GKE", "AKS", "CoreWeave", "Nebius",
    ),
    "multiple_workloads_per_gpu": (
        "ime-slicing", "MPS", "MIG", "vGPU", "HAMi", "0.5", "1/r", "A100", "L40S", "Triton", "AMD",
    ),
    "single_gpu_worth_it": ("SSH", "Jupyter", "k3s", "0", "runtimeClassName: nvidia", "GitOps"),
    "multinode_checklist": (
        "InfiniBand", "RoCE", "EFA", "Kueue", "Volcano", "PyTorchJob", "ReadWriteMany", "nccl-tests", "NCCL_DEBUG=INFO",
        "NET/Socket", "NVLink", "GPUDirect", "vpc.amazonaws.com/efa", "IPC_LOCK",
    ),
    "what_k8s_support_means": (
        "nvidia.com/gpu", "amd.com/gpu", "Container Toolkit", "Insufficient", "nvidia.com/gpu.product", "1.34", "k3s",
    ),
    "managed_vs_own": ("kubeadm", "k3s", "CNI", "CSI", "runtimeClassName: nvidia", "CoreWeave", "EKS", "AKS", "GKE"),
    "why_kubernetes": ("Service", "gang scheduling", "Job", "SSH", "checkpoint"),
    "sharing_options": (
        "ime-slicing", "MPS", "MIG", "Volta", "A30", "H200", "B200", "RTX PRO", "L40S", "A10", "1g.5gb", "3g.40gb",
        "failRequestsGreaterThanOne: true", "devicePlugin.config.name", "NVLink", "`mixed`",
    ),
    "driver_cuda_alignment": (
        "450.80.02", "525.60.13", "580", "cuda-compat", "804", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE", "PTX",
        "11.8", "12.8", "570", "Fabric Manager", "no kernel image", "nvidia-smi", "gpu-advisor compat",
    ),
    "networking": (
        "InfiniBand", "RoCE", "EFA", "NET/IB", "NET/OFI", "NET/Socket", "NCCL_SOCKET_IFNAME", "rdma/ib: 1", "multus",
        "CNI", "nccl-tests",
    ),
    "storage": (
        "ReadWriteOnce", "ReadWriteMany", "Lustre", "NFS", "CephFS", "S3", "Multi-Attach", "volume node affinity",
        "NVMe", "WaitForFirstConsumer", "CSI",
    ),
    "spot": (
        "AWS", "2 min", "30 se", "Azure", "24", "checkpoint", "terminationGracePeriodSeconds",
        "kubernetes.azure.com/scalesetpriority=spot:NoSchedule", "PodDisruptionBudget",
    ),
    "billing_idle": (
        "DaemonSet", "PodDisruptionBudget", "safe-to-evict", "Karpenter", "KEDA", "node-template/label", "Job", "taint",
        "Cluster Autoscaler", "EKS", "10 USD/h",
    ),
    "device_plugin": (
        "DaemonSet", "kubelet", "limits", "nvidia.com/gpu.present", "pci-10de.present", "UnexpectedAdmissionError",
        "NVIDIA_VISIBLE_DEVICES=all", "DP_DISABLE_HEALTHCHECKS", "GKE", "taint",
    ),
    "gpu_operator": (
        "toolkit", "feature discovery", "DCGM", "MIG Manager", "driver.enabled=false", "toolkit.enabled=false", "drain",
        "kernel", "clusterpolicy", "GKE", "CoreWeave",
    ),
    "batch_jobs": (
        "Kueue", "Volcano", "backoffLimit", "Deployment", "TTL", "ResourceQuota", "Jupyter", "gang scheduling",
    ),
    "inference_at_scale": (
        "CPU", "vllm:num_requests_waiting", "KEDA", "maxSurge", "maxUnavailable: 1", "/dev/shm", "64 MB", "NVMe",
        "90 %", "Karpenter", "Triton",
    ),
    "distributed_training": (
        "TrainJob", "PyTorchJob", "MPIJob", "RayJob", "JobSet", "LeaderWorkerSet", "Kueue", "Volcano", "KAI", "RDMA",
        "ReadWriteMany", "NVLink", "nccl-tests",
    ),
    "amd": ("amd.com/gpu", "ROCm", "MIG", "MPS", "MI300", "DeviceConfig", "KMM", "Found no NVIDIA driver", "amdgpu"),
}  # fmt: skip
SEEDS_OF_THE_FAQ = {
    "drivers_preinstalled": "S26",
    "multiple_workloads_per_gpu": "S27",
    "single_gpu_worth_it": "S28",
    "multinode_checklist": "S29",
}


def body(name: str, language: Language) -> str:
    topic = knowledge.topic(name, language)
    return "\n".join([topic.lead, topic.why, topic.verify])


def test_every_topic_of_the_vocabulary_is_there() -> None:
    assert set(knowledge.topics()) == set(POINTS)
    assert set(SEEDS_OF_THE_FAQ) <= set(POINTS)


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_a_topic_is_short_dated_and_begins_with_one_short_paragraph(name: str, language: Language) -> None:
    topic = knowledge.topic(name, language)
    assert len(body(name, language)) <= LENGTH_BUDGET
    assert len(topic.lead) <= 420
    assert "\n" not in topic.lead
    assert all(re.fullmatch(r"\d{4}(-\d\d(-\d\d)?)?", source.as_of or "") for source in topic.sources)
    assert all(source.url is None or source.url.startswith("https://") for source in topic.sources)
    assert all(re.fullmatch(r"S([1-9]|1\d|2\d)", seed) for seed in topic.seeds)
    assert all(line.startswith(("- ", "  - ")) for line in (topic.why + "\n" + topic.verify).splitlines())


@pytest.mark.parametrize("name", knowledge.topics())
def test_the_languages_of_a_topic_say_the_same(name: str) -> None:
    english, *others = (knowledge.topic(name, language) for language in LANGUAGES)
    for other in others:
        assert other.verdict == english.verdict
        assert other.seeds == english.seeds
        assert [(source.url, source.as_of) for source in other.sources] == [(s.url, s.as_of) for s in english.sources]
        assert len(other.follow_ups) == len(english.follow_ups)
        assert len(other.why.splitlines()) == len(english.why.splitlines())
        assert len(other.verify.splitlines()) == len(english.verify.splitlines())
        # Names, figures and code are the same in every language.
        assert set(re.findall(r"`([^`]+)`", body(name, other.language))) == set(
            re.findall(r"`([^`]+)`", body(name, "en"))
        )
        assert set(re.findall(r"\b20\d\d(?:-\d\d)?\b", body(name, other.language))) == set(
            re.findall(r"\b20\d\d(?:-\d\d)?\b", body(name, "en"))
        )


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_every_point_that_must_be_said_is_said(name: str, language: Language) -> None:
    text = body(name, language)
    assert [point for point in POINTS[name] if point not in text] == []
    seeds = knowledge.topic(name, language).seeds
    assert seeds
    assert SEEDS_OF_THE_FAQ.get(name, seeds[0]) in seeds


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_follow_ups_are_questions_that_can_be_answered(name: str, language: Language) -> None:
    from rules.questions import answer

    for question in knowledge.topic(name, language).follow_ups:
        reply = answer(question)
        assert reply.language == language
        assert not reply.abstain
        assert reply.topic in knowledge.topics()
        assert reply.topic != name


def test_a_topic_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(TopicInvalid, match="no_such_topic"):
        knowledge.topic("no_such_topic", "en")
    with pytest.raises(TopicInvalid, match=r"\.\./errors"):
        knowledge.topic("../errors", "en")


GOOD = """---
topic: sample
verdict: depends
seeds: [S1]
sources: [{label: A page, url: "https://example.org/", as_of: "2026-11"}]
follow_ups: [And then?]
---
# verdict
It depends.
# why
- Because.
# verify
- This.
"""


def test_a_well_formed_topic_is_read() -> None:
    topic = parse(GOOD, "sample", "en")
    assert (topic.lead, topic.why, topic.verify) == ("It depends.", "- Because.", "- This.")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (GOOD.replace(', as_of: "2026-11"', ""), "without a date"),
        (GOOD.replace('"2026-11"', '"last year"'), "without a date"),
        (
            GOOD.replace('sources: [{label: A page, url: "https://example.org/", as_of: "2026-11"}]', "sources: []"),
            "no sources",
        ),
        (GOOD.replace("# verify\n- This.\n", ""), "sections are"),
        (GOOD.replace("- Because.\n", ""), "sections are"),
        (GOOD.replace("verdict: depends", "verdict: maybe"), "front matter"),
        (GOOD.replace("topic: sample", "topic: other"), "says topic"),
        (GOOD.removeprefix("---\n"), "no front matter"),
        (GOOD.replace("seeds: [S1]", "seeds: [S1"), "front matter"),
    ],
)
def test_a_malformed_topic_is_refused_with_the_reason(broken: str, said: str) -> None:
    with pytest.raises(TopicInvalid, match=said):
        parse(broken, "sample", "en")
