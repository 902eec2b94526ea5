"""How many GPUs of which kind: by the sharing planner where models tell their memory, else as the request states."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

import msgspec

from rules.advice.doubt import Usual, a_year_before_the_newest, usual
from rules.advice.model import Demand
from rules.advice.request import AdviceInvalid, AdviceRequest
from rules.advice.worth import Load
from rules.compat.versions import key
from rules.facts.offers import BUNDLED_RATE, Catalog, FilterInvalid, Filters, gpu_asked
from rules.facts.offers_match import Asked, PricedOffer
from rules.sharing.devices import Device, any_device, device
from rules.sharing.errors import PlanInvalid
from rules.sharing.memory import need
from rules.sharing.model import Isolation, Remark, SharingPlan, SharingRequest, Task, Workload
from rules.sharing.plan import plan

_ARM = frozenset({"gh200", "gb200", "gb300", "t4g"})
_FORMATS = {"bf16": "8.0", "tf32": "8.0", "fp8": "8.9", "fp4": "10.0"}
_AMD = ("MI210", "MI250", "MI300X", "MI325X", "MI350X", "MI355X")


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """What the request comes to.

    Attributes:
        words: names of GPUs as a search takes them; the price of any of them will do.
    """

    plan: SharingPlan | None
    demand: Demand | None
    load: Load
    needs_more: tuple[str, ...]
    defaults: tuple[Remark, ...]
    remarks: tuple[Remark, ...] = ()


def sized(request: AdviceRequest, catalog: Catalog, filters: Filters) -> Sized:
    """Size a request.

    Args:
        filters: of the providers that may be used; their prices decide which GPU is cheapest.

    Raises:
        AdviceInvalid: a value that cannot be planned with; its field is named.
    """
    kinds = _named(request)
    parallel = request.parallel or 1
    if not request.models:
        return _stated(request, kinds, parallel)
    models, defaults = _workloads(request, parallel)
    workloads = sum(model.replicas for model in models)
    prices = _prices(catalog, filters, kinds or _candidates(request))
    candidates = tuple(kinds) if kinds else tuple(prices)
    found = _plan(models, candidates, prices)
    shared = any(use.mode != "whole" for use in found.uses)
    needs = tuple(name for name in found.needs_more if name != "prices")
    if not found.gpus or needs or found.unplaced:
        said = (Remark(key="unplaced", values={"models": list(found.unplaced)}),) if found.unplaced else ()
        return Sized(
            plan=found,
            demand=None,
            load=Load(workloads, None, shared),
            needs_more=needs,
            defaults=defaults,
            remarks=said,
        )
    (name,) = found.by_gpu
    asked = (request.gpus or 1) * (request.nodes or 1) * parallel
    remarks = list(_against_stated(request, found, asked))
    per_machine = max([request.gpus or 1, *(each.gpus_per_replica or 1 for each in found.sizings)])
    demand = Demand(
        gpu=(kinds[name],) if kinds else (_word(name),),
        gpus=max(found.gpus, asked),
        per_machine=per_machine,
        machines=(request.nodes or 1) * parallel if (request.nodes or 1) > 1 else None,
    )
    return Sized(
        plan=found,
        demand=demand,
        load=Load(workloads, demand.gpus, shared),
        needs_more=(),
        defaults=defaults,
        remarks=tuple(remarks),
    )


def _against_stated(request: AdviceRequest, found: SharingPlan, asked: int) -> Iterator[Remark]:
    stated = request.gpus is not None or request.nodes is not None
    if stated and found.gpus > asked:
        yield Remark(key="stated_too_few", values={"asked": asked, "gpus": found.gpus})
    elif stated and found.gpus < asked:
        yield Remark(key="stated_more", values={"asked": asked, "gpus": found.gpus})


def _stated(request: AdviceRequest, kinds: Mapping[str, str], parallel: int) -> Sized:
    """Without models the numbers of the request are taken as they are."""
    defaults = []
    if request.gpus is None:
        defaults.append(Remark(key="default_gpus"))
    gpus, nodes = request.gpus or 1, request.nodes or 1
    load = Load(parallel, gpus * nodes * parallel)
    if not kinds and request.vendor is None:
        return Sized(plan=None, demand=None, load=load, needs_more=("models", "gpu"), defaults=tuple(defaults))
    demand = Demand(
        gpu=tuple(kinds.values()),
        gpus=gpus * nodes * parallel,
        per_machine=gpus,
        machines=nodes * parallel if nodes > 1 else None,
    )
    return Sized(plan=None, demand=demand, load=load, needs_more=(), defaults=tuple(defaults))


def _named(request: AdviceRequest) -> dict[str, str]:
    """Names of the planner -> names as they were asked for."""
    found: dict[str, str] = {}
    for index, name in enumerate(request.gpu):
        try:
            kind = device(name)
            gpu_asked(name)
        except (PlanInvalid, FilterInvalid) as error:
            problem = error.problem if isinstance(error, PlanInvalid) else str(error)
            raise AdviceInvalid(f"gpu[{index}]", problem) from error
        found.setdefault(kind.name, name)
    return found


def _workloads(request: AdviceRequest, parallel: int) -> tuple[tuple[Workload, ...], tuple[Remark, ...]]:
    """The models with what the request says of all of them."""
    defaults: list[Remark] = []
    kinds: dict[str, Task] = {"fine-tune": "lora", "training": "training"}
    task = kinds.get(request.kind)
    changed = []
    for model in request.models:
        isolation: Isolation = (
            model.isolation if model.isolation != "none" else request.isolation or _isolation(request)
        )
        changed.append(
            msgspec.structs.replace(
                model,
                replicas=model.replicas * parallel,
                task=task if task and model.task == "inference" else model.task,
                isolation=isolation,
                latency_sensitive=model.latency_sensitive or request.latency == "interactive",
            )
        )
    if task == "lora" and any(model.task == "inference" for model in request.models):
        defaults.append(Remark(key="default_lora"))
    if request.isolation is None and _isolation(request) != "none":
        defaults.append(Remark(key="default_isolation"))
    return tuple(changed), tuple(defaults)


def _isolation(request: AdviceRequest) -> Isolation:
    return "fault" if (request.tenants or 1) > 1 else "none"


def _candidates(request: AdviceRequest) -> dict[str, str]:
    """One kind per model that lists tell apart, the one with least memory: the others hold no less."""
    kinds = [device(name) for name in _AMD] if request.vendor == "amd" else _nvidia()
    return {kind.name: _word(kind.name) for kind in kinds if _can(kind, request.models)}


@cache
def _nvidia() -> tuple[Device, ...]:
    least: dict[str, Device] = {}
    for kind in any_device():
        try:
            model = gpu_asked(_word(kind.name)).model
        except FilterInvalid:
            continue
        if model not in _ARM and (model not in least or kind.memory_gib < least[model].memory_gib):
            least[model] = kind
    return tuple(least.values())


def _can(kind: Device, models: tuple[Workload, ...]) -> bool:
    """Whether the hardware has the number formats: bf16 from Ampere, fp8 from Ada and Hopper, fp4 from Blackwell on."""
    capability = min((key(row.compute_capability) for row in kind.rows if row.compute_capability), default=None)
    if capability is None:
        return True
    return all(capability >= key(_FORMATS[model.precision]) for model in models if model.precision in _FORMATS)


def _word(name: str) -> str:
    return name.replace("-", " ")


def _prices(catalog: Catalog, filters: Filters, kinds: Mapping[str, str]) -> dict[str, float]:
    """Lowest price per GPU-hour of each kind among machines that may be used; of those that lists are sure of, where
    there are any. Kinds without a price are left out."""
    asked = Asked(catalog, filters, BUNDLED_RATE)
    of_model: dict[str, list[PricedOffer]] = {}
    for provider in asked.providers():
        for offer in asked.fitting(provider.id)[0]:
            model = _model(offer.offer.gpu_model)
            if model and offer.usd_gpu_hour and (offer.offer.gpu_count or 0) >= 1:
                of_model.setdefault(model, []).append(offer)
    since = a_year_before_the_newest(catalog)
    prices = {}
    for name, word in kinds.items():
        model = gpu_asked(word).model
        of_kind = of_model.get(model) or of_model.get(gpu_asked(_word(name)).model)
        if of_kind:
            prices[name] = _lowest(of_kind, usual(of_kind, since))
    return prices


def _lowest(offers: list[PricedOffer], known: Usual) -> float:
    doubtful = [(len(one.unknown) + len(list(known.doubts(one))), one.usd_gpu_hour or 0.0) for one in offers]
    return min((doubts > 0, price) for doubts, price in doubtful)[1]


@lru_cache(maxsize=1024)
def _model(name: str) -> str | None:
    try:
        return gpu_asked(name).model
    except FilterInvalid:
        return None


def _plan(models: tuple[Workload, ...], kinds: tuple[str, ...], prices: Mapping[str, float]) -> SharingPlan:
    """The cheapest plan on one kind of GPU: machines of two kinds are two pools to run.

    Kinds are tried in the order of what they cost at least, until that is more than the best plan costs.
    """
    needs = [need(model) for model in models] if _usable(models) else []
    total = sum(each.memory_gib * model.replicas for each, model in zip(needs, models, strict=False) if each)
    bounds = sorted(
        (prices[name] * max(1.0, total / device(name).memory_gib), name) for name in kinds if name in prices
    )
    best: SharingPlan | None = None
    refused: AdviceInvalid | None = None
    for bound, name in bounds:
        if best is not None and best.complete and bound >= (best.usd_hour or 0):
            break
        try:
            found = _planned(models, (name,), prices)
        except AdviceInvalid as error:
            if not error.field.endswith(".profile"):
                raise
            refused = error
            continue
        if best is None or _worse(best) > _worse(found):
            best = found
        if found.needs_more:
            break
    if best is None and refused is not None:
        raise refused
    return best or _planned(models, kinds[:1] or ("any",), {})


def _worse(found: SharingPlan) -> tuple[bool, float, int]:
    return (not found.complete, found.usd_hour or 0.0, found.gpus)


def _usable(models: tuple[Workload, ...]) -> bool:
    """Whether the memory can be asked of all; the planner says what is wrong of those where it cannot."""
    return all(model.memory_gib is None or model.memory_gb is None for model in models)


def _planned(models: tuple[Workload, ...], kinds: tuple[str, ...], prices: Mapping[str, float]) -> SharingPlan:
    request = SharingRequest(
        models=models,
        gpus=kinds,
        prices={name: prices[name] for name in kinds if name in prices},
        objective="cheapest" if all(name in prices for name in kinds) else "fewest",
    )
    try:
        return plan(request)
    except PlanInvalid as error:
        raise AdviceInvalid(error.field.replace("gpus", "gpu"), error.problem) from error
