"""Warnings: what to know besides the verdict."""

from datetime import date
from typing import Any

import pytest

from rules.compat import check, data


def keys(**case: Any) -> set[str]:
    return {warning.key for warning in check(**case).warnings}


def test_minor_version_compatibility_comes_with_its_limits() -> None:
    assert {"ptx_limit", "feature_limit"} <= keys(driver="535.183.01", cuda="12.8", gpu="L4")
    assert not {"ptx_limit", "feature_limit"} & keys(driver="570.124.06", cuda="12.8", gpu="L4")


def test_end_of_life_of_the_branch() -> None:
    assert "end_of_life" in keys(driver="535.183.01", cuda="12.2", gpu="L4")
    assert "end_of_life" not in keys(driver="580.95.05", cuda="12.2", gpu="L4")


def test_end_of_life_comes_with_time() -> None:
    case = {"driver": "595.71.05", "cuda": "13.2", "gpu": "L4"}
    assert "end_of_life" not in keys(**case, today=date(2027, 3, 31))
    assert "end_of_life" in keys(**case, today=date(2027, 4, 1))


def test_a_branch_outside_the_facts_is_said_to_be_so() -> None:
    assert "branch_not_in_facts" in keys(driver="999.10", cuda="12.4")


def test_blackwell_needs_open_kernel_modules() -> None:
    case = {"driver": "580.95.05", "cuda": "12.9", "gpu": "B200"}
    assert "open_modules_required" in keys(**case)
    assert "wrong_kernel_modules" in keys(**case, kernel_modules="proprietary")
    assert not {"open_modules_required", "wrong_kernel_modules"} & keys(**case, kernel_modules="open")


def test_volta_needs_proprietary_kernel_modules() -> None:
    case = {"driver": "580.95.05", "cuda": "12.9", "gpu": "V100"}
    assert "open_modules_not_possible" in keys(**case)
    assert "wrong_kernel_modules" in keys(**case, kernel_modules="open")


def test_hopper_takes_both_flavours() -> None:
    found = keys(driver="580.95.05", cuda="12.9", gpu="H100")
    assert not {"open_modules_required", "open_modules_not_possible"} & found


def test_mig_minimum_of_the_card() -> None:
    case = {"driver": "570.124.06", "cuda": "12.8", "gpu": "B200"}
    assert "mig_minimum" in keys(**case, mig=True)
    assert "mig_minimum" not in keys(**case)
    assert "mig_minimum" not in keys(**{**case, "driver": "570.133.20"}, mig=True)


@pytest.mark.parametrize(
    ("gpu", "below", "at"), [("A100", "450.51.06", "450.80.02"), ("H200", "520.61.05", "525.60.13")]
)
def test_mig_minimum_differs_by_architecture(gpu: str, below: str, at: str) -> None:
    assert "mig_minimum" in keys(driver=below, cuda="11.8", gpu=gpu, mig=True)
    assert "mig_minimum" not in keys(driver=at, cuda="11.8", gpu=gpu, mig=True)


