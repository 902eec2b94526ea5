"""The requirement values of images, as the two evaluators judge them."""

from typing import Any

import pytest

from rules.compat import data
from rules.compat.requirement import Properties, evaluate, first_alternative, lowest_cuda, requirements_of
from tests.rules.compat.samples import rows

SAMPLES = rows("compat_requirements.yaml")


def expression(sample: dict[str, Any]) -> str:
    if "published" not in sample:
        return str(sample["expression"])
    cuda, _, variant = sample["published"].partition("/")
    found = [row for row in data.requirements() if row.cuda == cuda and (not variant or row.variant == variant)]
    assert len(found) == 1
    return found[0].value


def properties(sample: dict[str, Any]) -> Properties:
    known = {name: sample.get(name) for name in ("cuda", "driver", "arch", "brand")}
    return Properties(**known, gpu_visible=sample.get("gpu_visible", True))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("published") or s.get("expression") or "empty")
def test_both_evaluators_judge_the_sample_right(sample: dict[str, Any]) -> None:
    assert evaluate(expression(sample), properties(sample)) == sample["legacy"], sample["why"]
    assert evaluate(expression(sample), properties(sample), mode="go") == sample["go"], sample["why"]


@pytest.mark.parametrize("row", data.requirements(), ids=lambda row: f"{row.cuda} {row.variant or ''}")
def test_published_values_are_valid_and_accept_a_newer_driver(row: data.PublishedRequirement) -> None:
    newest = Properties(cuda="13.5", driver="620.70.06", arch="12.0", brand="geforce")
    assert evaluate(row.value, newest) == evaluate(row.value, newest, mode="go") == "satisfied"
    oldest = Properties(cuda="9.0", driver="384.111", arch="7.0", brand="tesla")
    assert evaluate(row.value, oldest) == evaluate(row.value, oldest, mode="go") == "not_satisfied"


def test_every_variable_counts_except_those_of_jetpack() -> None:
    env = {
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.4",
        "NVIDIA_REQUIRE_ARCH": "arch>=8.0",
        "NVIDIA_REQUIRE_JETPACK": "x",
        "A": "b",
    }
    assert [name for name, _ in requirements_of(env)] == ["NVIDIA_REQUIRE_ARCH", "NVIDIA_REQUIRE_CUDA"]


def test_an_image_with_only_a_version_gets_an_implied_requirement() -> None:
    assert requirements_of({"CUDA_VERSION": "12.2.2.009"}) == (("NVIDIA_REQUIRE_CUDA", "cuda>=12.2"),)


@pytest.mark.parametrize("value", ["1", "true", "T"])
def test_the_switch_turns_all_requirements_off(value: str) -> None:
    assert requirements_of({"CUDA_VERSION": "12.2", "NVIDIA_DISABLE_REQUIRE": value}) == ()


def test_the_message_names_only_the_first_alternative() -> None:
    assert first_alternative(" cuda>=12.8 brand=tesla,driver>=535,driver<536") == "cuda>=12.8"


@pytest.mark.parametrize(
    ("value", "cuda"), [("cuda>=12.4 x", "12.4"), ("driver>=470", None), ("cuda>=x", None), ("", None)]
)
def test_the_line_that_a_value_was_made_for(value: str, cuda: str | None) -> None:
    assert lowest_cuda(value) == cuda


def test_the_c_evaluator_stops_at_the_alternative_that_holds() -> None:
    here = Properties(cuda="12.4", driver="550.54.15", arch="9.0", brand="nvidia")
    assert evaluate("cuda>=12.0 nonsense", here) == "satisfied"
    assert evaluate("cuda>=13.0,nonsense cuda>=12.0", here) == "satisfied"
    assert evaluate("cuda>=12.0,nonsense", here) == "error"
    assert evaluate("cuda!12.4", here) == "not_satisfied"
    assert evaluate(",", here) == "satisfied"
