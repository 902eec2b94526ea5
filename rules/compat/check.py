"""Would this image run on this driver and GPU?"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

import msgspec

from rules.compat import amd, config, data, nvidia, warnings
from rules.compat.data import KernelRow
from rules.compat.gpus import Gpu, of_capability, recognise, vendor_of
from rules.compat.images import ImageCuda, image_cuda
from rules.compat.nvidia import VerdictName
from rules.compat.versions import Toolkit, amd_driver, key, line, major, nvidia_driver, toolkit
from rules.compat.words import MAKERS, Reason, say

Maker = Literal["nvidia", "amd", "other"]

_NEWEST_ROCM_MAJOR = 10
_OLDEST_CUDA_MAJOR = 9


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether software runs on a driver and a GPU, and why.

    Attributes:
        verdict: ``ok``: the driver meets the toolkit's own minimum. ``ok_minor_compat``: only the floor of its family.
            ``needs_forward_compat``: only with cuda-compat in the image. ``driver_too_old``: only a newer driver or an
            older image helps. ``arch_unsupported``: GPU and software, or GPU and driver branch, do not fit.
            ``unknown``: a fact that decides is missing.
        reasons: what the verdict rests on, the deciding one first; never empty.
        warnings: what to know besides; they never change the verdict.
        cuda, rocm: version of the software as far as it is known.
        driver: as read; a bare branch (``535``) stays one.
        gpu: product or model; None: not given or not recognised.
        min_driver: own minimum of the toolkit: from here on the verdict is ``ok``. floor_driver: floor of the family.
        image: what was read from the image.
    """

    verdict: VerdictName
    reasons: tuple[Reason, ...]
    warnings: tuple[Reason, ...] = ()
    cuda: str | None = None
    rocm: str | None = None
    driver: str | None = None
    gpu: str | None = None
    min_driver: str | None = None
    floor_driver: str | None = None
    image: ImageCuda | None = None


