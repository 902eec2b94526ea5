"""What to know besides the verdict. Warnings never change it."""

from collections.abc import Iterator
from datetime import date
from typing import Literal

import msgspec

from rules.compat import data
from rules.compat.gpus import Gpu
from rules.compat.images import ImageCuda
from rules.compat.nvidia import Outcome, branch, branch_driver, reported_cuda
from rules.compat.requirement import Properties, evaluate, first_alternative
from rules.compat.versions import Toolkit, is_branch, key, line, line_text, major
from rules.compat.words import FLAVOURS, Reason, say

_REGRESSION = ("570.124.06", "570.158.01")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """All that a warning may look at; None: unknown or not given."""

    outcome: Outcome
    driver: str | None
    toolkit: Toolkit | None
    gpu: Gpu | None
    image: ImageCuda | None
    mig: bool
    kernel_modules: Literal["open", "proprietary"] | None
    today: date | None


def of(case: Case) -> tuple[Reason, ...]:
    """The warnings of an NVIDIA case, most urgent first."""
    return (*_limits(case), *_requirements(case), *_compat(case), *_card(case), *_driver(case), *_image(case))


def _limits(case: Case) -> Iterator[Reason]:
    if case.outcome.verdict != "ok_minor_compat" or case.toolkit is None:
        return
    yield say("ptx_limit", data.statement("ptx_jit"), cuda=case.toolkit.version)
    yield say("feature_limit", data.statement("new_features"))


def _requirements(case: Case) -> Iterator[Reason]:
    """Would the runtime refuse the image, by its own configuration or by the value its official tag publishes?"""
    if case.driver is None or case.image is None or case.outcome.verdict == "arch_unsupported":
        return
    reporting = reported_cuda(major(case.driver))
    properties = Properties(
        cuda=reporting.max_cuda if reporting else None,
        driver=branch_driver(case.driver),
        arch=case.gpu.compute_capability if case.gpu else None,
        brand=case.gpu.brand if case.gpu else None,
        # a GPU whose brand or capability is not known may fulfil any condition on them
        gpu_visible=case.gpu is not None and bool(case.gpu.brand and case.gpu.compute_capability),
    )
    values = case.image.require or _published(case.image)
    for variable, value in values:
        result = evaluate(value, properties)
        if result == "error":
            yield say("requirement_invalid", data.statement("where_enforced"), variable=variable)
        elif result == "not_satisfied":
            yield say(
                "requirement_refused",
                data.statement("where_enforced"),
                variable=variable,
                first=first_alternative(value),
            )
    if not values and case.outcome.verdict == "ok_minor_compat" and case.image.cuda:
        yield say("requirement_may_refuse", data.statement("require_env_is_stricter"), line=line_text(case.image.cuda))


def _published(image: ImageCuda) -> tuple[tuple[str, str], ...]:
    if image.family != "nvidia_cuda" or not image.cuda:
        return ()
    found = [row for row in data.requirements() if row.cuda == image.cuda]
    return tuple(("NVIDIA_REQUIRE_CUDA", row.value) for row in found) if len(found) == 1 else ()


def _compat(case: Case) -> Iterator[Reason]:
    if case.outcome.verdict == "needs_forward_compat" and case.toolkit is not None:
        package = line_text(case.toolkit.version).replace(".", "-")
        if case.image is not None and case.image.compat is False:
            yield say("compat_package_absent", data.statement("pytorch_hub"))
        elif case.image is None or not case.image.compat:
            yield say("compat_package_needed", data.statement("direction"), package=package)
        if case.image is not None and case.image.family == "vllm_openai":
            yield say("compat_switched_off", data.statement("vllm_switch"))
    elif case.outcome.verdict in ("ok_minor_compat", "driver_too_old") and case.gpu is not None:
        carries = case.image is not None and case.image.compat is not False
        if carries and case.gpu.gpu_class == "consumer":
            yield say("compat_injected_on_consumer", data.statement("no_gpu_class_check"), gpu=case.gpu.name)


