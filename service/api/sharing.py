"""``/v1/plan/sharing``: how many GPUs do these models take, and shared how?"""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, post
from litestar.openapi.spec import Example
from litestar.params import Body

from rules.sharing.model import Mode, Objective, SharingRequest
from rules.sharing.plan import plan
from rules.sharing.report import document
from service.api.languages import Lang, language_of
from service.api.problems import documented


class SentenceDocument(msgspec.Struct, frozen=True):
    """A sentence; `key` is its stable name."""

    key: str
    text: str


class PlacedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A replica on a GPU; profile, start and size (in memory slices) are those of its MIG slice."""

    model: str
    replica: int
    need_gib: float
    profile: str | None
    start: int | None
    size: int | None
    room_gib: float | None


class GpuUseDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: what runs on it and what is left."""

    number: int
    gpu: str
    mode: Mode
    shares: int
    placed: list[PlacedDocument]
    free_gib: float
    free_profiles: list[str]


class SizingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One model by itself. null is unknown; `needs_more` names the fields that would tell."""

    name: str
    replicas: int
    weights_gb: float | None
    need_gib: float | None
    minimum_gib: float | None
    estimated: bool | None
    gpu: str | None
    mode: Mode | None
    profile: str | None
    fits: bool | None
    tight: bool | None
    per_gpu: int | None
    gpus_per_replica: int | None
    min_gpus_per_replica: int | None
    gpus: int | None
    min_gpus: int | None
    spare_gib: float | None
    needs_more: list[str]


class AlternativeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Another way that was worked out; `gpus` is null where it cannot be done."""

    gpu: str
    mode: Mode
    gpus: int | None
    optimal: bool
    usd_hour: float | None
    reasons: list[SentenceDocument]


class LayoutDocument(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs that are laid out alike; its name is the value of the node label."""

    name: str
    mode: Mode
    of: str
    gpus: int
    replicas: int | None
    slices: dict[str, int]
    resources: dict[str, str]


class FileDocument(msgspec.Struct, frozen=True):
    """An object to apply."""

    file: str
    yaml: str


class StepDocument(msgspec.Struct, frozen=True):
    """What to do, and the command for it where there is one."""

    key: str
    text: str
    command: str | None


class ConfigurationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What carries the plan out with the GPU Operator."""

    layouts: list[LayoutDocument]
    manifests: list[FileDocument]
    pods: list[FileDocument]
    steps: list[StepDocument]


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A plan.

    Attributes:
        summary: the plan in a few sentences.
        complete: false where something is missing (`needs_more`) or fits nowhere (`unplaced`).
        optimal: no plan within the rules is better; lower_bound: what none goes below (GPUs, or dollars per hour).
        whole_gpus, whole_usd_hour: the same without sharing; saved_gpus, saved_usd_hour: the difference.
        usd_hour: null where the price of a used GPU was not given.
    """

    summary: str
    complete: bool
    gpus: int
    by_gpu: dict[str, int]
    uses: list[GpuUseDocument]
    objective: Objective
    optimal: bool
    lower_bound: float
    whole_gpus: int | None
    usd_hour: float | None
    whole_usd_hour: float | None
    saved_gpus: int | None
    saved_usd_hour: float | None
    sizings: list[SizingDocument]
    needs_more: list[str]
    unplaced: list[str]
    caveats: list[SentenceDocument]
    alternatives: list[AlternativeDocument]
    configuration: ConfigurationDocument


_EXAMPLES = [
    Example(
        summary="Twelve small models on A100",
        value={
            "models": [{"name": "small", "replicas": 12, "memory_gib": 3, "isolation": "fault"}],
            "gpus": ["A100-40GB"],
            "prices": {"A100-40GB": 1.3},
        },
    ),
    Example(
        summary="A large model by its parameters",
        value={"models": [{"name": "llm", "parameters_b": 70, "precision": "fp8"}], "gpus": ["H100"]},
    ),
    Example(
        summary="The cheapest of two GPUs",
        value={
            "models": [{"name": "chat", "replicas": 3, "memory_gib": 18}, {"name": "embed", "memory_gib": 2.5}],
            "gpus": ["L4", "A100-80GB"],
            "prices": {"L4": 0.7, "A100-80GB": 1.9},
            "objective": "cheapest",
        },
    ),
]


class SharingController(Controller):
    """Planning."""

    path = "/v1/plan/sharing"
    tags = ("planning",)

    @post(
        status_code=200,
        operation_id="planSharing",
        summary="How many GPUs do these models take, and shared how?",
        description=(
            "Places models on whole GPUs, MIG slices, MPS parts or time-slices with the fewest GPUs or the lowest "
            "price, proven or with its distance to a lower bound; with the GPU Operator configuration that does it. "
            "What is missing is named in `needs_more`, and the rest is planned."
        ),
        responses=documented(400, 413),
        sync_to_thread=True,
    )
    def plan(
        self,
        request: Request[Any, Any, Any],
        data: Annotated[SharingRequest, Body(title="What is to be planned", examples=_EXAMPLES)],
        lang: Lang = None,
    ) -> PlanDocument:
        """Plan."""
        return msgspec.convert(document(plan(data), language_of(request, lang)), PlanDocument)
