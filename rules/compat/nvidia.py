"""The verdict for an NVIDIA driver, a CUDA toolkit and an NVIDIA GPU.

Sources: NVIDIA's CUDA compatibility guide and the driver table of the CUDA release notes; every reason names its row.
"""

from collections.abc import Iterable
from functools import cache
from typing import Literal

import msgspec

from rules.compat import data
from rules.compat.data import BranchRow, ForwardRow, KernelRow, ToolkitRow
from rules.compat.gpus import Gpu
from rules.compat.versions import Toolkit, is_branch, key, line, line_text, major
from rules.compat.words import Reason, say

VerdictName = Literal["ok", "ok_minor_compat", "needs_forward_compat", "driver_too_old", "arch_unsupported", "unknown"]


class Outcome(msgspec.Struct, frozen=True):
    """A verdict with its reasons.

    Attributes:
        own: the row of the toolkit's own minimum; None: none known or not judged.
        floor: driver floor of the CUDA family.
        judged_driver: the driver that numbers were compared with (for a bare branch: the one that stands for it).
    """

    verdict: VerdictName
    reasons: tuple[Reason, ...]
    own: ToolkitRow | None = None
    floor: str | None = None
    judged_driver: str | None = None


@cache
def toolkits() -> tuple[ToolkitRow, ...]:
    """All toolkit releases, oldest first."""
    return tuple(sorted(data.cuda().toolkits, key=lambda row: key(row.version)))


@cache
def _of_line(wanted: tuple[int, int]) -> tuple[ToolkitRow, ...]:
    return tuple(row for row in toolkits() if line(row.version) == wanted)


@cache
def branch(number: int) -> BranchRow | None:
    """The driver branch."""
    return next((row for row in data.cuda().branches if row.branch == number), None)


@cache
def reported_cuda(number: int) -> BranchRow | None:
    """The branch that tells which CUDA the driver branch ``number`` at least supports.

    That of the branch itself; for one that is not in the facts that of the next older one, since no newer branch ever
    supported less.
    """
    known = [row for row in data.cuda().branches if row.branch <= number and row.max_cuda]
    return max(known, key=lambda row: row.branch, default=None)


@cache
def branch_reporting(cuda: str) -> BranchRow | None:
    """The branch whose drivers report ``cuda`` in nvidia-smi; None when no branch or no single one does."""
    found = [row for row in data.cuda().branches if row.max_cuda and line(row.max_cuda) == line(cuda)]
    return found[0] if len(found) == 1 else None


def first_of_line(version: str) -> str:
    """The first release of the line of a two-part version; the version itself when the line has no row."""
    rows = _of_line(line(version))
    return rows[0].version if rows else version


def own_minimum(version: str) -> ToolkitRow | None:
    """The row with the toolkit's own minimum: its update's, else that of the next lower update of the same line."""
    by_build = next((row for row in _of_line(line(version)) if version in row.builds), None)
    wanted = key(by_build.version if by_build else version)
    rows = [row for row in _of_line(line(version)) if key(row.version) <= wanted and row.driver]
    return rows[-1] if rows else None


def branch_driver(driver: str) -> str:
    """For a bare branch the driver of the toolkit it was first paired with; any other driver as it is."""
    if not is_branch(driver):
        return driver
    row = branch(int(driver))
    if row is None or row.first_toolkit is None:
        return driver
    paired = (other.driver for other in _of_line(line(row.first_toolkit)))
    return next((number for number in paired if number), driver)


def resolve_update(version: str) -> str:
    """``12.8 Update 1`` as its number, by the label of the toolkit row; the line where no row has that label."""
    if "Update" not in version:
        return version
    return next((row.version for row in data.cuda().toolkits if row.label == version), version.split(" ", 1)[0])


def judge(
    driver: str | None,
    toolkit: Toolkit | None,
    gpu: Gpu | None,
    kernels: KernelRow | None,
    open_facts: Iterable[Reason],
) -> Outcome:
    """The verdict.

    Args:
        driver: as :func:`rules.compat.versions.nvidia_driver` reads it; None: unknown.
        toolkit: None: not determined.
        gpu: None: not given or not recognised.
        kernels: known list of architectures that the software is built for; it decides over the toolkit.
        open_facts: what is missing, in words; not empty means ``unknown`` unless the known facts already rule it out.
    """
    if toolkit is not None and toolkit.precision == "major":
        return _judge_major(driver, toolkit, gpu, kernels, tuple(open_facts))
    return _judge_exact(driver, _version(toolkit), gpu, kernels, tuple(open_facts))


