"""A GPU node waits for minutes while a pod's huge image is pulled.

What:
    A GPU pod is bound to a node and its containers are still being created five minutes after it was placed, its image
    is larger than 10 GB on another node that reports it, and its own node does not hold it yet. Left alone: pods for
    which the kubelet reports another reason (volumes, network, a failed pull), and images whose size nobody reports.

Why:
    The GPUs are reserved and paid for while gigabytes are downloaded and unpacked, on each new node again. With nodes
    that come and go (autoscaling, spot) that is a part of every start.

Fix:
    Make the image smaller, or have it on the node before: image streaming or lazy pulling, a cache in the region,
    a disk image that holds it, a DaemonSet that pulls it.

Source:
    seed S23; Kubernetes documentation, images and kubelet configuration (nodeStatusMaxImages: the kubelet reports the
    50 largest images only).

Seeds: S23
"""

from collections.abc import Iterator

from rules.checks._devices import amounts
from rules.checks._kit import Value, age, cost_of, found, names, of, seconds, short
from rules.checks._workloads import by_workload, nodes_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

HUGE_BYTES = 10_000_000_000
SLOW_SECONDS = 300.0
_CREATING = frozenset({"ContainerCreating", "PodInitializing"})
_GIB = 1024**3
_REMEDY_BY_PROVIDER = {"gcp": "gke", "azure": "aks", "aws": "eks"}


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    waiting = [pod for pod in facts.gpu_pods if _creating(pod) and (_waited(facts, pod) or 0) > SLOW_SECONDS]
    if not waiting:
        return
    sizes = _sizes(facts)
    slow: dict[ObjectRef, tuple[str, int]] = {}
    for pod in waiting:
        yield pod.ref
        node = facts.node(pod.node_name or "")
        if node is None or _other_reason(facts, pod):
            continue
        missing = [
            (image, sizes[image])
            for image in _images(pod)
            if sizes.get(image, 0) > HUGE_BYTES and image not in _held(node)
        ]
        if missing:
            slow[pod.ref] = max(missing, key=lambda pair: pair[1])
    for workload, pods in by_workload(facts, (pod for pod in waiting if pod.ref in slow)).items():
        image, size = slow[pods[0].ref]
        nodes = nodes_of(facts, pods)
        waits = [waited for pod in pods if (waited := _waited(facts, pod)) is not None]
        providers = {node.provider for node in nodes}
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in pods),
            *(node.ref for node in nodes),
            remedy=_REMEDY_BY_PROVIDER.get(str(next(iter(providers), None)), "default"),
            cost=cost_of(nodes[0].price, max(waits)) if len(nodes) == 1 else None,
            identity=str(workload),
            workload=short(workload),
            kind=workload.kind,
            pods=of(names(pod.ref for pod in pods)),
            image=of(image, "spec.containers[].image"),
            size=Value(round(size / _GIB, 1), "GiB", "Node status.images"),
            waited=seconds(max(waits), "condition PodScheduled"),
            nodes=of([node.name for node in nodes]),
            held=of(amounts(pods)),
        )


def _creating(pod: PodFacts) -> bool:
    if pod.node_name is None or pod.phase != "Pending" or not (pod.gpu_requests or pod.dra_devices):
        return False
    statuses = [
        *((pod.pod.status.initContainerStatuses if pod.pod.status else None) or ()),
        *((pod.pod.status.containerStatuses if pod.pod.status else None) or ()),
    ]
    waiting = [item.state.waiting.reason for item in statuses if item.state and item.state.waiting]
    return bool(waiting) and all(reason in _CREATING for reason in waiting)


def _waited(facts: ClusterFacts, pod: PodFacts) -> float | None:
    conditions = (pod.pod.status.conditions if pod.pod.status else None) or ()
    placed = next((item.lastTransitionTime for item in conditions if item.type == "PodScheduled"), None)
    return age(facts, placed or (pod.pod.status.startTime if pod.pod.status else None))


def _other_reason(facts: ClusterFacts, pod: PodFacts) -> bool:
    return any(
        event.type == "Warning" and (event.reason or "") != "FailedScheduling" for event in facts.events_of(pod.ref)
    )


def _sizes(facts: ClusterFacts) -> dict[str, int]:
    return {
        name: image.sizeBytes
        for node in facts.nodes
        for image in (node.node.status.images if node.node.status else None) or ()
        for name in image.names or ()
        if image.sizeBytes
    }


def _held(node: NodeFacts) -> set[str]:
    images = (node.node.status.images if node.node.status else None) or ()
    return {name for image in images for name in image.names or ()}


def _images(pod: PodFacts) -> list[str]:
    spec = pod.pod.spec
    containers = [*((spec.initContainers if spec else None) or ()), *((spec.containers if spec else None) or ())]
    return [item.image for item in containers if item.image]


RULE = Rule(
    id="image-pull-slow",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23",),
    needs=("Node", "Pod", "Event"),
    check=check,
    doc=__doc__ or "",
)
