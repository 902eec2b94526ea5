"""The facts that verdicts rest on, as they stand in ``rules/data``: one row per line, each with source and date.

Every table is read on first use only. None is "unknown", never "no".
"""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

_DATA = Path(__file__).parent.parent / "data"


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has.

    Attributes:
        source: where it was read; ``github:owner/repo:path`` is a file.
        as_of: date of the source where it shows one, else the day it was read.
        note: what a reader should know about it.
    """

    source: str
    as_of: str | None = None
    note: str | None = None


class ToolkitRow(Row, frozen=True, kw_only=True):
    """A CUDA toolkit release.

    Attributes:
        min_driver: own minimum on Linux x86_64, from the driver table of the release notes; never the runfile's number.
        paired_driver: the best substitute where the table has no row.
        builds: other numbers under which images carry this release.
    """

    version: str
    label: str
    released: str | None = None
    min_driver: str | None = None
    paired_driver: str | None = None
    builds: tuple[str, ...] = ()

    @property
    def driver(self) -> str | None:
        """Own minimum: the table's driver, else the paired one."""
        return self.min_driver or self.paired_driver


class FamilyRow(Row, frozen=True, kw_only=True):
    """A CUDA family (major number) and the driver floor of minor-version compatibility; None: it has none."""

    major: int
    floor: str | None = None


class ForwardRow(Row, frozen=True, kw_only=True):
    """Whether cuda-compat of a CUDA line works on a driver branch (data-centre cards only)."""

    cuda: str
    branch: int
    supported: bool


class CompleteRow(Row, frozen=True, kw_only=True):
    """A CUDA line whose list of branches was read completely: an absent branch means no."""

    cuda: str


class BranchRow(Row, frozen=True, kw_only=True):
    """A driver branch.

    Attributes:
        kind: ``LTSB``, ``PB``, ``NFB`` ... as NVIDIA names it.
        end_of_life: YYYY-MM.
        max_cuda: the CUDA version that nvidia-smi reports; a ceiling, not an installed toolkit.
        first_toolkit: line of the toolkit it was first paired with.
        status: at the date of the row.
    """

    branch: int
    kind: str | None = None
    end_of_life: str | None = None
    max_cuda: str | None = None
    first_toolkit: str | None = None
    status: Literal["supported", "end_of_life", "unknown"] = "unknown"


class Statement(Row, frozen=True, kw_only=True):
    """A rule in words, as its source states it."""

    id: str
    text: str


class CudaFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``cuda.json``."""

    toolkits: tuple[ToolkitRow, ...]
    families: tuple[FamilyRow, ...]
    forward: tuple[ForwardRow, ...]
    complete_lists: tuple[CompleteRow, ...]
    branches: tuple[BranchRow, ...]
    statements: tuple[Statement, ...]


GpuClass = Literal["datacenter", "superchip", "workstation", "consumer"]
OpenModules = Literal["required", "optional", "not_possible"]


class GpuRow(Row, frozen=True, kw_only=True):
    """A GPU product.

    Attributes:
        model: the name people use; several products may share it.
        family: value of ``nvidia.com/gpu.family``.
        gfx: code target of an AMD card.
        first_cuda: first toolkit that compiles for it natively.
        oldest_cuda: first toolkit with code of the same major capability, which the card can run too.
        last_cuda: last toolkit with code for it; None: none has dropped it.
        min_branch, last_branch: driver branches that know it.
        brand: what NVML reports and ``NVIDIA_REQUIRE_CUDA`` tests.
        nvswitch: sold on boards with NVSwitch.
        arm64: comes with an arm64 host.
        product_min_driver, mig_min_driver: minimums stated for the product, beyond its branch.
        labels: products as GPU Feature Discovery writes them.
    """

    id: str
    model: str
    vendor: Literal["nvidia", "amd"]
    architecture: str
    gpu_class: GpuClass
    family: str | None = None
    compute_capability: str | None = None
    gfx: str | None = None
    memory_gib: int | None = None
    first_cuda: str | None = None
    oldest_cuda: str | None = None
    last_cuda: str | None = None
    min_branch: int | None = None
    last_branch: int | None = None
    first_rocm: str | None = None
    open_modules: OpenModules | None = None
    mig: bool | None = None
    brand: str | None = None
    nvswitch: bool = False
    arm64: bool = False
    product_min_driver: str | None = None
    mig_min_driver: str | None = None
    labels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class GpuFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``gpus.json``."""

    gpus: tuple[GpuRow, ...]


class ImageFamily(Row, frozen=True, kw_only=True):
    """A family of images with one tag grammar.

    Attributes:
        paths: repository paths without registry host; ``*`` stands for one component.
        vendor: whose GPUs all its GPU images are for.
        compat: its images carry the cuda-compat package.
    """

    id: str
    paths: tuple[str, ...] = ()
    vendor: Literal["nvidia", "amd"] | None = None
    compat: bool | None = None


