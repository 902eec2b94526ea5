"""Short words for rule authors: values with units, findings, prices, names of objects.

Everything here is pure. See the docstring of :mod:`rules.checks` for how a rule uses it.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.prices import Price
from rules.findings import Cost, Evidence, Finding, Note, ObjectRef, Severity, Unit, name_list

Plain = str | int | float | bool | list[str] | None


class Value(msgspec.Struct, frozen=True):
    """A value of evidence that is not yet named: its unit and where it was read."""

    value: Plain
    unit: Unit = ""
    source: str | None = None


def of(value: Plain, source: str | None = None) -> Value:
    """A plain word, number or list, with its source."""
    return Value(value, "", source)


def seconds(value: float | None, source: str | None = None) -> Value:
    """A duration in seconds."""
    return Value(None if value is None else int(value), "s", source)


def gpus(value: int | None, source: str | None = None) -> Value:
    """A number of whole GPUs."""
    return Value(value, "GPU", source)


def moment(value: datetime | None, source: str | None = None) -> Value:
    """A point in time."""
    return Value(None if value is None else value.isoformat().replace("+00:00", "Z"), "date", source)


def evidence(values: Mapping[str, Value | Plain]) -> tuple[Evidence, ...]:
    """Named values as evidence, in the order given."""
    return tuple(
        Evidence(name, item.value, item.unit, item.source) if isinstance(item, Value) else Evidence(name, item)
        for name, item in values.items()
    )


def note(key: str, /, **values: Value | Plain) -> Note:
    """One more sentence: a key of the rule's ``notes`` and the values that only this sentence needs."""
    return Note(key, evidence(values))


def found(
    severity: Severity,
    *objects: ObjectRef,
    remedy: str = "default",
    notes: Iterable[Note] = (),
    cost: Cost | None = None,
    identity: str = "",
    **values: Value | Plain,
) -> Finding:
    """A finding about ``objects``, the main one first, that rests on ``values``."""
    return Finding(
        rule="",
        severity=severity,
        objects=tuple(dict.fromkeys(objects)),
        evidence=evidence(values),
        notes=tuple(notes),
        cost=cost,
        remedy=remedy,
        identity=identity,
    )


def cost_of(price: Price | None, running_seconds: float | None) -> Cost | None:
    """What a node costs per hour and has cost over ``running_seconds``; None when its price is unknown."""
    if price is None:
        return None
    so_far = None if running_seconds is None else round(price.usd_hour * running_seconds / 3600, 2)
    return Cost(price.usd_hour, so_far, price.basis, price.as_of, price.source)


def cost_note(cost: Cost | None) -> Note:
    """The sentence about money: ``cost`` with its basis and age, ``cost_open`` when only the rate is known, or
    ``price_unknown``."""
    if cost is None:
        return note("price_unknown")
    rate = Value(cost.usd_hour, "USD/h", cost.source)
    common = {"usd_hour": rate, "price_basis": cost.basis, "price_date": Value(cost.as_of, "date", cost.source)}
    if cost.usd_so_far is None:
        return note("cost_open", **common)
    return note("cost", usd_so_far=Value(cost.usd_so_far, "USD"), **common)


def age(facts: ClusterFacts, since: datetime | None) -> float | None:
    """Seconds from ``since`` to the moment of observation, never negative; None when ``since`` is unknown."""
    return None if since is None else max(0.0, (facts.observed_at - since).total_seconds())


def latest(*moments: datetime | None) -> datetime | None:
    """The latest known one of ``moments``; None when none is known."""
    known = [item for item in moments if item is not None]
    return max(known) if known else None


def ready_since(node: NodeFacts) -> datetime | None:
    """When the node's Ready condition last became what it is."""
    conditions = (node.node.status.conditions or []) if node.node.status else []
    return next((item.lastTransitionTime for item in conditions if item.type == "Ready"), None)


def short(ref: ObjectRef) -> str:
    """``namespace/name``, or the name alone for objects without a namespace."""
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


names = name_list


def tolerations(keys: Iterable[str]) -> str:
    """The ``tolerations`` of a pod template that cover taints with these keys, as YAML in one line."""
    return "[" + ", ".join(f"{{key: {key}, operator: Exists}}" for key in sorted(set(keys))) + "]"


def owner_of(pod: PodFacts) -> ObjectRef:
    """What keeps the pod alive: its controller, or the pod itself when it has none."""
    if pod.controller is None:
        return pod.ref
    return ObjectRef(pod.controller.kind, pod.ref.namespace, pod.controller.name)


def holders(node: NodeFacts) -> tuple[PodFacts, ...]:
    """Pods that keep a GPU of the node busy, or may do so.

    DaemonSet pods come with the node. Device plugins and metric exporters see every GPU through
    ``NVIDIA_VISIBLE_DEVICES`` or an ``adminAccess`` claim and hold none; only a counted request makes one a holder.
    """
    return node.remember(
        "holders", lambda: tuple(pod for pod in node.gpu_pods if pod.gpu_requests or not pod.is_daemon)
    )


_HARDWARE = r"gpu|nvlink|nvswitch|accelerat|rocm|infiniband|^IB"
_BAD_WHEN_TRUE = re.compile(
    rf"xid|^gpu\w*watch$|(?:{_HARDWARE}).*(?:problem|error|unhealthy|missing|lost|fail|fault|down|inactive|flapping|fallen"
    r"|degraded|is-?bad)",
    re.IGNORECASE,
)
_BAD_WHEN_FALSE = re.compile(r"(?:gpu|nvlink|nvswitch|accelerat|rocm).*(?:ready|healthy|ok)$", re.IGNORECASE)


def bad_conditions(node: NodeFacts) -> list[str]:
    """Node conditions by which a health agent says that a GPU, or a link of GPUs, is bad.

    The names are free: agents of EKS and AKS, AMD's and NVIDIA's (NVSentinel: ``GpuThermalWatch``, ``SysLogsXIDError``)
    and people's own rules of node-problem-detector are told by what they name and how. Source:
    aws/eks-node-monitoring-agent pkg/conditions, AKS and GKE documents, ROCm/gpu-operator and NVSentinel documents.
    """
    conditions = (node.node.status.conditions or []) if node.node.status else []
    return [
        item.type
        for item in conditions
        if (item.status == "True" and _BAD_WHEN_TRUE.search(item.type))
        or (item.status == "False" and _BAD_WHEN_FALSE.search(item.type))
    ]