def _card(case: Case) -> Iterator[Reason]:
    gpu, driver = case.gpu, case.driver
    if gpu is None:
        return
    if case.kernel_modules == "proprietary" and gpu.open_modules == "required":
        yield say(
            "wrong_kernel_modules", data.statement("blackwell_open"), gpu=gpu.name, flavour=FLAVOURS["proprietary"]
        )
    elif case.kernel_modules == "open" and gpu.open_modules == "not_possible":
        yield say(
            "wrong_kernel_modules", data.statement("pre_turing_proprietary"), gpu=gpu.name, flavour=FLAVOURS["open"]
        )
    elif case.kernel_modules is None and gpu.open_modules == "required":
        yield say("open_modules_required", data.statement("blackwell_open"), gpu=gpu.name)
    elif case.kernel_modules is None and gpu.open_modules == "not_possible":
        yield say("open_modules_not_possible", data.statement("pre_turing_proprietary"), gpu=gpu.name)
    if driver is None:
        return
    if _older(driver, gpu.product_min_driver):
        yield say("product_minimum", gpu.row, gpu=gpu.name, minimum=gpu.product_min_driver or "", driver=driver)
    if case.mig or gpu.sliced:
        yield from _mig(gpu, driver)
    if gpu.nvswitch and not is_branch(driver):
        yield say("fabric_manager", data.statement("fabric_manager"), driver=driver)


def _mig(gpu: Gpu, driver: str) -> Iterator[Reason]:
    if all(row.mig is False for row in gpu.rows):
        yield say("mig_not_possible", gpu.row, gpu=gpu.name)
    if _older(driver, gpu.mig_min_driver):
        yield say(
            "mig_minimum", data.statement("drivers"), gpu=gpu.name, minimum=gpu.mig_min_driver or "", driver=driver
        )
    if not is_branch(driver) and key(_REGRESSION[0]) <= key(driver) <= key(_REGRESSION[1]):
        yield say("mig_regression", data.statement("nvml_regression_570"), driver=driver)


def _older(driver: str, minimum: str | None) -> bool:
    """Certainly older: a bare branch counts only when the whole branch is."""
    if minimum is None:
        return False
    return major(driver) < major(minimum) if is_branch(driver) else key(driver) < key(minimum)


def _driver(case: Case) -> Iterator[Reason]:
    if case.driver is None:
        return
    number = major(case.driver)
    row = branch(number)
    if row is None:
        yield say("branch_not_in_facts", branch=str(number))
        return
    passed = bool(case.today and row.end_of_life and f"{case.today:%Y-%m}" > row.end_of_life)
    if row.status == "end_of_life" or passed:
        yield say("end_of_life", row, branch=str(number), since=f" ({row.end_of_life})" if row.end_of_life else "")


def _image(case: Case) -> Iterator[Reason]:
    gpu, toolkit, image = case.gpu, case.toolkit, case.image
    if gpu is not None and toolkit is not None and _runs_older_code(toolkit, gpu):
        same_major = data.statement("same_major")
        yield say("code_of_same_major", same_major, cuda=toolkit.version, gpu=gpu.name, first=gpu.first_cuda or "")
    if image is not None and image.how == "exception" and image.cuda:
        yield say("tag_differs", data.images().exceptions[0], cuda=image.cuda)
    if image is not None and image.how == "month":
        month = next((row for row in data.images().ngc if row.month == image.product_version), None)
        if month is not None and month.evidence == "recalled" and image.family == "ngc_monthly":
            yield say("evidence_recalled", month, month=month.month)


def _runs_older_code(toolkit: Toolkit, gpu: Gpu) -> bool:
    """The toolkit does not compile for this card, but for an older one of the same major capability."""
    if toolkit.precision == "major" or gpu.first_cuda is None or gpu.oldest_cuda is None:
        return False
    return line(gpu.oldest_cuda) <= line(toolkit.version) < line(gpu.first_cuda)
