"""``/v1/compat``: would this image run on that driver and GPU?"""

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from litestar import Controller, Request, post
from litestar.openapi.spec import Example
from litestar.params import Body

from rules.compat.nvidia import VerdictName
from rules.compat.report import document, judge
from rules.language import Language
from service.api.languages import Lang, language_of
from service.api.problems import documented
from service.clock import utc_now

MAX_CASES = 500

Words = Annotated[str, msgspec.Meta(max_length=1000)]
Version = Words | int | float
"""YAML and people write 12.8 as a number."""


class CompatCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What would run where. At least the software (`cuda`, `image` or `image_config`) and the `driver` are needed for
    more than `unknown`; a missing value is not known, never a default.

    Attributes:
        id: given back with the verdict.
        driver: of the node: 535.183.01, 535; of AMD 6.3.2, 30.10.
        cuda: version of the software: 12.8, cu128, 12.4.1, 12; of ROCm where the GPU is of AMD.
        image: reference; its tag tells the version.
        image_config: the OCI image configuration, as the registry keeps it; it decides over the tag.
        gpu: any name of the GPU: h100, NVIDIA-A100-SXM4-80GB, mi300x.
        vendor: maker of the GPU (nvidia, amd ...) where no GPU is named.
        compute_capability, family: what the node's labels say of a GPU whose name is not known.
        driver_cuda: "CUDA Version" of nvidia-smi, where the driver itself is not known.
        mig: the GPU is, or shall be, cut by MIG.
        kernel_modules: flavour of the driver.
        arch: CPU architecture of the node.
    """

    id: Words | int | None = None
    driver: Version | None = None
    cuda: Version | None = None
    image: Words | None = None
    image_config: dict[str, Any] | None = None
    gpu: Words | None = None
    vendor: Words | None = None
    compute_capability: Version | None = None
    family: Words | None = None
    driver_cuda: Version | None = None
    mig: bool | None = None
    kernel_modules: Literal["open", "proprietary"] | None = None
    arch: Literal["amd64", "arm64"] | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in _FACTS):
            raise ValueError("a case needs at least one of driver, cuda, image, image_config or gpu")


_FACTS = ("driver", "cuda", "image", "image_config", "gpu", "driver_cuda", "compute_capability")


class CompatRequest(CompatCase, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case, or up to 500 of them under `cases`.

    Attributes:
        cases: judged in this order; nothing else may stand beside them.
    """

    cases: Annotated[list[CompatCase], msgspec.Meta(min_length=1, max_length=MAX_CASES)] | None = None

    def __post_init__(self) -> None:
        if self.cases is None:
            super().__post_init__()
            return
        beside = [name for name in CompatCase.__struct_fields__ if getattr(self, name) is not None]
        if beside:
            raise ValueError(f"a request has either `cases` or one case, not both; it also holds {', '.join(beside)}")


class ReasonDocument(msgspec.Struct, frozen=True):
    """One sentence of a verdict, and where its fact is from. `key` is a stable name of the sentence."""

    key: str
    text: str
    source: str | None
    as_of: str | None


class ImageDocument(msgspec.Struct, frozen=True):
    """What was read from the image. `how` says by what, or why nothing could be."""

    cuda: str | None
    rocm: str | None
    platform: str
    family: str | None
    how: str
    precision: str | None


class VerdictDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it runs.

    Attributes:
        id: of the case, null where it had none.
        verdict: ok: the driver meets the toolkit's own minimum. ok_minor_compat: only the floor of its family.
            needs_forward_compat: only with cuda-compat in the image. driver_too_old: only a newer driver or an older
            image helps. arch_unsupported: GPU and software, or GPU and driver branch, do not fit. unknown: a fact that
            decides is missing.
        summary: the verdict in words.
        reasons: what it rests on, the deciding one first.
        cuda, rocm, driver, gpu: as they were read.
        min_driver: from here on the verdict is ok; floor_driver: from here on it is ok_minor_compat.
        warnings: what to know besides; they never change the verdict.
    """

    id: str | int | None = None
    verdict: VerdictName
    summary: str
    reasons: list[ReasonDocument]
    cuda: str | None
    rocm: str | None
    driver: str | None
    gpu: str | None
    min_driver: str | None
    floor_driver: str | None
    image: ImageDocument | None
    warnings: list[ReasonDocument]


class VerdictList(msgspec.Struct, frozen=True):
    """A verdict per case, in the order of the request."""

    items: list[VerdictDocument]


_EXAMPLES = [
    Example(
        summary="An image on a driver and a GPU",
        value={"driver": "535.183.01", "image": "nvidia/cuda:12.8.1-base-ubuntu22.04", "gpu": "L4"},
    ),
    Example(summary="A CUDA version", value={"driver": "525.60.13", "cuda": "12.0", "gpu": "A100"}),
    Example(summary="ROCm", value={"driver": "6.3.1", "cuda": "6.4", "vendor": "amd"}),
    Example(
        summary="Several cases",
        value={
            "cases": [
                {"id": "trainer", "driver": "470.82.01", "image": "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"},
                {"id": "server", "driver": "580.95.05", "cuda": "13.0", "gpu": "V100"},
            ]
        },
    ),
]


class CompatController(Controller):
    """Compatibility."""

    path = "/v1/compat"
    tags = ("compatibility",)

    @post(
        status_code=200,
        operation_id="checkCompatibility",
        summary="Would this image run there?",
        description=(
            "Judges CUDA (or ROCm) of the software against the driver and the GPU, with the rows of NVIDIA's and AMD's "
            "tables that decide. One case gives one verdict, as `gpu-advisor compat --format json` prints it; "
            "`cases` give `items`. A case whose values cannot be read is no error but `unknown`."
        ),
        responses=documented(400, 413),
        sync_to_thread=True,
    )
    def check(
        self,
        request: Request[Any, Any, Any],
        data: Annotated[CompatRequest, Body(title="Cases", examples=_EXAMPLES)],
        lang: Lang = None,
    ) -> VerdictDocument | VerdictList:
        """Judge one case or several."""
        language, today = language_of(request, lang), utc_now().date()
        if data.cases is None:
            return _verdict(data, language, today)
        return VerdictList([_verdict(case, language, today) for case in data.cases])


def _verdict(case: CompatCase, language: Language, today: date) -> VerdictDocument:
    verdict = judge(msgspec.structs.asdict(case), today=today)
    return msgspec.convert({"id": case.id, **document(verdict, language)}, VerdictDocument)
