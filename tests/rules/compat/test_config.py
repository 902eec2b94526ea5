"""The configuration of an image decides over its tag."""

from typing import Any

import pytest

from rules.compat import check
from rules.compat.config import apply, environment
from rules.compat.images import image_cuda


def config(*env: str, **labels: str) -> dict[str, Any]:
    return {"architecture": "amd64", "config": {"Env": list(env), "Labels": labels}}


def test_cuda_version_decides_over_the_tag() -> None:
    found = apply(config("CUDA_VERSION=12.4.1"), image_cuda("lmsysorg/sglang:v0.4.5-cu125"))
    assert (found.cuda, found.precision, found.how) == ("12.4.1", "full", "config")


def test_the_build_number_of_ngc_is_left_out() -> None:
    assert apply(config("CUDA_VERSION=12.2.2.009"), image_cuda("team/x:1")).cuda == "12.2.2"


def test_the_requirement_tells_the_line_where_the_version_is_missing() -> None:
    found = apply(config("NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471"), image_cuda("team/x:1"))
    assert (found.cuda, found.precision) == ("12.4", "major.minor")


def test_labels_come_last() -> None:
    assert apply({"config": {"Labels": {"com.nvidia.cuda.version": "12.6.3"}}}, image_cuda("team/x:1")).cuda == "12.6.3"


def test_rocm_is_read_from_the_environment_too() -> None:
    found = apply(config("ROCM_VERSION=6.3.1"), image_cuda("rocm/pytorch:latest"))
    assert (found.rocm, found.cuda, found.vendor) == ("6.3.1", None, "amd")


def test_a_configuration_that_names_both_platforms_decides_nothing() -> None:
    found = apply(config("CUDA_VERSION=12.4.1", "ROCM_VERSION=6.3.1"), image_cuda("team/x:1"))
    assert (found.cuda, found.rocm) == (None, None)


def test_moving_tags_become_known() -> None:
    verdict = check(driver="550.54.15", image="pytorch/pytorch:latest", image_config=config("CUDA_VERSION=12.4.1"))
    assert (verdict.verdict, verdict.cuda) == ("ok", "12.4.1")


def test_the_configuration_is_enough_without_a_reference() -> None:
    assert check(driver="550.54.15", image_config=config("CUDA_VERSION=12.4.1")).verdict == "ok"


@pytest.mark.parametrize(
    "shape",
    [
        {"Env": ["CUDA_VERSION=12.4.1"]},
        {"Config": {"Env": ["CUDA_VERSION=12.4.1"]}},
        {"config": {"env": {"CUDA_VERSION": "12.4.1"}}},
        {"container_config": {"Env": ["A", "CUDA_VERSION=12.4.1", "B=C=D"]}},
    ],
)
def test_the_usual_shapes_are_understood(shape: dict[str, Any]) -> None:
    assert environment(shape)["CUDA_VERSION"] == "12.4.1"


@pytest.mark.parametrize(
    "shape", [{}, {"config": None}, {"config": {"Env": 7}}, {"Env": [None, 3, "x"]}, {"Labels": 1}]
)
def test_odd_shapes_say_nothing(shape: dict[str, Any]) -> None:
    assert apply(shape, image_cuda("team/x:1")).cuda is None
