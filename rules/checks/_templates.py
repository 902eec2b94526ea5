"""Pod templates of workloads, whatever kind of object holds them.

A pod spec is found by its shape (an object with ``containers`` that name images), so that Deployments, Jobs, Ray
clusters, training jobs, notebooks and custom resources that nobody listed here are all read. Pods whose workload was
not read speak for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.objects import OtherObject, PodSpec
from rules.facts.resources import gpu_name
from rules.findings import ObjectRef

from ._workloads import owners_of_alike

_NO_WORKLOADS = frozenset(
    {"ReplicaSet", "ControllerRevision", "Workload", "PodGroup", "PodTemplate", "ConfigMap", "Machine", "NodePool"}
)
_MAX_DEPTH = 14


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that a workload makes, or will make.

    Attributes:
        active: it has, or wants, pods now: not suspended, and not scaled to zero.
        pods: unfinished pods of it that ask for a GPU.
    """

    ref: ObjectRef
    spec: PodSpec
    active: bool
    pods: tuple[PodFacts, ...]


def templates(facts: ClusterFacts) -> Iterator[Template]:
    """Templates that ask for GPUs, of all workloads that are not finished, sorted by kind and name."""
    pods: dict[ObjectRef, list[PodFacts]] = {}
    tops: dict[ObjectRef, list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        if pod.terminal or pod.is_daemon or not pod.gpu_requests:
            continue
        chain = owners_of_alike(facts, pod) or (pod.ref,)
        tops.setdefault(chain[-1], []).append(pod)
        for ref in chain:
            pods.setdefault(ref, []).append(pod)
    read: set[ObjectRef] = set()
    for kind, items in sorted(facts.others.items()):
        for item in items if kind.partition(".")[0] not in _NO_WORKLOADS else ():
            ref = ObjectRef(item.kind or kind, item.metadata.namespace or "", item.metadata.name)
            if _owned(facts, item) or facts.remember_of(item, "finished", _finished):
                continue
            # Only what asks for a GPU, or has pods that do, is worth a closer look.
            specs = facts.remember_of(item, "pod specs", _every) if ref in tops else ()
            for spec in specs or facts.remember_of(item, "pod specs with GPUs", _with_gpus):
                read.add(ref)
                yield Template(ref=ref, spec=spec, active=_active(item), pods=tuple(pods.get(ref, ())))
    for ref, members in sorted(tops.items()):
        # Pods of a template are alike; where a job has several roles, each is a template of its own.
        if ref not in read and members[0].pod.spec is not None:
            yield Template(ref=ref, spec=members[0].pod.spec, active=True, pods=tuple(members))


def _owned(facts: ClusterFacts, item: OtherObject) -> bool:
    """Whether another object that was read makes this one, and so speaks for it."""
    return any(owner.controller and facts.others.get(owner.kind) for owner in item.metadata.ownerReferences or ())


def _finished(item: OtherObject) -> bool:
    conditions = (item.status or {}).get("conditions")
    ends = ("Complete", "Completed", "Failed", "Succeeded")
    return isinstance(conditions, list) and any(
        isinstance(entry, dict) and entry.get("type") in ends and entry.get("status") == "True" for entry in conditions
    )


def _active(item: OtherObject) -> bool:
    spec = item.spec or {}
    policy = spec.get("runPolicy")
    suspended = spec.get("suspend") or (isinstance(policy, dict) and policy.get("suspend"))
    return not suspended and spec.get("replicas") != 0


def _every(item: OtherObject) -> list[PodSpec]:
    return _specs(item.spec, gpus_only=False)


def _with_gpus(item: OtherObject) -> list[PodSpec]:
    return _specs(item.spec, gpus_only=True)


def _specs(value: Any, *, gpus_only: bool) -> list[PodSpec]:
    """Pod specs somewhere in an object, in its order; with ``gpus_only`` those whose containers name a GPU."""
    found: list[PodSpec] = []
    # Depth first, so that the parts of a branch go before the next branch.
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        current, depth = pending.pop()
        if isinstance(current, dict):
            if _is_pod_spec(current):
                spec = None if gpus_only and not _names_gpu(current) else _convert(current)
                if spec is not None:
                    found.append(spec)
                continue
            inner = [item for item in current.values() if isinstance(item, dict | list)]
        else:
            inner = [item for item in current if isinstance(item, dict | list)] if isinstance(current, list) else []
        if depth < _MAX_DEPTH:
            pending.extend((item, depth + 1) for item in reversed(inner))
    return found


def _is_pod_spec(value: Mapping[str, Any]) -> bool:
    containers = value.get("containers")
    return isinstance(containers, list) and any(isinstance(item, dict) and item.get("image") for item in containers)


def _names_gpu(value: Mapping[str, Any]) -> bool:
    for container in value["containers"]:
        resources = container.get("resources") if isinstance(container, dict) else None
        for field in ("limits", "requests"):
            amounts = resources.get(field) if isinstance(resources, dict) else None
            if isinstance(amounts, dict) and any(isinstance(name, str) and gpu_name(name) for name in amounts):
                return True
    return False


def _convert(value: Mapping[str, Any]) -> PodSpec | None:
    try:
        return msgspec.convert(value, PodSpec)
    except msgspec.ValidationError:
        return None