def test_a_mig_label_asks_for_mig_by_itself() -> None:
    assert "mig_regression" in keys(driver="570.133.20", cuda="12.8", gpu="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
    assert "mig_regression" not in keys(driver="570.172.08", cuda="12.8", gpu="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")


def test_a_card_without_mig() -> None:
    assert "mig_not_possible" in keys(driver="580.95.05", cuda="12.8", gpu="L4", mig=True)


def test_product_minimum_beyond_the_branch() -> None:
    assert "product_minimum" in keys(driver="570.86.10", cuda="12.8", gpu="B200")
    assert "product_minimum" not in keys(driver="570.133.20", cuda="12.8", gpu="B200")


def test_fabric_manager_on_boards_with_nvswitch() -> None:
    assert "fabric_manager" in keys(driver="580.95.05", cuda="12.8", gpu="NVIDIA-H100-80GB-HBM3")
    assert "fabric_manager" not in keys(driver="580.95.05", cuda="12.8", gpu="NVIDIA-H100-PCIe")


def test_the_published_requirement_refuses_a_geforce_that_would_run() -> None:
    verdict = check(driver="550.144.03", image="nvidia/cuda:12.8.1-base-ubuntu22.04", gpu="RTX 4090")
    assert verdict.verdict == "ok_minor_compat"
    refused = [warning for warning in verdict.warnings if warning.key == "requirement_refused"]
    assert len(refused) == 1
    assert "cuda>=12.8" in refused[0].text.en


def test_the_published_requirement_accepts_a_listed_data_centre_branch() -> None:
    assert "requirement_refused" not in keys(
        driver="550.144.03", image="nvidia/cuda:12.8.1-base-ubuntu22.04", gpu="NVIDIA-L40S"
    )


def test_updates_of_one_line_publish_different_requirements() -> None:
    case = {"driver": "510.108.03", "gpu": "A100"}
    assert "requirement_refused" not in keys(image="nvidia/cuda:12.1.0-base-ubuntu22.04", **case)
    assert "requirement_refused" in keys(image="nvidia/cuda:12.1.1-base-ubuntu22.04", **case)


def test_an_unlisted_brand_is_not_guessed() -> None:
    """Without a GPU a condition on the brand may hold: no refusal is claimed."""
    assert "requirement_refused" not in keys(driver="550.144.03", image="nvidia/cuda:12.8.1-base-ubuntu22.04")
    assert "requirement_refused" in keys(driver="545.23.08", image="nvidia/cuda:12.8.1-base-ubuntu22.04")


def test_the_requirement_of_the_configuration_decides_over_the_published_one() -> None:
    config = {"config": {"Env": ["CUDA_VERSION=12.8.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.0"]}}
    case = {"driver": "550.144.03", "image": "nvidia/cuda:12.8.1-base-ubuntu22.04", "gpu": "RTX 4090"}
    assert "requirement_refused" not in keys(**case, image_config=config)


def test_an_invalid_requirement_is_named() -> None:
    config = {"config": {"Env": ["CUDA_VERSION=12.8.1", "NVIDIA_REQUIRE_ARCH=nonsense"]}}
    verdict = check(driver="580.95.05", image="team/x:1", gpu="L4", image_config=config)
    assert verdict.verdict == "ok"
    assert any(w.key == "requirement_invalid" and "NVIDIA_REQUIRE_ARCH" in w.text.en for w in verdict.warnings)


def test_compat_package_is_asked_for_where_the_image_may_lack_it() -> None:
    case = {"driver": "535.183.01", "gpu": "H100"}
    assert "compat_package_needed" in keys(cuda="13.0", **case)
    assert "compat_package_needed" not in keys(image="nvidia/cuda:13.0.2-base-ubuntu24.04", **case)
    assert "compat_package_absent" in keys(image="pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime", **case)
    assert "compat_package_absent" not in keys(image="pytorch/pytorch:2.9.0-cuda13.0-cudnn9-devel", **case)
    assert "compat_switched_off" in keys(image="vllm/vllm-openai:v0.20.2", **case)


def test_consumer_cards_fail_with_804_where_compat_is_injected() -> None:
    assert "compat_injected_on_consumer" in keys(
        driver="535.183.01", image="nvidia/cuda:12.8.1-base-ubuntu22.04", gpu="RTX 4090"
    )
    assert "compat_injected_on_consumer" not in keys(
        driver="535.183.01", image="pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime", gpu="RTX 4090"
    )


def test_code_of_an_older_card_of_the_same_major_capability() -> None:
    assert "code_of_same_major" in keys(driver="535.183.01", cuda="11.4", gpu="L4")
    assert "code_of_same_major" not in keys(driver="535.183.01", cuda="11.8", gpu="L4")


def test_a_tag_that_lies_is_named() -> None:
    assert "tag_differs" in keys(driver="570.124.06", image="lmsysorg/sglang:v0.4.4.post3-cu125", gpu="H100")


def test_months_known_from_memory_are_marked() -> None:
    recalled = next(row.month for row in data.images().ngc if row.evidence == "recalled")
    assert "evidence_recalled" in keys(driver="580.95.05", image=f"nvcr.io/nvidia/pytorch:{recalled}-py3", gpu="V100")
    assert "evidence_recalled" not in keys(driver="580.95.05", image="nvcr.io/nvidia/pytorch:24.05-py3", gpu="V100")


@pytest.mark.parametrize("driver", ["535.183.01", "580.95.05", "620.70.06"])
@pytest.mark.parametrize("cuda", ["11.4", "12.8", "13.0"])
@pytest.mark.parametrize("gpu", ["L4", "V100", "B200", "RTX 4090"])
def test_warnings_do_not_change_the_verdict(driver: str, cuda: str, gpu: str) -> None:
    plain = check(driver=driver, cuda=cuda, gpu=gpu).verdict
    for more in ({"mig": True}, {"kernel_modules": "open"}, {"today": date(2031, 1, 1)}):
        assert check(driver=driver, cuda=cuda, gpu=gpu, **more).verdict == plain