class MonthRow(Row, frozen=True, kw_only=True):
    """CUDA of an NGC month (YY.MM); None: not known."""

    month: str
    cuda: str | None = None
    evidence: str | None = None


class RangeRow(Row, frozen=True, kw_only=True):
    """CUDA of the versions of a product from ``first`` (inclusive) to ``below`` (exclusive, None: open)."""

    family: str
    first: str
    cuda: str
    below: str | None = None


class TensorflowRow(Row, frozen=True, kw_only=True):
    """CUDA of a TensorFlow line."""

    version: str
    cuda: str


class ExceptionRow(Row, frozen=True, kw_only=True):
    """A tag that does not say what is inside."""

    path: str
    tag: str
    cuda: str


class KernelRow(Row, frozen=True, kw_only=True):
    """For which compute capabilities (times ten) a published build has code.

    Attributes:
        family, cuda, first, below, arch: the images it holds for: family, CUDA line, product versions from ``first`` to
            below ``below``, CPU architecture; None: any.
        ptx: it also carries PTX, which a newer GPU may compile.
    """

    name: str
    family: str
    cuda: str
    sm: tuple[int, ...]
    ptx: bool
    first: str | None = None
    below: str | None = None
    arch: Literal["amd64", "arm64"] | None = None


class PlainRow(Row, frozen=True, kw_only=True):
    """Official base images without GPU software."""

    names: tuple[str, ...]


class ImageFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``images.json``."""

    families: tuple[ImageFamily, ...]
    ngc: tuple[MonthRow, ...]
    triton_trtllm: tuple[MonthRow, ...]
    triton_vllm: tuple[MonthRow, ...]
    tensorflow: tuple[TensorflowRow, ...]
    ranges: tuple[RangeRow, ...]
    kernels: tuple[KernelRow, ...]
    exceptions: tuple[ExceptionRow, ...]
    plain: tuple[PlainRow, ...]


class PublishedRequirement(Row, frozen=True, kw_only=True):
    """``NVIDIA_REQUIRE_CUDA`` as official images of a CUDA version publish it; ``variant`` where there are several."""

    cuda: str
    value: str
    variant: str | None = None


class RequirementFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``cuda-requirements.json``."""

    published: tuple[PublishedRequirement, ...]


class RocmRow(Row, frozen=True, kw_only=True):
    """ROCm user-space lines that AMD lists for a driver line; None: not read.

    Attributes:
        modules: kernel module versions that this driver carries, as ``modules_source`` shows. A node's label has the
            module version, the matrix the release.
    """

    driver: str
    user_space: tuple[str, ...] | None = None
    modules: tuple[str, ...] = ()
    modules_source: str | None = None


class RocmFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rocm.json``."""

    matrix: tuple[RocmRow, ...]


class Symptom(Row, frozen=True, kw_only=True):
    """A text that people paste, and what it means.

    Attributes:
        pattern: what is looked for; ``match`` says how (``condition`` rows cannot be searched in a text).
        version_mismatch: whether versions that do not fit are the cause.
    """

    id: str
    pattern: str
    match: Literal["substring", "wildcard", "condition"]
    layer: str
    version_mismatch: Literal["yes", "no", "maybe"]
    cause: str
    check: str
    fix: str
    error_code: int | None = None
    other_sources: tuple[str, ...] = ()


class ErrorCode(Row, frozen=True, kw_only=True):
    """A CUDA error code."""

    code: int
    runtime_name: str
    meaning: str
    fix: str
    driver_name: str | None = None


class SymptomFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``cuda-symptoms.json``."""

    symptoms: tuple[Symptom, ...]
    error_codes: tuple[ErrorCode, ...]


@cache
def cuda() -> CudaFacts:
    """Toolkits, families, cuda-compat, driver branches."""
    return msgspec.json.decode((_DATA / "cuda.json").read_bytes(), type=CudaFacts)


@cache
def gpus() -> tuple[GpuRow, ...]:
    """GPU products."""
    return msgspec.json.decode((_DATA / "gpus.json").read_bytes(), type=GpuFacts).gpus


@cache
def images() -> ImageFacts:
    """Image families and their tables."""
    return msgspec.json.decode((_DATA / "images.json").read_bytes(), type=ImageFacts)


@cache
def requirements() -> tuple[PublishedRequirement, ...]:
    """Published requirement values."""
    return msgspec.json.decode((_DATA / "cuda-requirements.json").read_bytes(), type=RequirementFacts).published


@cache
def rocm() -> tuple[RocmRow, ...]:
    """AMD's driver x user-space matrix."""
    return msgspec.json.decode((_DATA / "rocm.json").read_bytes(), type=RocmFacts).matrix


@cache
def symptoms() -> SymptomFacts:
    """Error texts and codes with cause and fix."""
    return msgspec.json.decode((_DATA / "cuda-symptoms.json").read_bytes(), type=SymptomFacts)


@cache
def statement(ident: str) -> Statement:
    """The rule in words called ``ident``."""
    return next(row for row in cuda().statements if row.id == ident)
