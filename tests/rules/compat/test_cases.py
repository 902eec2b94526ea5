"""The verdicts on both sides of every border that the facts draw."""

from collections import Counter
from typing import Any, get_args

import pytest

from rules.compat import VerdictName, check
from rules.compat.report import judge
from rules.language import LANGUAGES
from tests.rules.compat.samples import rows

CASES = rows("compat_cases.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_verdict_of_the_case(case: dict[str, Any]) -> None:
    verdict = judge(case)
    assert verdict.verdict in (case["expect"], *case.get("also_ok", ())), case.get("why")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_verdict_gives_its_reasons_in_three_languages(case: dict[str, Any]) -> None:
    verdict = judge(case)
    assert verdict.reasons
    for reason in (*verdict.reasons, *verdict.warnings):
        for language in LANGUAGES:
            text = reason.text.in_(language)
            assert text
            assert "{" not in text
            assert "None" not in text


def test_verdicts_that_decide_rest_on_a_row_with_a_source() -> None:
    without = []
    for case in CASES:
        verdict = judge(case)
        mismatch_of_makers = verdict.reasons[0].key.startswith("vendor_mismatch")
        if verdict.verdict != "unknown" and not mismatch_of_makers and not any(r.source for r in verdict.reasons):
            without.append(case["id"])
    assert without == []


def test_the_table_has_each_verdict_and_no_id_twice() -> None:
    ids = Counter(case["id"] for case in CASES)
    assert max(ids.values()) == 1
    assert len(CASES) >= 150
    assert {case["expect"] for case in CASES} == set(get_args(VerdictName))


def test_a_branch_too_old_for_the_gpu_says_that_a_newer_one_cures_it() -> None:
    verdict = check(driver="535.183.01", cuda="12.8", gpu="B200")
    assert verdict.verdict == "arch_unsupported"
    assert [reason.key for reason in verdict.reasons] == ["branch_predates_gpu"]
    assert "newer driver branch cures" in verdict.reasons[0].text.en


def test_without_a_gpu_it_says_that_a_data_centre_card_was_assumed() -> None:
    keys = {reason.key for reason in check(driver="470.256.02", cuda="12.8").reasons}
    assert "datacenter_assumed" in keys


def test_a_bare_branch_says_which_driver_it_was_judged_as() -> None:
    verdict = check(driver="535", cuda="12.2", gpu="T4")
    assert verdict.driver == "535"
    assert any(reason.key == "branch_assumed" and "535.54.03" in reason.text.en for reason in verdict.reasons)


def test_cuda_version_of_nvidia_smi_stands_for_the_driver_that_reports_it() -> None:
    verdict = check(driver=None, driver_cuda="12.2", image="nvidia/cuda:12.6.2-base-ubuntu22.04", gpu="L4")
    assert (verdict.verdict, verdict.driver) == ("ok_minor_compat", "535")


def test_only_ptx_could_rescue_an_image_older_than_the_gpu() -> None:
    keys = [reason.key for reason in check(driver="535.161.07", cuda="11.4", gpu="H100").reasons]
    assert keys == ["toolkit_predates_gpu", "ptx_may_rescue"]
    assert "ptx_may_rescue" not in {reason.key for reason in check(driver="580.95.05", cuda="13.0", gpu="V100").reasons}


def test_it_names_the_driver_that_would_be_enough() -> None:
    verdict = check(driver="535.183.01", cuda="12.8.1", gpu="L4")
    assert (verdict.min_driver, verdict.floor_driver) == ("570.124.06", "525.60.13")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("12.8", "12.8"), ("cu128", "12.8"), ("CUDA 12.4.1", "12.4.1"), ("12,8", "12.8"), ("12.2.2.009", "12.2.2"),
        ("12.8 Update 1", "12.8.1"), ("11.0 Update 1", "11.0.3"), ("v12.6", "12.6"), ("12.x", "12"), ("cuda12", "12"),
    ],
)  # fmt: skip
def test_cuda_versions_are_read_as_people_write_them(text: str, version: str) -> None:
    assert check(driver="580.65.06", cuda=text).cuda == version


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("535.183.01-0ubuntu1", "535.183.01"), ("535.183.01-ubuntu22.04", "535.183.01"), ("R570", "570"),
        ("nvidia-driver-535", "535"),
        ("NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build", "580.95.05"),
        ("12.4", None), ("31.0.15.3623", None), ("535 or 550", None), ("53.5", None),
    ],
)  # fmt: skip
def test_drivers_are_read_as_tools_print_them(text: str, driver: str | None) -> None:
    assert check(driver=text, cuda="12.2").driver == driver


def test_labels_of_the_node_stand_in_for_a_name_that_is_not_known() -> None:
    new = "NVIDIA-Something-New"
    assert check(cuda="12.4", driver="580.95.05", gpu=new).verdict == "unknown"
    assert check(cuda="12.4", driver="580.95.05", gpu=new, compute_capability="12.0").verdict == "arch_unsupported"
    assert check(cuda="12.8", driver="580.95.05", gpu=new, compute_capability="12.0").verdict == "ok"
    assert check(cuda="13.0", driver="570.133.20", gpu=new, compute_capability="12.0").verdict == "unknown"
    assert check(cuda="13.0", driver="580.95.05", gpu=new, family="volta").verdict == "arch_unsupported"
