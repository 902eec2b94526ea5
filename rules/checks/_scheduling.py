"""Why a pod does not fit on a node, worked out from the objects the way the default scheduler filters nodes.

Only what the trimmed objects show is judged: readiness, cordon, taints, node selector, required node affinity, GPU
resources and, where it is known what a node has left, CPU, memory, further resources and the number of pods. Volumes,
spreading and inter-pod rules are left to the scheduler's own message (:mod:`rules.checks._scheduler_message`).
Source: Kubernetes v1.36.2 pkg/scheduler/framework/plugins (nodeunschedulable, tainttoleration, nodeaffinity,
noderesources).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from rules.facts.cluster import GpuResource, NodeFacts, PodFacts
from rules.facts.objects import PodSpec, Taint, Toleration
from rules.facts.resources import all_requests, gpu_name

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
_MAKERS = (("nvidia.com", "nvidia"), ("amd.com", "amd"), ("intel.com", "intel"), ("habana.ai", "habana"))
_SICK = re.compile(
    r"unhealthy|xid|not-ready|unreachable|pressure|out-of-service|problem|quarantine|repair|uninitialized|unregistered"
    r"|karpenter\.sh/disrupt|ToBeDeletedBy|DeletionCandidateOf|impending-|aws-node-termination-handler",
    re.IGNORECASE,
)


class Obstacle(StrEnum):
    """What keeps a pod off a node.

    ``sick`` is a taint that marks a fault of the node, or that it is coming or going, and must not be tolerated;
    ``not_offered`` a resource that this node does not have; ``broken`` one that it should have and does not;
    ``unhealthy`` one of which it has enough, but too few are healthy; ``too_small`` one of which it never has enough;
    ``in_use`` one that other pods hold; ``other_resource`` is a lack of something that is no GPU.
    """

    NOT_READY = "not_ready"
    CORDONED = "cordoned"
    TAINT = "taint"
    SICK = "sick"
    SELECTOR = "selector"
    NOT_OFFERED = "not_offered"
    BROKEN = "broken"
    TOO_SMALL = "too_small"
    UNHEALTHY = "unhealthy"
    IN_USE = "in_use"
    OTHER_RESOURCE = "other_resource"


class Fit(msgspec.Struct, frozen=True):
    """A node as seen by a pod.

    Attributes:
        obstacles: empty when nothing of what is judged here keeps the pod off.
        tolerable, sick: keys of the taints that it does not tolerate: those that it could, and those that mark a fault.
        lacking: resources besides GPUs of which too little is left.
    """

    node: NodeFacts
    obstacles: frozenset[Obstacle]
    tolerable: tuple[str, ...] = ()
    sick: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def fit(
    pod: PodFacts,
    node: NodeFacts,
    rest: Mapping[str, Decimal] | None = None,
    wanted: Mapping[str, Decimal] | None = None,
) -> Fit:
    """What keeps ``pod`` off ``node``. Other resources than GPUs are judged where ``rest``, what the node has left of
    each, is given (:attr:`~rules.facts.model.NodeFacts.left`); ``wanted`` is :func:`beside_gpus` of the pod,
    where it is known already."""
    door, tolerable, sick = at_the_door(pod, node)
    obstacles = {*door, *in_stock(pod, node)}
    if not selects(pod.pod.spec, node.name, node.labels):
        obstacles.add(Obstacle.SELECTOR)
    lacking: tuple[str, ...] = ()
    if rest is not None:
        wanted = beside_gpus(pod) if wanted is None else wanted
        lacking = _lacking(wanted, rest)
        if lacking and Obstacle.IN_USE in obstacles:
            # Who lets go of a GPU lets go of its CPU and memory too: only what lacks even then is one more obstacle.
            lacking = _lacking(wanted, without_holders(node, rest))
    if lacking:
        obstacles.add(Obstacle.OTHER_RESOURCE)
    return Fit(node, frozenset(obstacles), tolerable, sick, lacking)


def at_the_door(pod: PodFacts, node: NodeFacts) -> tuple[frozenset[Obstacle], tuple[str, ...], tuple[str, ...]]:
    """What readiness, cordon and taints put in the way: obstacles, and the keys of taints that the pod could tolerate
    and that mark a fault."""
    obstacles: set[Obstacle] = set()
    taints = untolerated(pod, node)
    if node.ready is not True:
        obstacles.add(Obstacle.NOT_READY)
        taints = tuple(key for key in taints if not key.startswith("node.kubernetes.io/"))
    if node.unschedulable and not _tolerates_cordon(pod):
        obstacles.add(Obstacle.CORDONED)
    sick = tuple(key for key in taints if _SICK.search(key))
    tolerable = tuple(key for key in taints if key not in sick)
    if sick:
        obstacles.add(Obstacle.SICK)
    if tolerable:
        obstacles.add(Obstacle.TAINT)
    return frozenset(obstacles), tolerable, sick


def in_stock(pod: PodFacts, node: NodeFacts) -> frozenset[Obstacle]:
    """What keeps the node from giving the GPUs that the pod requests."""
    missing = (_resource_obstacle(node, name, amount) for name, amount in pod.gpu_requests.items())
    return frozenset(item for item in missing if item)


def without_holders(node: NodeFacts, rest: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """What the node would have left, were the pods gone that request its GPUs."""
    freed = dict(rest)
    for holder in node.pods:
        if holder.gpu_requests and holder.pod.spec:
            for name, amount in {**all_requests(holder.pod.spec), "pods": Decimal(1)}.items():
                freed[name] = freed.get(name, Decimal(0)) + amount
    return freed


_NOTHING = Decimal(0)


def beside_gpus(pod: PodFacts) -> Mapping[str, Decimal]:
    """What the pod asks for besides GPUs, its place among the node's pods included."""
    requests = all_requests(pod.pod.spec) if pod.pod.spec else {}
    return {**{name: amount for name, amount in requests.items() if gpu_name(name) is None}, "pods": Decimal(1)}


