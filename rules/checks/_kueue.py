"""Kueue's objects: what Workloads ask for, how they stand, and what queues may give out.

Source: kubernetes-sigs/kueue apis/kueue/v1beta1 and v1beta2 (workload_types.go, clusterqueue_types.go).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.groups import mapping, whole
from rules.facts.kinds import group_of
from rules.facts.objects import OtherObject, PodSpec
from rules.facts.resources import count, gpu_name, gpu_requests
from rules.findings import ObjectRef

GROUP = "kueue.x-k8s.io"


class Condition(NamedTuple):
    """A condition of a Workload."""

    status: str
    reason: str
    message: str
    since: str | None


def is_kueue(item: OtherObject) -> bool:
    """Whether the object is Kueue's: Kubernetes itself has a kind Workload as well."""
    return group_of(item.apiVersion) == GROUP


def condition(item: OtherObject, kind: str, status: str | None = None) -> Condition | None:
    """The condition of a type; None when it is not set, or not as ``status`` wants it."""
    for entry in mapping(item.status).get("conditions") or []:
        values = mapping(entry)
        if values.get("type") == kind and status in (None, values.get("status")):
            since = values.get("lastTransitionTime")
            text = [str(values.get(key) or "") for key in ("status", "reason", "message")]
            return Condition(text[0], text[1], text[2], since if isinstance(since, str) else None)
    return None


def gpus_asked(item: OtherObject) -> dict[str, int]:
    """GPUs that all pod sets of a Workload ask for."""
    total: dict[str, int] = {}
    for pod_set in mapping(item.spec).get("podSets") or []:
        replicas = whole(mapping(pod_set).get("count", 1)) or 0
        spec = mapping(mapping(mapping(pod_set).get("template")).get("spec"))
        try:
            each = gpu_requests(msgspec.convert(spec, PodSpec))
        except msgspec.ValidationError:
            continue
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount * replicas
    return total


def owner_of_workload(item: OtherObject) -> ObjectRef | None:
    """The job (or pod) behind a Workload."""
    owners = item.metadata.ownerReferences or []
    owner = next((own for own in owners if own.controller), owners[0] if owners else None)
    return ObjectRef(owner.kind, item.metadata.namespace or "", owner.name) if owner else None


def pods_of_workload(facts: ClusterFacts, item: OtherObject) -> list[PodFacts]:
    """Pods of the job behind a Workload that are not finished."""
    owner = owner_of_workload(item)
    if owner is None:
        return []
    members = [pod for group in facts.workload_groups if group.ref == owner for pod in group.pods]
    direct = facts.remember("unfinished pods by controller", lambda: _by_controller(facts)).get(owner, [])
    itself = facts.pod(owner.namespace, owner.name) if owner.kind == "Pod" else None
    if itself is not None and not itself.terminal:
        direct = [itself, *direct]
    return list({pod.ref: pod for pod in (*members, *direct)}.values())


def _by_controller(facts: ClusterFacts) -> dict[ObjectRef, list[PodFacts]]:
    found: dict[tuple[str, str, str], list[PodFacts]] = {}
    for pod in facts.pods:
        if pod.controller is not None and not pod.terminal:
            mark = (pod.controller.kind, pod.ref.namespace, pod.controller.name)
            found.setdefault(mark, []).append(pod)
    return {ObjectRef(*mark): pods for mark, pods in found.items()}


class Quota(NamedTuple):
    """What queues may give out of a GPU resource of one flavor."""

    queue: str
    flavor: str
    resource: str
    amount: int


def quotas(facts: ClusterFacts) -> Iterator[Quota]:
    """Nominal GPU quotas of all ClusterQueues."""
    for item in facts.of_kind("ClusterQueue", GROUP):
        for group in mapping(item.spec).get("resourceGroups") or []:
            for flavor in mapping(group).get("flavors") or []:
                for resource in mapping(flavor).get("resources") or []:
                    values: Mapping[str, Any] = mapping(resource)
                    name, amount = str(values.get("name")), count(values.get("nominalQuota"))
                    if gpu_name(name) and amount is not None:
                        yield Quota(item.metadata.name, str(mapping(flavor).get("name")), name, amount)


def nodes_of_flavor(facts: ClusterFacts, flavor: str) -> list[NodeFacts] | None:
    """Nodes that a ResourceFlavor stands for; None when it was not read."""
    for item in facts.of_kind("ResourceFlavor", GROUP):
        if item.metadata.name == flavor:
            labels = mapping(mapping(item.spec).get("nodeLabels"))
            return [node for node in facts.nodes if all(node.labels.get(key) == labels[key] for key in labels)]
    return None
