"""Pods may land on GPU models that they do not want: several models share one resource name.

What:
    Nodes of at least two GPU models offer the same resource, and a GPU pod says nothing that tells them apart: its
    selector, affinity, tolerations and size let it onto more than one model. DaemonSets are left out.

Why:
    A small service takes the most expensive GPU, a large model lands on one with too little memory. Low.

Fix:
    Select the model, its memory or its node group.

Source:
    seeds S18, S25; NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md.

Seeds: S18, S25
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of, owner_of
from rules.checks._scheduling import Obstacle
from rules.checks._views import View, view_of_gpus
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_PASSING = frozenset({Obstacle.IN_USE, Obstacle.CORDONED, Obstacle.UNHEALTHY})


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per GPU resource."""
    models: dict[str, dict[str, list[int]]] = {}
    for place, node in enumerate(facts.gpu_nodes):
        for item in node.resources:
            if item.origin == "kubelet" and item.allocatable and item.form == "device" and node.product and node.ready:
                models.setdefault(item.name, {}).setdefault(node.product, []).append(place)
    for resource, every in sorted(models.items()):
        by_model = {model: _kinds(facts, places, resource) for model, places in every.items()}
        yield facts.gpu_nodes[next(iter(by_model.values()))[0]].ref
        reach = _reach(facts, resource, by_model) if len(by_model) > 1 else []
        pods = [pod for pod, landed in reach if len(landed) > 1]
        if not pods:
            continue
        free_to_land = [pod.ref for pod in pods]
        yield found(
            Severity.LOW,
            *sorted(free_to_land),
            identity=resource,
            notes=_where(facts, pods),
            resource=resource,
            models=of(sorted(by_model)),
            selector=_selector(facts.gpu_nodes[by_model[min(by_model)][0]]),
            pods=of(names(free_to_land)),
        )


_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/model",
    "node.kubernetes.io/instance-type",
)


def _selector(node: NodeFacts) -> str:
    """A label of the node that names its model, as a nodeSelector."""
    key = next((label for label in _LABELS if node.labels.get(label)), "kubernetes.io/hostname")
    return f"{key}: {node.labels.get(key, node.name)}"


def _kinds(facts: ClusterFacts, places: list[int], resource: str) -> list[int]:
    """One node of each kind: a pod that only its hostname would lead elsewhere is bound to one node anyway."""
    kinds: dict[tuple[object, ...], int] = {}
    for place in places:
        node = facts.gpu_nodes[place]
        taints = (node.node.spec.taints if node.node.spec else None) or []
        offered = next((item.capacity for item in node.resources if item.name == resource), None)
        hard = tuple(sorted((taint.key, taint.value or "", taint.effect) for taint in taints))
        kinds.setdefault((node.pool, node.instance_type, node.zone, node.spot, offered, hard), place)
    return list(kinds.values())


def _reach(facts: ClusterFacts, resource: str, by_model: dict[str, list[int]]) -> list[tuple[PodFacts, set[str]]]:
    """Models that each pod may land on."""
    model_at = {place: model for model, places in by_model.items() for place in places}
    seen: dict[tuple[object, ...], set[str]] = {}
    landing: dict[View, set[str]] = {}
    reach = []
    for pod in facts.gpu_pods:
        if resource not in pod.gpu_requests or pod.terminal or pod.is_daemon:
            continue
        template = (owner_of(pod), *sorted(pod.gpu_requests.items()))
        if template not in seen:
            view = view_of_gpus(facts, pod)
            if view not in landing:
                able = view.where(lambda group: group.obstacles <= _PASSING)
                landing[view] = {model_at[place] for place in able.places if place in model_at}
            seen[template] = landing[view]
        reach.append((pod, seen[template]))
    return reach


def _where(facts: ClusterFacts, pods: list[PodFacts]) -> Iterator[Note]:
    at: dict[str, int] = {}
    for pod in pods:
        node = facts.node(pod.node_name or "")
        if node and node.product:
            at[node.product] = at.get(node.product, 0) + 1
    if at:
        yield note("now", now=[f"{model}: {count}" for model, count in sorted(at.items())])


RULE = Rule(
    id="capability-mismatch",
    family="scheduling",
    severity=Severity.LOW,
    seeds=("S18", "S25"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
