"""What image references tell, and that they never tell more than they do."""

import re
from typing import Any

import pytest

from rules.compat import check, image_cuda
from rules.compat.images import parse
from tests.rules.compat.samples import rows

SAMPLES = rows("compat_images.yaml")
NO_HOST = [sample for sample in SAMPLES if "." not in sample["image"].split("/")[0] and "/" in sample["image"]]


def reading(ref: str) -> tuple[str, str | None, str | None]:
    found = image_cuda(ref)
    return found.platform, found.cuda or found.rocm, found.precision


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["image"])
def test_sample_is_read_right(sample: dict[str, Any]) -> None:
    assert reading(sample["image"]) == (sample["platform"], sample.get("version"), sample.get("precision"))


@pytest.mark.parametrize("sample", NO_HOST, ids=lambda sample: sample["image"])
@pytest.mark.parametrize(
    "mirror",
    [
        "docker.io/{}", "registry.example.com/{}", "registry.example.com:5000/{}", "localhost/{}", "10.0.0.7:80/{}",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/docker-hub/{}", "docker://{}",
    ],
)  # fmt: skip
def test_a_mirror_tells_the_same(sample: dict[str, Any], mirror: str) -> None:
    assert reading(mirror.format(sample["image"])) == reading(sample["image"])


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "@" not in s["image"]], ids=lambda s: s["image"])
def test_a_digest_behind_the_tag_changes_nothing(sample: dict[str, Any]) -> None:
    if ":" not in sample["image"].rsplit("/", 1)[-1]:
        return
    assert reading(f"{sample['image']}@sha256:{'0' * 64}") == reading(sample["image"])


@pytest.mark.parametrize(
    "ref",
    [
        "registry.example.com/llm/vllm-openai:0.8.5", "registry.example.com/ml/pytorch:24.05-py3", "pytorch:2.9.1",
        "registry.example.com/team/cuda:12.4.1-base", "team/pytorch-latest:1", "quay.io/team/tensorflow:2.15.0-gpu",
    ],
)  # fmt: skip
def test_a_private_repository_with_a_familiar_name_is_not_taken_for_the_known_one(ref: str) -> None:
    assert image_cuda(ref).cuda is None


@pytest.mark.parametrize(
    ("ref", "version"),
    [
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5.1-gpu-py311-cu124-ubuntu22.04", "12.4"),
        ("us-docker.pkg.dev/deeplearning-platform-release/gcr.io/pytorch-cu121.2-2.py310", "12.1"),
        ("nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04", "12.5.0"),
        ("team/asr:3.1.0-cu128", "12.8"), ("team/x:cuda12-cu128", "12.8"), ("team/x:cuda-12.4_py3", "12.4"),
        ("team/x:cu92", "9.2"), ("team/x:cu102", "10.2"), ("team/x:cuda118", "11.8"), ("team/x:cu12", "12"),
    ],
)  # fmt: skip
def test_a_number_in_any_tag_or_name_is_found(ref: str, version: str) -> None:
    found = image_cuda(ref)
    assert (found.cuda, found.how) == (version, "tag")


@pytest.mark.parametrize(
    ("ref", "how"),
    [
        ("pytorch/pytorch:latest", "moving-tag"), ("pytorch/pytorch", "no-tag"), ("nvidia/cuda", "no-tag"),
        ("vllm/vllm-openai:nightly", "moving-tag"), ("vllm/vllm-openai:v0.19.1", "not-in-table"),
        ("vllm/vllm-openai:v0.20.0rc1", "not-in-tag"), ("vllm/vllm-openai:v0.9.2", "not-in-table"),
        ("lmsysorg/sglang:v0.4.9", "not-in-table"), ("nvcr.io/nvidia/pytorch:26.11-py3", "not-in-table"),
        ("nvcr.io/nvidia/tritonserver:26.09-trtllm-python-py3", "not-in-table"),
        ("ghcr.io/huggingface/text-generation-inference:2.4.1", "not-in-table"),
        ("ghcr.io/huggingface/text-generation-inference:sha-1a2b3c4", "not-in-tag"),
        ("tensorflow/tensorflow:1.15.5-gpu", "not-in-table"), ("team/x@sha256:" + "0" * 64, "digest-only"),
        ("team/x:cu118-cuda12.4", "contradictory"), ("team/x:cuda12.4-rocm6.3", "contradictory"),
        ("team/x:1.0", "unknown-repository"), ("no image", "unreadable"), ("", "unreadable"), (":tag", "unreadable"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_unknown_and_says_why(ref: str, how: str) -> None:
    found = image_cuda(ref)
    assert (found.cuda, found.rocm, found.how) == (None, None, how)


@pytest.mark.parametrize(
    "ref",
    [
        "nvcr.io/nvidia/pytorch:latest", "vllm/vllm-openai:latest", "pytorch/pytorch:latest", "rocm/pytorch:latest",
        "lmsysorg/sglang:latest", "tensorflow/tensorflow:latest-gpu", "rayproject/ray:latest", "team/train:main",
    ],
)  # fmt: skip
def test_a_moving_tag_is_never_ok(ref: str) -> None:
    for driver in ("620.70.06", "535.183.01", "30.30"):
        for gpu in (None, "H100", "T4", "MI300X"):
            assert check(driver=driver, image=ref, gpu=gpu).verdict in ("unknown", "arch_unsupported")


def test_a_suffix_is_true_even_where_the_version_moves() -> None:
    assert image_cuda("vllm/vllm-openai:latest-cu129").cuda == "12.9"


def test_variants_for_integrated_gpus_are_not_for_data_centre_nodes() -> None:
    assert image_cuda("nvcr.io/nvidia/pytorch:24.06-py3-igpu").platform == "jetson"


def test_the_vllm_variant_of_triton_can_differ_from_its_month() -> None:
    assert image_cuda("nvcr.io/nvidia/tritonserver:25.06-vllm-python-py3").cuda == "12.9.0"
    assert image_cuda("nvcr.io/nvidia/tritonserver:25.06-py3").cuda == "12.9.1"


def test_the_rule_that_was_used_comes_with_source_and_date() -> None:
    found = image_cuda("nvcr.io/nvidia/pytorch:24.05-py3")
    assert found.source
    assert re.fullmatch(r"20[0-9]{2}(-[0-9]{2}){1,2}", found.as_of or "")


def test_references_are_taken_apart() -> None:
    parsed = parse("registry.example.com:5000/a/b-c/d_e:1.0-x@sha256:00")
    assert parsed is not None
    assert (parsed.host, parsed.path, parsed.tag, parsed.digest) == (
        "registry.example.com:5000", "a/b-c/d_e", "1.0-x", "sha256:00",
    )  # fmt: skip