def _version(toolkit: Toolkit | None) -> str | None:
    if toolkit is None:
        return None
    return first_of_line(toolkit.version) if toolkit.precision == "major.minor" else resolve_update(toolkit.version)


def _judge_major(
    driver: str | None, toolkit: Toolkit, gpu: Gpu | None, kernels: KernelRow | None, open_facts: tuple[Reason, ...]
) -> Outcome:
    """Only the family is known: the first and the newest toolkit of it must agree."""
    family = [row.version for row in toolkits() if major(row.version) == major(toolkit.version)]
    first, newest = (family[0], family[-1]) if family else (f"{toolkit.version}.0", f"{toolkit.version}.99")
    low = _judge_exact(driver, first, gpu, kernels, open_facts)
    high = _judge_exact(driver, newest, gpu, kernels, open_facts)
    verdict: VerdictName
    if low.verdict == high.verdict:
        verdict, reasons = (
            low.verdict,
            (*low.reasons, *(reason for reason in high.reasons if reason not in low.reasons)),
        )
        if verdict == "unknown":
            return Outcome(verdict, reasons, judged_driver=low.judged_driver)
    else:
        verdict = "ok_minor_compat" if {low.verdict, high.verdict} == {"ok", "ok_minor_compat"} else "unknown"
        split = say(
            "only_major_known", cuda=toolkit.version, first=first, newest=newest,
            first_verdict=low.verdict, newest_verdict=high.verdict,
        )  # fmt: skip
        reasons = (split, *low.reasons, *(reason for reason in high.reasons if reason not in low.reasons))
    return Outcome(verdict, reasons, own=high.own, floor=high.floor, judged_driver=low.judged_driver)


def _judge_exact(
    driver: str | None, version: str | None, gpu: Gpu | None, kernels: KernelRow | None, open_facts: tuple[Reason, ...]
) -> Outcome:
    misfits = _misfits(driver, version, gpu, kernels)
    own = own_minimum(version) if version else None
    floor = next((row.floor for row in data.cuda().families if version and row.major == major(version)), None)
    judged = branch_driver(driver) if driver else None
    if misfits:
        return Outcome("arch_unsupported", tuple(misfits), own, floor, judged)
    if open_facts or driver is None or version is None or judged is None:
        return Outcome("unknown", open_facts, own, floor, judged)
    verdict, reasons = _by_driver(driver, judged, version, own, gpu)
    notes = []
    if judged != driver:
        notes.append(say("branch_assumed", branch(int(driver)), driver=driver, assumed=judged))
    if kernels is not None and gpu is not None:
        notes.append(_kernels("kernels_present", kernels, gpu))
    if gpu is None:
        notes.append(say("datacenter_assumed"))
    return Outcome(verdict, (*reasons, *notes), own, floor, judged)


def _misfits(driver: str | None, version: str | None, gpu: Gpu | None, kernels: KernelRow | None) -> list[Reason]:
    """Why GPU and software, or GPU and driver branch, do not fit, whatever the age of the driver."""
    if gpu is None:
        return []
    found = []
    if kernels is not None and gpu.compute_capability:
        if not _runs(kernels, gpu.compute_capability):
            found.append(_kernels("kernels_missing", kernels, gpu))
            newest_below = any(sm < _sm(gpu.compute_capability) for sm in kernels.sm)
            if kernels.ptx and newest_below:
                found.append(say("ptx_may_rescue", data.statement("ptx_up")))
    elif version is not None:
        found.extend(_toolkit_misfit(version, gpu))
    if driver is not None:
        number = major(driver)
        if gpu.last_branch is not None and number > gpu.last_branch:
            found.append(say("branch_dropped_gpu", gpu.row, gpu=gpu.name, last=str(gpu.last_branch), driver=driver))
        if gpu.min_branch is not None and number < gpu.min_branch:
            found.append(say("branch_predates_gpu", gpu.row, gpu=gpu.name, first=str(gpu.min_branch), driver=driver))
    return found


