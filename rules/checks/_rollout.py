"""How a Deployment replaces its pods, and what they ask for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rules.facts.groups import mapping, whole
from rules.facts.objects import OtherObject, PodSpec
from rules.facts.resources import gpu_requests
from rules.findings import ObjectRef


class Rollout(msgspec.Struct, frozen=True):
    """A rolling update in pods: how many more than ``replicas`` it may start, how many less it may leave running.

    The defaults are 25% each; surge is rounded up, unavailable down, and where both come to 0 one may be unavailable
    (Kubernetes pkg/controller/deployment/util: ResolveFenceposts).
    """

    replicas: int
    surge: int
    unavailable: int


def ref_of(item: OtherObject) -> ObjectRef:
    """Reference to any object."""
    return ObjectRef(item.kind, item.metadata.namespace or "", item.metadata.name)


def rollout_of(deployment: OtherObject) -> Rollout | None:
    """How the Deployment rolls; None when it kills its pods first (``Recreate``) or has none."""
    spec = deployment.spec or {}
    strategy = mapping(spec.get("strategy"))
    replicas = whole(spec.get("replicas", 1))
    if not replicas or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return None
    how = mapping(strategy.get("rollingUpdate"))
    surge = _part(how.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _part(how.get("maxUnavailable", "25%"), replicas, up=False)
    return Rollout(replicas, surge, 1 if surge == unavailable == 0 else unavailable)


def _part(value: object, replicas: int, *, up: bool) -> int:
    share = whole(value.removesuffix("%")) if isinstance(value, str) and value.endswith("%") else None
    if share is None:
        return whole(value) or 0
    return -(-share * replicas // 100) if up else share * replicas // 100


def template_of(item: OtherObject) -> Mapping[str, Any]:
    """The pod template of a workload, as plain data."""
    return mapping((item.spec or {}).get("template"))


def template_spec(item: OtherObject) -> PodSpec:
    """The pod spec of a workload's template; empty where it cannot be read."""
    try:
        return msgspec.convert(mapping(template_of(item).get("spec")), PodSpec)
    except msgspec.ValidationError:
        return PodSpec()


def template_gpus(item: OtherObject) -> Mapping[str, int]:
    """GPUs that one pod of the workload asks for."""
    return gpu_requests(template_spec(item))
