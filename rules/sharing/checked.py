"""A request as it can be planned with: every value in range, every name known, or an error that names the field."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from rules.sharing.devices import Device, device, devices
from rules.sharing.errors import PlanInvalid
from rules.sharing.memory import need
from rules.sharing.model import SharingRequest, Workload

MOST_MODELS = 200
MOST_REPLICAS = 2000
MOST_GPUS = 10_000

_POSITIVE = ("memory_gib", "memory_gb", "weights_gb", "parameters_b")
_LIMIT = 1e5


def read(document: Any) -> SharingRequest:
    """A request from plain data (JSON, YAML).

    Raises:
        PlanInvalid: what does not decode; the field is the path to it.
    """
    try:
        return msgspec.convert(document, SharingRequest)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise PlanInvalid(path.strip("`.") or "request", problem) from error


def check(request: SharingRequest) -> tuple[tuple[Device, ...], Mapping[str, float]]:
    """The GPUs of a request, and their prices by name in dollars per hour.

    Raises:
        PlanInvalid: a value that cannot be planned with; the field tells which.
    """
    if not request.models:
        raise PlanInvalid("models", "name at least one model")
    if len(request.models) > MOST_MODELS:
        raise PlanInvalid("models", f"at most {MOST_MODELS} models can be planned at once")
    if not request.gpus:
        raise PlanInvalid("gpus", "name at least one GPU, or any")
    if not request.modes:
        raise PlanInvalid("modes", "name at least one of whole, mig, mps, time-slicing")
    names: set[str] = set()
    for index, workload in enumerate(request.models):
        _check_workload(f"models[{index}]", workload)
        if workload.name in names:
            raise PlanInvalid(f"models[{index}].name", f"{workload.name!r} is the name of another model of the request")
        names.add(workload.name)
    if sum(workload.replicas for workload in request.models) > MOST_REPLICAS:
        raise PlanInvalid("models", f"at most {MOST_REPLICAS} replicas can be planned at once")
    allowed = devices(request.gpus)
    for index, workload in enumerate(request.models):
        if workload.profile is not None and not _has_profile(allowed, workload.profile):
            raise PlanInvalid(f"models[{index}].profile", _no_profile(allowed, workload.profile))
    return allowed, _prices(request.prices)


def _check_workload(field: str, workload: Workload) -> None:
    if not workload.name.strip():
        raise PlanInvalid(f"{field}.name", "give the model a name")
    if workload.replicas < 1:
        raise PlanInvalid(f"{field}.replicas", "must be at least 1")
    for name in _POSITIVE:
        value = getattr(workload, name)
        if value is not None and not (math.isfinite(value) and 0 < value <= _LIMIT):
            raise PlanInvalid(f"{field}.{name}", f"must be above 0 and at most {_LIMIT:.0f}")
    if workload.kv_cache_gib is not None and not (
        math.isfinite(workload.kv_cache_gib) and 0 <= workload.kv_cache_gib <= _LIMIT
    ):
        raise PlanInvalid(f"{field}.kv_cache_gib", "must be 0 or more")
    if workload.load is not None and not 0 <= workload.load <= 1:
        raise PlanInvalid(f"{field}.load", "is a share of one GPU: 0 to 1")
    if workload.kv is not None:
        for name in workload.kv.__struct_fields__:
            value = getattr(workload.kv, name)
            if not (math.isfinite(value) and 0 < value <= 1e9):
                raise PlanInvalid(f"{field}.kv.{name}", "must be above 0")
    try:
        need(workload)
    except PlanInvalid as error:
        raise PlanInvalid(f"{field}.{error.field}", error.problem) from error


def _has_profile(allowed: tuple[Device, ...], name: str) -> bool:
    return any(item.geometry is not None and item.geometry.profile(name) is not None for item in allowed)


def _no_profile(allowed: tuple[Device, ...], name: str) -> str:
    known = sorted(
        {each.name for item in allowed if item.geometry for each in item.geometry.profiles if not each.extra}
    )
    offered = f"they have {', '.join(known[:12])}" if known else "none of them has MIG profiles that are known here"
    return f"no allowed GPU has a profile {name!r}; {offered}"


def _prices(given: Mapping[str, float | None]) -> dict[str, float]:
    prices: dict[str, float] = {}
    for name, price in given.items():
        try:
            known = device(name)
        except PlanInvalid as error:
            raise PlanInvalid(f"prices.{name}", error.problem) from error
        if price is None:
            continue
        if not (math.isfinite(price) and 0 < price <= 10_000):
            raise PlanInvalid(f"prices.{name}", "is in US dollars per GPU-hour: above 0, or null where it is not known")
        prices[known.name] = price
    return prices
