"""``/v1/advise``: is Kubernetes worth it, how many GPUs, which provider, what does it cost, what to check first?"""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, post
from litestar.openapi.spec import Example
from litestar.params import Body

from rules.advice.advise import advise
from rules.advice.model import Choice, Verdict
from rules.advice.report import document
from rules.advice.request import AdviceRequest
from rules.facts.offers_match import Purchase
from service.api.languages import Lang, language_of
from service.api.port import Advisor
from service.api.problems import documented
from service.api.sharing import FileDocument, PlanDocument, SentenceDocument


class ReasonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why Kubernetes (weight above 0) or why not; `seeds` are the statements it rests on."""

    key: str
    weight: int
    seeds: list[str]
    text: str


class ChangeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What would change the verdict, and to what."""

    key: str
    verdict: Verdict
    text: str


class WorthDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Whether Kubernetes is worth it; `score` is the sum of the weights."""

    verdict: Verdict
    score: int
    text: str
    reasons: list[ReasonDocument]
    changes: list[ChangeDocument]


class ControlDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs the control plane."""

    choice: Choice
    text: str
    reasons: list[SentenceDocument]


class DemandDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs that are looked for; `machines` is null where any number will do."""

    gpu: list[str]
    gpus: int
    per_machine: int
    machines: int | None


class WishDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A wish against a provider. `unknown` is not documented, never a no."""

    filter: str
    wanted: str
    verdict: str
    text: str


class RankedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with the price of the cheapest machines that will do.

    Attributes:
        machines: null for a price per GPU in a list. gpus: that are paid.
        fee_usd_month: of the control plane; null where it is not documented (`fee_unknown`) or there is none to pay.
        usd_month: machines and fee as far as known; null without a price.
        doubts: `price_line` (of a GPU in a list), `price_old` (over a year), `price_low` (far below what others ask).
        price_as_of: date of the price; price_read: day on which an undated list was read.
    """

    id: str
    name: str
    machines: int | None
    instance_type: str | None
    gpu_model: str | None
    region: str | None
    purchase: Purchase | None
    gpus: float | None
    usd_hour: float | None
    machines_usd_month: float | None
    fee_usd_month: float | None
    fee_unknown: bool
    usd_month: float | None
    doubts: list[str]
    over_budget_usd: float | None
    price_as_of: str | None
    price_read: str | None
    price_source: str | None
    reasons_for: list[SentenceDocument]
    reasons_against: list[SentenceDocument]
    checks: list[WishDocument]
    not_documented: list[str]


class RuledOutDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that a documented fact rules out."""

    id: str
    name: str
    reasons: list[str]


class BudgetDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The budget against the cheapest provider; `ways` are changes that were worked out to fit."""

    limit_usd_month: float
    best: str | None
    best_usd_month: float | None
    unsure: list[str]
    over_usd_month: float | None
    ways: list[SentenceDocument]


class AdviceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An advice.

    Attributes:
        providers: at most 20 of `found`; those with fewest unknowns first, then the cheapest.
        needs_more: fields without which it stops short; optional: fields that would make it surer.
        simpler: what to do instead of Kubernetes.
        defaults: what was taken because it was not said.
    """

    kubernetes: WorthDocument
    control: ControlDocument
    demand: DemandDocument | None
    sharing: PlanDocument | None
    hours_per_month: float
    providers: list[RankedDocument]
    found: int
    ruled_out: list[RuledOutDocument]
    budget: BudgetDocument | None
    simpler: list[SentenceDocument]
    remarks: list[SentenceDocument]
    checklist: list[SentenceDocument]
    defaults: list[SentenceDocument]
    needs_more: list[str]
    optional: list[str]
    manifests: list[FileDocument]


class ShapeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a cluster that are alike. null is unknown; `usd_hour_now` is of those that have a price."""

    provider: str | None
    gpu: str | None
    gpus: int | None
    memory_gib: float | None
    spot: bool
    sharing: str | None
    nodes: int
    usd_hour_now: float
    unpriced: int
    prices: list[str]


class MachinesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that would take a shape; `machines` is null for a price per GPU in a list."""

    shape: int
    machines: int | None
    instance_type: str | None
    region: str | None
    purchase: Purchase | None
    usd_hour: float | None
    price_as_of: str | None
    price_read: str | None
    price_source: str | None


class PlaceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that would do. `missing` are shapes that it is not known to offer; then there is no total."""

    id: str
    name: str
    usd_month: float | None
    difference_usd_month: float | None
    fee_unknown: bool
    missing: list[int]
    not_documented: list[str]
    doubts: list[str]
    machines: list[MachinesDocument]


class ElsewhereDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and what it would cost elsewhere; `unpriced` GPU nodes are not in `usd_month_now`."""

    cluster: str
    usd_month_now: float | None
    unpriced: int
    managed: bool | None
    rdma: bool
    shapes: list[ShapeDocument]
    places: list[PlaceDocument]
    remarks: list[SentenceDocument]


_EXAMPLES = [
    Example(summary="One notebook", value={"kind": "notebook", "gpu": ["L4"], "hours_per_month": 160}),
    Example(
        summary="A large model behind a service that scales",
        value={
            "kind": "inference",
            "models": [{"name": "llm", "parameters_b": 70, "precision": "fp8", "replicas": 2}],
            "autoscaling": True,
            "region": "eu",
            "budget_usd_month": 6000,
            "team": {"platform_engineers": False},
        },
    ),
    Example(
        summary="Training over four nodes",
        value={"kind": "training", "gpu": ["H100"], "gpus": 8, "nodes": 4, "storage": "shared"},
    ),
]


class AdviceController(Controller):
    """Advice."""

    path = "/v1/advise"
    tags = ("planning",)

    @post(
        status_code=200,
        operation_id="advise",
        summary="Is Kubernetes worth it, and where should this workload run?",
        description=(
            "Weighs whether Kubernetes is worth it and says what would change that; plans GPUs and their sharing; "
            "ranks providers by what is documented of them and by price a month; lists what to check, and gives "
            "manifests to start from. What is not known is asked for (`needs_more`) or stated (`defaults`)."
        ),
        responses=documented(400, 413),
        sync_to_thread=True,
    )
    def advise(
        self,
        request: Request[Any, Any, Any],
        advisor: Advisor,
        data: Annotated[AdviceRequest, Body(title="The workload", examples=_EXAMPLES)],
        lang: Lang = None,
    ) -> AdviceDocument:
        """Advise."""
        found = document(advise(data, advisor.catalog()), language_of(request, lang))
        return msgspec.convert(found, AdviceDocument)