def _toolkit_misfit(version: str, gpu: Gpu) -> list[Reason]:
    capability = gpu.compute_capability or "?"
    if gpu.last_cuda is not None and line(version) > line(gpu.last_cuda):
        return [
            say("toolkit_dropped_gpu", gpu.row, gpu=gpu.name, capability=capability, last=gpu.last_cuda, cuda=version)
        ]
    if gpu.oldest_cuda is not None and line(version) < line(gpu.oldest_cuda):
        return [
            say(
                "toolkit_predates_gpu",
                gpu.row,
                gpu=gpu.name,
                capability=capability,
                oldest=gpu.oldest_cuda,
                cuda=version,
            ),
            say("ptx_may_rescue", data.statement("ptx_up")),
        ]
    return []


def _sm(capability: str) -> int:
    first, second = line(capability)
    return first * 10 + second


def _runs(kernels: KernelRow, capability: str) -> bool:
    """Code for X.y runs on every X.z with z >= y, never on another major number."""
    wanted = _sm(capability)
    return any(sm // 10 == wanted // 10 and sm % 10 <= wanted % 10 for sm in kernels.sm)


def _kernels(sentence: str, kernels: KernelRow, gpu: Gpu) -> Reason:
    return say(
        sentence, kernels, build=kernels.name, kernels=", ".join(f"sm_{sm}" for sm in kernels.sm), gpu=gpu.name,
        capability=gpu.compute_capability or "?",
    )  # fmt: skip


def _by_driver(
    driver: str, judged: str, version: str, own: ToolkitRow | None, gpu: Gpu | None
) -> tuple[VerdictName, list[Reason]]:
    family = next((row for row in data.cuda().families if row.major == major(version)), None)
    floor = family.floor if family else None
    shown = judged if is_branch(driver) else driver
    if own is not None and own.driver is not None and key(judged) >= key(own.driver):
        return "ok", [say("driver_meets_own_minimum", own, driver=shown, own=own.driver, cuda=version)]
    reporting = reported_cuda(major(driver))
    if own is None and reporting is not None and reporting.max_cuda and line(reporting.max_cuda) > line(version):
        reason = say(
            "driver_reports_newer_cuda", reporting, branch=str(reporting.branch), max=reporting.max_cuda, cuda=version
        )
        return "ok", [reason]
    if floor is not None and key(judged) >= key(floor):
        if own is None or own.driver is None:
            only = say(
                "driver_meets_floor_only", family, driver=shown, floor=floor, cuda=version, family=str(major(version))
            )
            return "ok_minor_compat", [only]
        met = say(
            "driver_meets_floor",
            family,
            driver=shown,
            own=own.driver,
            cuda=version,
            floor=floor,
            family=str(major(version)),
        )
        return "ok_minor_compat", [met]
    if floor is not None:
        below = say("driver_below_floor", family, driver=shown, floor=floor, family=str(major(version)))
    elif own is not None and own.driver is not None:
        below = say("driver_below_own_minimum", own, driver=shown, own=own.driver, cuda=version)
    else:
        return "unknown", [say("family_unknown", cuda=version)]
    verdict, reason = _by_forward_compat(major(driver), line_text(version), gpu)
    reasons = [below, reason]
    if own is not None and own.driver is not None:
        reasons.append(say("remedy_driver", own, own=own.driver))
    return verdict, reasons


def _by_forward_compat(number: int, cuda_line: str, gpu: Gpu | None) -> tuple[VerdictName, Reason]:
    facts = data.cuda()
    row = _forward(cuda_line, number)
    at = str(number)
    card = gpu.gpu_class if gpu is not None else "datacenter"
    if gpu is not None and card == "consumer":
        return "driver_too_old", say("compat_consumer", data.statement("compat_consumer"), gpu=gpu.name)
    if row is not None and not row.supported:
        return "driver_too_old", say("compat_branch_excluded", row, branch=at, line=cuda_line)
    if row is None:
        complete = next((other for other in facts.complete_lists if other.cuda == cuda_line), None)
        if complete is not None:
            return "driver_too_old", say("compat_branch_absent", complete, branch=at, line=cuda_line)
        return "unknown", say("compat_not_read", branch=at, line=cuda_line)
    if gpu is not None and card not in ("datacenter", "superchip"):
        return "unknown", say("compat_card_not_read", data.statement("compat_workstation"), gpu=gpu.name)
    return "needs_forward_compat", say("compat_listed", row, branch=at, line=cuda_line)


def _forward(cuda_line: str, number: int) -> ForwardRow | None:
    return next((row for row in data.cuda().forward if row.cuda == cuda_line and row.branch == number), None)
