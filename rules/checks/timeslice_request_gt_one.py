"""A pod asks for more than one share of a time-sliced or MPS GPU.

What:
    An unfinished pod on a node that shares its GPUs by time-slicing or MPS requests more than one unit of the shared
    resource; or it waits, and every node that it may use and that offers the resource shares it so.

Why:
    Two shares are no two GPUs and no double time: they may lie on the same card, where multi-GPU programs fail with
    "Duplicate GPU detected". With ``failRequestsGreaterThanOne``, and on GKE always, the node refuses the pod. Medium.

Fix:
    Ask for one share, or use nodes with whole GPUs.

Source:
    seeds S15, S17, S27; NVIDIA/k8s-device-plugin README.md; https://github.com/NVIDIA/NeMo-Retriever/pull/2510;
    GoogleCloudPlatform/container-engine-accelerators pkg/gpu/nvidia/gpusharing/gpusharing.go.

Seeds: S15, S17, S27
"""

from collections.abc import Iterable, Iterator

from rules.checks._kit import found, gpus, names, note, of, owner_of, short
from rules.checks._pending import offers, waiting
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_MODES = ("time-slicing", "mps")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner."""
    owners: dict[ObjectRef, list[tuple[PodFacts, NodeFacts]]] = {}
    for node in facts.gpu_nodes:
        yield node.ref
        for pod in node.pods:
            if node.sharing.mode in _MODES and _shares(pod) > 1:
                owners.setdefault(owner_of(pod), []).append((pod, node))
    for queue in waiting(facts, policy):
        name = queue.resource
        if name is None or _shares(queue.first) < 2:
            continue
        serving = list(_serving(queue.admitted.nodes, name))
        if serving and serving[-1].sharing.mode in _MODES:
            owners.setdefault(owner_of(queue.first), []).extend((pod, serving[0]) for pod in queue.pods)
    for owner, items in sorted(owners.items()):
        pod, node = items[0]
        refused = node.provider == "gcp" and "cloud.google.com/gke-gpu-sharing-strategy" in node.labels
        notes = [note("one_card", card_node=node.name)] if node.physical_gpus == 1 else []
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod, _ in items),
            *(node.ref for _, node in items),
            identity=str(owner),
            notes=[*notes, note("gke")] if refused else notes,
            pod=short(pod.ref),
            pods=of(names(pod.ref for pod, _ in items)),
            shares=of(_shares(pod), "spec.containers[].resources"),
            resource=next(iter(pod.gpu_requests)),
            node=node.name,
            mode=of(node.sharing.mode, node.sharing.source),
            replicas=of(node.sharing.replicas, "nvidia.com/gpu.replicas"),
            gpus=gpus(node.physical_gpus),
        )


def _serving(nodes: Iterable[NodeFacts], resource: str) -> Iterator[NodeFacts]:
    """Nodes that offer the resource, up to the first one that does not share its GPUs."""
    for node in nodes:
        if offers(node, resource):
            yield node
            if node.sharing.mode not in _MODES:
                return


def _shares(pod: PodFacts) -> int:
    """Units of shared or plainly named GPUs that the pod requests; MIG devices are isolated and do not count."""
    amounts = [
        amount
        for name, amount in pod.gpu_requests.items()
        if (known := gpu_name(name)) and known.form in ("device", "shared")
    ]
    return max(amounts, default=0)


RULE = Rule(
    id="timeslice-request-gt-one",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S15", "S17", "S27"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
