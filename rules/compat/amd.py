"""The verdict for an amdgpu driver, a ROCm user space and an AMD GPU.

AMD has nothing like cuda-compat: the user space of the image talks to the driver of the host. A row of AMD's matrix of
driver and user space decides; what it does not list is unknown, and newer than the list is too new for the driver.
"""

from collections.abc import Iterable

import msgspec

from rules.compat import data
from rules.compat.data import RocmRow
from rules.compat.gpus import Gpu
from rules.compat.nvidia import Outcome, VerdictName
from rules.compat.versions import Toolkit, key, line, line_text
from rules.compat.words import Reason, say

_LAST_MINOR = 99
_ONE_YEAR_PROMISE_FROM = (6, 4)


def judge(driver: str | None, rocm: Toolkit | None, gpu: Gpu | None, open_facts: Iterable[Reason]) -> Outcome:
    """The verdict; arguments as in :func:`rules.compat.nvidia.judge`."""
    missing = tuple(open_facts)
    if rocm is not None and rocm.precision == "major":
        low = _judge(driver, f"{rocm.version}.0", gpu, missing)
        high = _judge(driver, f"{rocm.version}.{_LAST_MINOR}", gpu, missing)
        if low.verdict == high.verdict:
            return low
        split = say(
            "only_major_known", cuda=rocm.version, first=f"{rocm.version}.0", newest=f"{rocm.version}.x",
            first_verdict=low.verdict, newest_verdict=high.verdict,
        )  # fmt: skip
        return Outcome("unknown", (split,), judged_driver=low.judged_driver)
    return _judge(driver, rocm.version if rocm else None, gpu, missing)


def row_of(driver: str) -> tuple[RocmRow | None, str | None]:
    """The matrix row of a driver, and the module version when it had to be mapped to a release first."""
    for row in data.rocm():
        if any(driver == module for module in row.modules):
            return row, driver
    known = (row for row in data.rocm() if line(row.driver) == line(driver))
    return next(known, None), None


def _judge(driver: str | None, version: str | None, gpu: Gpu | None, open_facts: tuple[Reason, ...]) -> Outcome:
    if version and gpu is not None and gpu.first_rocm and line(version) < line(gpu.first_rocm):
        reason = say("rocm_predates_gpu", gpu.row, gpu=gpu.name, first=gpu.first_rocm, rocm=version)
        return Outcome("arch_unsupported", (reason,), judged_driver=driver)
    if open_facts or driver is None or version is None:
        return Outcome("unknown", open_facts, judged_driver=driver)
    row, module = row_of(driver)
    notes: list[Reason] = []
    if row is not None and module is not None:
        mapped = say("rocm_module_mapped", module=module, driver=row.driver)
        notes.append(msgspec.structs.replace(mapped, source=row.modules_source, as_of=row.as_of))
    release = row.driver if row is not None else driver
    verdict, reason = _by_row(row, release, version)
    if verdict != "ok" and line(version) >= _ONE_YEAR_PROMISE_FROM:
        notes.append(say("rocm_one_year_promise", data.statement("from_6_4")))
    return Outcome(verdict, (reason, *notes), judged_driver=release)


def _by_row(row: RocmRow | None, driver: str, version: str) -> tuple[VerdictName, Reason]:
    if row is None:
        return "unknown", say("rocm_driver_without_row", driver=driver)
    if not row.user_space:
        return "unknown", say("rocm_list_not_read", row, driver=driver)
    listed = sorted(row.user_space, key=key)
    if line_text(version) in listed:
        return "ok", say("rocm_listed", row, driver=driver, rocm=version)
    if line(version) > line(listed[-1]):
        return "driver_too_old", say("rocm_newer_than_list", row, newest=listed[-1], driver=driver, rocm=version)
    return "unknown", say("rocm_not_listed", row, oldest=listed[0], newest=listed[-1], driver=driver, rocm=version)