def _lacking(wanted: Mapping[str, Decimal], rest: Mapping[str, Decimal]) -> tuple[str, ...]:
    """Resources that the node lists and has too little of; what it does not list may be served by other means."""
    return tuple(name for name, amount in wanted.items() if name in rest and amount > max(rest[name], _NOTHING))


def _resource_obstacle(node: NodeFacts, name: str, wanted: int) -> Obstacle | None:
    resource = resource_of(node, name)
    allocatable = (resource.allocatable or 0) if resource else 0
    if resource is None or allocatable == 0:
        offers_none = all(not item.allocatable for item in node.resources)
        should = node.is_gpu_node and node.vendor in (None, vendor_of(name))
        return Obstacle.BROKEN if should and offers_none else Obstacle.NOT_OFFERED
    if wanted > allocatable:
        return Obstacle.UNHEALTHY if wanted <= (resource.capacity or 0) else Obstacle.TOO_SMALL
    if wanted > allocatable - resource.requested:
        return Obstacle.IN_USE
    return None


def vendor_of(resource: str) -> str | None:
    """The maker of the GPUs that a resource name stands for; None for an unknown name."""
    domain = resource.partition("/")[0]
    return next((maker for end, maker in _MAKERS if domain == end or domain.endswith(f".{end}")), None)


def resource_of(node: NodeFacts, name: str) -> GpuResource | None:
    """The GPU resource called ``name`` that the node lists."""
    return next((item for item in node.resources if item.name == name), None)


def free(node: NodeFacts, name: str) -> int:
    """Units of a GPU resource that no unfinished pod requests; 0 when there are none or the node does not list it."""
    resource = resource_of(node, name)
    if resource is None:
        return 0
    return max(0, (resource.allocatable or 0) - resource.requested)


