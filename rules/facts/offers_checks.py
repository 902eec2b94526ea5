"""Does a provider meet what is asked? Three answers: it does, it does not, or that is not documented.

That something is absent from a list (a GPU from a price list, a link from the documented interconnects) is never taken
for a no: lists are incomplete. A no needs a documented fact that says so.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from rules.facts.offers import Filters
from rules.facts.providers import Provider

Verdict = Literal["meets", "fails", "unknown"]
Reason = Literal[
    "documented",  # the fact says so
    "self_managed",  # it works, and is yours to set up
    "not_documented",  # nothing was found on it
    "not_listed",  # documented are others only
    "no_data",  # gpu-advisor keeps no such fact of any provider
    "listed",  # price lists show it
    "price",  # decided by a listed price
    "no_price",  # no price is known
]

_UNITS = ("second", "minute", "hour")
_RDMA = frozenset({"infiniband", "roce", "efa", "rdma"})
WITHOUT_DATA = ("compliance", "free_egress", "k8s_version", "nodes", "min_nodes")
"""Filters on which no fact is kept of any provider: they rule nothing out, and that is said."""


class Check(msgspec.Struct, frozen=True):
    """One filter against one provider.

    Attributes:
        filter: its name.
        wanted: the value asked for.
        found: what is documented instead or in detail, for people; None when nothing is.
        fact: the group of facts it rests on (:data:`~rules.facts.providers.GROUPS`); None when it rests on prices.
    """

    filter: str
    wanted: str
    verdict: Verdict
    reason: Reason
    found: str | None = None
    fact: str | None = None


def checks(provider: Provider, filters: Filters) -> Iterator[Check]:
    """The filters that facts of the provider decide; those that prices decide are in
    :mod:`rules.facts.offers_search`."""
    for name, check in _CHECKS.items():
        value = getattr(filters, name)
        if value is not None and value != ():
            yield from check(provider, value)
    for name in WITHOUT_DATA:
        value = getattr(filters, name)
        if value is not None and value not in ((), False):
            yield Check(name, _spelled(value), "unknown", "no_data")


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _yes_no(name: str, group: str, wanted: bool, found: bool | None) -> Check:
    if found is None:
        return Check(name, _spelled(wanted), "unknown", "not_documented", None, group)
    return Check(name, _spelled(wanted), "meets" if found == wanted else "fails", "documented", None, group)


def _managed(provider: Provider, wanted: bool) -> Iterator[Check]:
    mode = provider.kubernetes and provider.kubernetes.mode
    fits = None if mode is None else mode in (("managed", "both") if wanted else ("own", "both"))
    check = _yes_no("managed", "kubernetes", True, fits)
    yield msgspec.structs.replace(check, wanted=_spelled(wanted), found=mode)


def _free_control_plane(provider: Provider, wanted: bool) -> Iterator[Check]:
    plane = provider.control_plane
    fee = plane.fee_usd_hour if plane else None
    free = None if plane is None or fee is None else True if fee == 0 else plane.free_tier
    check = _yes_no("free_control_plane", "control_plane", wanted, free)
    yield msgspec.structs.replace(check, found=None if fee is None else f"{fee:g} USD/h")


def _interconnect(provider: Provider, wanted: str) -> Iterator[Check]:
    links = provider.interconnect.links if provider.interconnect else ()
    kinds = {link.kind for link in links}
    fits = bool(kinds & _RDMA) if wanted == "rdma" else wanted in kinds
    found = ", ".join(link.name for link in links) or None
    if fits:
        yield Check("interconnect", wanted, "meets", "documented", found, "interconnect")
    else:
        yield Check(
            "interconnect", wanted, "unknown", "not_listed" if links else "not_documented", found, "interconnect"
        )


def _sharing(provider: Provider, wanted: str) -> Iterator[Check]:
    support = getattr(provider.sharing, wanted, None) if provider.sharing else None
    match support:
        case "supported":
            yield Check("sharing", wanted, "meets", "documented", support, "sharing")
        case "self_managed":
            yield Check("sharing", wanted, "meets", "self_managed", support, "sharing")
        case "not_supported":
            yield Check("sharing", wanted, "fails", "documented", support, "sharing")
        case _:
            yield Check("sharing", wanted, "unknown", "not_documented", None, "sharing")


def _shared_storage(provider: Provider, wanted: str) -> Iterator[Check]:
    volumes = provider.storage.rwx if provider.storage else None
    found = ", ".join(volumes) if volumes else None
    if volumes is None:
        yield Check("shared_storage", wanted, "unknown", "not_documented", None, "storage")
    elif not volumes:
        yield Check("shared_storage", wanted, "fails", "documented", None, "storage")
    elif wanted.lower() in ("any", "rwx") or any(wanted.lower() in name.lower() for name in volumes):
        yield Check("shared_storage", wanted, "meets", "documented", found, "storage")
    else:
        yield Check("shared_storage", wanted, "unknown", "not_listed", found, "storage")


def _scale_to_zero(provider: Provider, wanted: bool) -> Iterator[Check]:
    fact = provider.scale_to_zero
    yield _yes_no("scale_to_zero", "scale_to_zero", wanted, fact.available if fact else None)


def _billing_unit(provider: Provider, wanted: str) -> Iterator[Check]:
    unit = provider.billing.unit if provider.billing else None
    fits = None if unit is None else _UNITS.index(unit) <= _UNITS.index(wanted)
    check = _yes_no("billing_unit", "billing", True, fits)
    yield msgspec.structs.replace(check, wanted=wanted, found=unit)


def _feature(provider: Provider, wanted: tuple[str, ...]) -> Iterator[Check]:
    for name in wanted:
        yield msgspec.structs.replace(_one_feature(provider, name.lower().replace("-", "_")), filter="feature")


def _one_feature(provider: Provider, name: str) -> Check:
    if name in ("mig", "mps", "time_slicing"):
        return _as(name, next(_sharing(provider, name)))
    if name in ("scale_to_zero", "autoscale_to_zero"):
        return _as(name, next(_scale_to_zero(provider, True)))
    if name in ("managed", "managed_kubernetes"):
        return _as(name, next(_managed(provider, True)))
    if name in ("infiniband", "roce", "rdma", "efa", "nvlink"):
        return _as(name, next(_interconnect(provider, name)))
    if name in ("shared_storage", "rwx"):
        return _as(name, next(_shared_storage(provider, "any")))
    if name in ("drivers_preinstalled", "preinstalled_drivers", "drivers"):
        model = provider.drivers.model if provider.drivers else None
        fits = None if model is None else model in ("preinstalled_image", "gpu_operator_managed")
        return msgspec.structs.replace(_yes_no(name, "drivers", True, fits), wanted=name, found=model)
    if name == "gpu_operator":
        model = provider.drivers.model if provider.drivers else None
        if model in ("gpu_operator_managed", "gpu_operator_self"):
            how: Reason = "documented" if model == "gpu_operator_managed" else "self_managed"
            return Check(name, name, "meets", how, model, "drivers")
        return Check(name, name, "unknown", "not_listed" if model else "not_documented", model, "drivers")
    return _tool(provider, name)


def _tool(provider: Provider, name: str) -> Check:
    training = provider.training
    tools = training.tools if training else ()
    found = ", ".join(tools) or None
    if name in ("gang_scheduling", "gang"):
        if training is None or training.gang is None:
            return Check(name, name, "unknown", "not_documented", found, "training")
        how: Reason = "self_managed" if training.gang == "self_install" else "documented"
        return Check(name, name, "meets", how, found, "training")
    if any(name.replace("_", " ") in tool.lower() for tool in tools):
        return Check(name, name, "meets", "documented", found, "training")
    if name in _TOOLS:
        return Check(name, name, "unknown", "not_listed" if tools else "not_documented", found, "training")
    return Check(name, name, "unknown", "no_data")


_TOOLS = frozenset({"kueue", "volcano", "slurm", "kubeflow", "mpi_operator", "kai", "ray", "kai_scheduler", "sunk"})


def _as(name: str, check: Check) -> Check:
    return msgspec.structs.replace(check, wanted=name)


_CHECKS: dict[str, Callable[..., Iterator[Check]]] = {
    "managed": _managed,
    "free_control_plane": _free_control_plane,
    "interconnect": _interconnect,
    "sharing": _sharing,
    "shared_storage": _shared_storage,
    "scale_to_zero": _scale_to_zero,
    "billing_unit": _billing_unit,
    "feature": _feature,
}
