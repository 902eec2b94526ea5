"""The advice: Kubernetes or not, who runs it, how many GPUs, where, for how much, and what to check."""

from collections.abc import Iterator

import msgspec

from rules.advice.demand import Sized, sized
from rules.advice.manifests import manifests
from rules.advice.model import Advice, Budget, Choice, Demand, Ranked
from rules.advice.ranking import cheapest, limit_of, rank, wishes
from rules.advice.request import AdviceInvalid, AdviceRequest
from rules.advice.worth import control, worth
from rules.facts.offers import HOURS_PER_MONTH, Catalog, FilterInvalid
from rules.facts.offers_match import known_provider
from rules.sharing.model import Precision, Remark

MOST_SHOWN = 20
_SMALLER: dict[str, Precision] = {"fp32": "fp16", "tf32": "fp16", "fp16": "fp8", "bf16": "fp8", "fp8": "int4"}


def advise(request: AdviceRequest, catalog: Catalog) -> Advice:
    """Advise.

    Raises:
        AdviceInvalid: a value cannot be used; its field is named.
    """
    try:
        return _advise(request, catalog)
    except FilterInvalid as error:
        raise AdviceInvalid(error.filter, str(error)) from error


def _advise(request: AdviceRequest, catalog: Catalog) -> Advice:
    _check_providers(request, catalog)
    hours = request.hours_per_month or HOURS_PER_MONTH
    size = sized(request, catalog, wishes(request))
    verdict = worth(request, size.load)
    run_by = control(request, verdict.verdict)
    # where it depends, plain machines are as good an answer as a managed cluster
    choice: Choice = "none" if verdict.verdict == "depends" and request.managed is None else run_by.choice
    kept, out = _providers(request, catalog, size, choice, hours)
    asked = [*size.needs_more]
    return Advice(
        kubernetes=verdict,
        control=run_by,
        sharing=size.plan,
        demand=size.demand,
        hours_per_month=hours,
        providers=tuple(kept[:MOST_SHOWN]),
        found=len(kept),
        ruled_out=tuple(out),
        budget=_budget(request, catalog, size.demand, kept, choice, hours),
        simpler=() if verdict.verdict == "yes" or (request.nodes or 1) > 1 else tuple(_simpler(request)),
        remarks=(*size.remarks, *_remarks(request, run_by.choice, size.demand, choice)),
        checklist=tuple(_checklist(request, run_by.choice, size)),
        defaults=(*size.defaults, *_defaults(request)),
        needs_more=tuple(asked),
        optional=tuple(_optional(request)),
        manifests=manifests(request, size) if verdict.verdict == "yes" else (),
    )


def _check_providers(request: AdviceRequest, catalog: Catalog) -> None:
    for field in ("providers", "exclude"):
        for index, name in enumerate(getattr(request, field)):
            try:
                known_provider(catalog, name)
            except FilterInvalid as error:
                raise AdviceInvalid(f"{field}[{index}]", str(error)) from error


def _providers(
    request: AdviceRequest, catalog: Catalog, size: Sized, choice: Choice, hours: float
) -> tuple[list[Ranked], list[Ranked]]:
    if size.demand is None or request.edge:
        return [], []
    filters = wishes(request, choice, size.demand, size.plan)
    return rank(request, catalog, filters, size.demand, fee=choice == "managed", hours=hours)


def _budget(
    request: AdviceRequest,
    catalog: Catalog,
    demand: Demand | None,
    kept: list[Ranked],
    choice: Choice,
    hours: float,
) -> Budget | None:
    limit = limit_of(request, hours)
    if limit is None:
        return None
    best = cheapest(kept)
    month = best.usd_month if best else None
    if best is None or month is None or demand is None:
        return Budget(limit_usd_month=limit, best=None, best_usd_month=None, unsure=(), over_usd_month=None, ways=())
    over = month - limit if month > limit else None
    ways = () if over is None else tuple(_ways(request, catalog, best, limit, choice, hours))
    return Budget(
        limit_usd_month=limit,
        best=best.provider.name,
        best_usd_month=month,
        unsure=(*best.unknown, *best.doubts, *(("fee",) if best.fee_unknown else ())),
        over_usd_month=over,
        ways=ways or (() if over is None else (Remark(key="nothing_fits"),)),
    )