def check(
    *,
    driver: str | None,
    cuda: str | None = None,
    image: str | None = None,
    gpu: str | None = None,
    vendor: str | None = None,
    image_config: Mapping[str, Any] | None = None,
    compute_capability: str | None = None,
    family: str | None = None,
    driver_cuda: str | None = None,
    mig: bool = False,
    kernel_modules: Literal["open", "proprietary"] | None = None,
    arch: Literal["amd64", "arm64"] | None = None,
    today: date | None = None,
) -> Verdict:
    """Judge one case; never raises, whatever the texts are.

    Args:
        driver: kernel driver of the node (``535.183.01``, ``535``; of AMD ``6.3.2``, ``30.10``).
        cuda: CUDA version of the software (or ROCm version, for an AMD GPU); it decides over the image's tag.
        image: image reference.
        gpu: name of the GPU in any spelling; None or empty: not given.
        vendor: ``nvidia``, ``amd`` or another maker, where the GPU's name does not tell.
        image_config: OCI image configuration; it decides over the tag.
        compute_capability, family: what the node's labels say of a GPU whose name is not recognised.
        driver_cuda: "CUDA Version" of nvidia-smi, where the driver itself is not known.
        mig: the GPU is, or shall be, cut by MIG.
        kernel_modules: flavour of the driver, where it is known.
        arch: CPU architecture of the node.
        today: for the end of life of the driver's branch; without it the state of the facts counts.
    """
    found = image_cuda(image) if _given(image) else None
    if image_config is not None:
        found = config.apply(image_config, found or ImageCuda(how="unreadable"))
    card = recognise(gpu) or of_capability(compute_capability, name=gpu, family=family)
    hardware = _hardware(card, gpu, vendor)
    given = None if found is not None and found.how == "config" else toolkit(cuda)
    hardware_by_driver = _hardware_by_driver(driver, given, found) if hardware is None else None
    software = _software(given, found, hardware or hardware_by_driver, vendor)
    case = _Case(driver=driver, cuda=cuda, image=image, gpu=gpu, found=found, card=card, software=software)
    maker = _maker(software, found)
    if maker is not None and (hardware or hardware_by_driver) not in (None, maker):
        return _mismatch(case, maker, hardware, hardware_by_driver)
    if "amd" in (hardware, hardware_by_driver, maker):
        return _amd(case)
    read = nvidia_driver(driver)
    if read is None and driver_cuda is not None and not _given(driver):
        row = nvidia.branch_reporting(driver_cuda)
        read = str(row.branch) if row else None
    outcome = nvidia.judge(read, software, card, _kernels(case, arch), _missing(case, read))
    warned = warnings.Case(
        outcome=outcome,
        driver=read,
        toolkit=software,
        gpu=card,
        image=found,
        mig=mig,
        kernel_modules=kernel_modules,
        today=today,
    )
    return msgspec.structs.replace(
        _verdict(case, outcome.verdict, outcome.reasons, read),
        warnings=warnings.of(warned),
        min_driver=outcome.own.driver if outcome.own else None,
        floor_driver=outcome.floor,
    )


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that were given, and what was read from them."""

    driver: str | None
    cuda: str | None
    image: str | None
    gpu: str | None
    found: ImageCuda | None
    card: Gpu | None
    software: Toolkit | None


def _verdict(case: _Case, name: VerdictName, reasons: tuple[Reason, ...], driver: str | None) -> Verdict:
    version = nvidia.resolve_update(case.software.version) if case.software else None
    rocm = case.software is not None and case.software.platform == "rocm"
    return Verdict(
        verdict=name,
        reasons=reasons,
        cuda=None if rocm else version,
        rocm=version if rocm else None,
        driver=driver,
        gpu=case.card.name if case.card else None,
        image=case.found,
    )


def _given(text: str | None) -> bool:
    return bool(text and text.strip())


def _hardware(card: Gpu | None, gpu: str | None, vendor: str | None) -> Maker | None:
    if card is not None:
        return card.vendor
    named = vendor_of(gpu)
    if named is not None or not _given(vendor):
        return named
    lowered = (vendor or "").strip().lower()
    if lowered in ("nvidia", "amd"):
        return "nvidia" if lowered == "nvidia" else "amd"
    return "other"


def _hardware_by_driver(driver: str | None, given: Toolkit | None, found: ImageCuda | None) -> Maker | None:
    """Whose GPU it is by the number of its driver: NVIDIA's start at 100, AMD's end far below.

    A number that only AMD could have counts when the software may be ROCm; else it is rather a slip of the pen.
    """
    if nvidia_driver(driver) is not None:
        return "nvidia"
    read = amd_driver(driver)
    if read is None or amd.row_of(read)[0] is None:
        return None
    may_be_rocm = given is not None and given.platform != "cuda" and major(given.version) < _OLDEST_CUDA_MAJOR
    return "amd" if may_be_rocm or (given is None and found is not None and found.vendor == "amd") else None


def _software(
    given: Toolkit | None, found: ImageCuda | None, hardware: Maker | None, vendor: str | None
) -> Toolkit | None:
    """The toolkit to judge. A bare number is ROCm on an AMD GPU as far as ROCm has such numbers, else CUDA."""
    if given is not None and given.platform is None:
        newest = _NEWEST_ROCM_MAJOR if (vendor or "").strip().lower() == "amd" else _OLDEST_CUDA_MAJOR - 1
        rocm = hardware == "amd" and major(given.version) <= newest
        return msgspec.structs.replace(given, platform="rocm" if rocm else "cuda")
    if given is not None or found is None:
        return given
    read = toolkit(found.cuda or found.rocm)
    return msgspec.structs.replace(read, platform="cuda" if found.cuda else "rocm") if read else None


def _maker(software: Toolkit | None, found: ImageCuda | None) -> Maker | None:
    if software is not None:
        return "amd" if software.platform == "rocm" else "nvidia"
    return found.vendor if found is not None else None


def _mismatch(case: _Case, maker: Maker, hardware: Maker | None, by_driver: Maker | None) -> Verdict:
    amd_card = "amd" in (hardware, by_driver)
    read = amd_driver(case.driver) if amd_card else nvidia_driver(case.driver)
    name = case.card.name if case.card else _short(case.gpu)
    software = MAKERS[maker]
    if name:
        reason = say("vendor_mismatch", case.card.row if case.card else None, software=software, gpu=name)
    elif hardware is not None or by_driver is None:
        reason = say("vendor_mismatch_maker", software=software, hardware=MAKERS[hardware or "other"])
    else:
        reason = say(
            "vendor_mismatch_driver", software=software, hardware=MAKERS[by_driver], driver=read or _short(case.driver)
        )
    return _verdict(case, "arch_unsupported", (reason,), read)


def _amd(case: _Case) -> Verdict:
    read = amd_driver(case.driver)
    outcome = amd.judge(read, case.software, case.card, _missing(case, read))
    return _verdict(case, outcome.verdict, outcome.reasons, read)


def _missing(case: _Case, read: str | None) -> tuple[Reason, ...]:
    """What is not known, in words."""
    missing = []
    if case.software is None:
        missing.append(_no_software(case))
    if read is None:
        unreadable = say("driver_unreadable", given=_short(case.driver))
        missing.append(unreadable if _given(case.driver) else say("driver_missing"))
    if case.card is None and _given(case.gpu):
        missing.append(say("gpu_unrecognised", given=_short(case.gpu)))
    return tuple(missing)


_NO_SOFTWARE = {
    "no-tag": "image_no_tag",
    "moving-tag": "image_moving_tag",
    "digest-only": "image_digest_only",
    "not-in-table": "image_not_in_table",
    "contradictory": "image_contradictory",
    "unreadable": "image_unreadable",
}


def _no_software(case: _Case) -> Reason:
    found, name = case.found, _short(case.image)
    if _given(case.cuda):
        return say("cuda_unreadable", given=_short(case.cuda))
    if found is None:
        return say("cuda_missing")
    if found.platform in ("cpu", "none"):
        return say("image_without_gpu_software", image=name)
    if found.platform == "jetson":
        return say("image_for_jetson", image=name)
    rule = next((family for family in data.images().families if family.id == found.family), None)
    return say(_NO_SOFTWARE.get(found.how, "image_not_in_tag"), rule, image=name, given=name)


def _short(text: str | None) -> str:
    shown = (text or "").strip()
    return shown if len(shown) <= 120 else shown[:117] + "..."


def _kernels(case: _Case, arch: Literal["amd64", "arm64"] | None) -> KernelRow | None:
    """The list of architectures that the image is known to be built for."""
    found, software, card = case.found, case.software, case.card
    if found is None or software is None or software.platform != "cuda" or software.precision == "major":
        return None
    cpu = found.arch or arch or ("arm64" if card is not None and card.arm64 else "amd64")
    for row in data.images().kernels:
        if row.family != found.family or line(row.cuda) != line(software.version) or row.arch not in (None, cpu):
            continue
        if row.first is None:
            return row
        version = key(found.product_version or "")
        if version and key(row.first) <= version and (row.below is None or version < key(row.below)):
            return row
    return None