def untolerated(pod: PodFacts, node: NodeFacts) -> tuple[str, ...]:
    """Keys of NoSchedule and NoExecute taints that the pod does not tolerate, but for the taint of a cordon."""
    spec = pod.pod.spec
    return untolerated_taints(node, (spec.tolerations if spec else None) or [])


def untolerated_taints(node: NodeFacts, tolerations: Sequence[Toleration]) -> tuple[str, ...]:
    """Keys of NoSchedule and NoExecute taints that ``tolerations`` do not cover, but for the taint of a cordon."""
    taints = node.node.spec.taints if node.node.spec else None
    if not taints:
        return ()
    keys = [
        taint.key
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and taint.key != CORDON_TAINT
        and not any(_tolerates(item, taint) for item in tolerations)
    ]
    return tuple(dict.fromkeys(keys))


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == (taint.value or "")


def _tolerates_cordon(pod: PodFacts) -> bool:
    cordon = Taint(key=CORDON_TAINT, effect="NoSchedule")
    spec = pod.pod.spec
    return any(_tolerates(item, cordon) for item in (spec.tolerations if spec else None) or [])


def selects(spec: Any, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a pod spec's nodeSelector and required node affinity admit a node. ``spec`` may be None."""
    if spec is None:
        return True
    for key, value in (spec.nodeSelector or {}).items():
        if labels.get(key) != value:
            return False
    return affinity_admits(spec.affinity, node_name, labels)


def selector_keys(spec: PodSpec) -> tuple[str, ...] | None:
    """Labels that a pod spec's nodeSelector and required node affinity look at; None where a node's name matters too,
    or where the affinity is not written as it should be."""
    keys = set(spec.nodeSelector or ())
    try:
        required = ((spec.affinity or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
        for term in required.get("nodeSelectorTerms") or []:
            if term.get("matchFields"):
                return None
            keys.update(str(item.get("key", "")) for item in term.get("matchExpressions") or [])
    except (AttributeError, TypeError):
        return None
    return tuple(sorted(keys))


def selector_of(pod: PodFacts) -> list[str]:
    """The pod's nodeSelector as ``key=value``, and a word for required node affinity."""
    spec = pod.pod.spec
    if spec is None:
        return []
    chosen = [f"{key}={value}" for key, value in sorted((spec.nodeSelector or {}).items())]
    return [*chosen, "nodeAffinity"] if (spec.affinity or {}).get("nodeAffinity") else chosen


def affinity_admits(affinity: Mapping[str, Any] | None, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether ``nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`` admits a node; terms are alternatives."""
    node_affinity = (affinity or {}).get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED)
    if not required:
        return True
    return any(_term_admits(term, node_name, labels) for term in required.get("nodeSelectorTerms") or [])


def _term_admits(term: Mapping[str, Any], node_name: str, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_matches(item, labels) for item in expressions) and all(
        _matches(item, {"metadata.name": node_name}) for item in fields
    )


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = str(requirement.get("key", "")), requirement.get("operator")
    values = [str(item) for item in requirement.get("values") or []]
    present = labels.get(key)
    match operator:
        case "In":
            return present in values
        case "NotIn":
            return present not in values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
        case "Gt" | "Lt":
            return _compares(present, values, operator)
        case _:
            return False


def _compares(present: str | None, values: Sequence[str], operator: str) -> bool:
    try:
        left, right = int(present or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def demands(pod: PodFacts) -> str:
    """What decides where the pod may run, in short: equal for all pods of one template."""
    spec = pod.pod.spec
    parts: list[Any] = [sorted(pod.gpu_requests.items()), pod.other_gpu_claim]
    if spec:
        parts.append(sorted((name, str(amount)) for name, amount in all_requests(spec).items()))
        parts += [spec.nodeSelector, spec.affinity, spec.tolerations, spec.schedulerName, bool(spec.schedulingGates)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:8]