def _ways(
    request: AdviceRequest, catalog: Catalog, best: Ranked, limit: float, choice: Choice, hours: float
) -> Iterator[Remark]:
    """Changes of the request, one at a time, each worked out; only those that fit the budget."""
    replace = msgspec.structs.replace
    rest = limit - (best.fee_usd_month or 0.0)
    if best.usd_hour and rest > 0 and request.budget_usd_month is not None:
        enough = int(rest / best.usd_hour)
        if 1 <= enough < hours:
            yield Remark(key="fewer_hours", values={"hours": enough, "provider": best.provider.name})
    changed = []
    if not request.interruptible:
        changed.append(("on_spot", replace(request, interruptible=True)))
    if request.gpu and request.models:
        changed.append(("other_gpu", replace(request, gpu=())))
    smaller = tuple(
        replace(model, precision=_SMALLER.get(model.precision or "", model.precision)) for model in request.models
    )
    if request.kind == "inference" and smaller != request.models:
        changed.append(("smaller_precision", replace(request, models=smaller)))
    if request.region:
        changed.append(("anywhere", replace(request, region=None)))
    for key, other in changed:
        size = sized(other, catalog, wishes(other))
        found = cheapest(_providers(other, catalog, size, choice, hours)[0])
        if found is not None and found.usd_month is not None and found.usd_month <= limit and size.demand:
            gpus = [f"{size.demand.gpus} x {name}" for name in size.demand.gpu]
            yield Remark(key=key, values={"usd": found.usd_month, "provider": found.provider.name, "gpus": gpus})


def _simpler(request: AdviceRequest) -> Iterator[Remark]:
    """What does the same work without Kubernetes (S12)."""
    match request.kind:
        case "notebook":
            yield Remark(key="simple_jupyter")
        case "inference":
            yield Remark(key="simple_endpoint")
        case "batch":
            yield Remark(key="simple_queue")
        case _:
            yield Remark(key="simple_script")
    yield Remark(key="simple_stop")


def _remarks(request: AdviceRequest, choice: Choice, demand: Demand | None, priced_for: Choice) -> Iterator[Remark]:
    if choice == "managed" and priced_for == "none" and demand is not None:
        yield Remark(key="fee_on_top")
    if choice == "own":
        yield Remark(key="own_costs")
    if choice == "existing":
        yield Remark(key="existing_join")
    if request.edge:
        yield Remark(key="edge_runtime")
    if (request.nodes or 1) > 1:
        yield Remark(key="multi_node_needs")
        if request.storage in ("none", "block"):
            yield Remark(key="no_shared_storage")
        if request.kind == "inference":
            yield Remark(key="one_model_many_nodes")
    if request.interruptible:
        yield Remark(key="spot_needs")
    if request.marketplace is False:
        yield Remark(key="marketplace_out")
    if request.latency == "interactive" and request.scale_to_zero:
        yield Remark(key="cold_start")
    if demand is not None:
        yield Remark(key="price_scope")


def _checklist(request: AdviceRequest, choice: Choice, size: Sized) -> Iterator[Remark]:
    """What to verify before committing (S25, S26, S27)."""
    yield Remark(key="check_stock")
    yield Remark(key="check_drivers")
    if choice in ("managed", "own"):
        yield Remark(key="check_plugin")
    if choice == "managed":
        yield Remark(key="check_control_plane")
    if size.load.shared:
        yield Remark(key="check_sharing")
    if (request.nodes or 1) > 1:
        yield Remark(key="check_interconnect")
        yield Remark(key="check_gang")
    if request.storage == "shared" or (request.nodes or 1) > 1:
        yield Remark(key="check_rwx")
    if request.interruptible:
        yield Remark(key="check_spot")
    if request.scale_to_zero or request.autoscaling:
        yield Remark(key="check_scaling")
    if size.demand is not None and request.models:
        yield Remark(key="check_memory")
    yield Remark(key="check_billing")


def _defaults(request: AdviceRequest) -> Iterator[Remark]:
    if request.hours_per_month is None:
        yield Remark(key="default_hours", values={"hours": HOURS_PER_MONTH})
    if request.interruptible is None:
        yield Remark(key="default_on_demand")
    if request.nodes is None and request.kind == "training":
        yield Remark(key="default_nodes")
    if request.parallel is None and request.kind in ("batch", "notebook", "fine-tune"):
        yield Remark(key="default_parallel")
    if not request.gpu and request.models and request.vendor is None:
        yield Remark(key="default_gpu")
    if request.region is None:
        yield Remark(key="default_region")


def _optional(request: AdviceRequest) -> Iterator[str]:
    """Fields that would make the advice surer."""
    team = request.team
    if team.existing_cluster is None:
        yield "team.existing_cluster"
    if team.platform_engineers is None:
        yield "team.platform_engineers"
    if team.kubernetes is None:
        yield "team.kubernetes"
    if request.kind == "inference":
        for name in ("autoscaling", "latency"):
            if getattr(request, name) is None:
                yield name
    if request.kind in ("batch", "training", "fine-tune") and request.interruptible is None:
        yield "interruptible"
    if request.kind in ("training", "batch") and request.storage is None:
        yield "storage"
