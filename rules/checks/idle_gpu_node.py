"""A GPU node is ready and advertises GPUs, and no pod holds one.

What:
    The node is Ready, older than the grace period, has allocatable GPUs, and no unfinished pod on it holds a GPU by
    any way that the API shows: whole GPUs, MIG devices, shared replicas, partitions, DRA claims, fraction annotations
    or ``NVIDIA_VISIBLE_DEVICES`` without a request. A node with one used share is not idle, nor is one with a device
    that a claim keeps allocated. Nodes that are being removed, or that a pod is about to take (nominated, or a young
    pending GPU pod that fits), are left alone.

Why:
    GPU nodes are paid whether pods use them or not, and nothing in the cluster complains about an empty one. The
    finding is certain about allocation only: a process that bypasses the scheduler does not show in the API, and pods
    that were deleted leave no trace, so the idle time (since creation or since the last GPU pod that is still listed
    ended) and the cost are upper bounds. High from 10 USD per hour on (in late 2026 about the list price from which
    nodes have eight data-centre GPUs), else medium.

Fix:
    Let the pool scale to zero, or remove the node; first move the CPU pods that keep it. What else keeps it (a minimum
    of its group, a disruption budget, a setting of its pool) is named. This finding carries the node's money; rules
    that explain why the node stays carry none.

Source:
    seeds S23, S24; Kubernetes v1.36.2 pkg/scheduler/framework (what counts as requested); cluster-autoscaler 1.36.1
    utils/drain (what keeps a node) and cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler;
    karpenter.sh/docs/concepts/disruption.

Seeds: S23, S24
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain

from rules.checks._karpenter import stuck_startup_taints
from rules.checks._kit import age, cost_note, cost_of, found, gpus, holders, latest, moment, names, note, of, seconds
from rules.checks._nodes import kept_by
from rules.checks._scheduling import Obstacle, demands
from rules.checks._views import view_of
from rules.compat import image_cuda
from rules.engine import Root, Rule, Symptom
from rules.facts import marks
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.scale_down import movable
from rules.findings import Cost, Finding, Note, ObjectRef, Severity
from rules.policy import Policy

EXPENSIVE_USD_HOUR = 10.0
_LEAVING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
_KEEP_NODE = {
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
    "karpenter.sh/do-not-disrupt": "true",
}
_TOLD = ("do_not_disrupt_node", "scale_down_disabled")
_REMEDY_BY_PROVIDER = {
    "aws": "aws",
    "gcp": "gke",
    "azure": "aks",
    "oci": "oke",
    "digitalocean": "doks",
    "coreweave": "coreweave",
}


class _Waits:
    """Pods that wait for a GPU, and what keeps them off each GPU node that nobody uses, by the node's position.

    Attributes:
        fitting: pods that nothing keeps off.
        only_tainted: nodes off which nothing but a taint keeps some of them.
    """

    def __init__(self, facts: ClusterFacts) -> None:
        alike: dict[str, list[PodFacts]] = {}
        for pod in facts.pending_gpu_pods:
            alike.setdefault(demands(pod), []).append(pod)
        unused = {place for place, node in enumerate(facts.gpu_nodes) if not holders(node)}
        self._refs = [pod.ref for pods in alike.values() for pod in pods]
        self.fitting: dict[int, list[PodFacts]] = {}
        self.only_tainted: set[int] = set()
        self._kinds: dict[int, set[frozenset[Obstacle]]] = {}
        for pods in alike.values():
            for group in view_of(facts, pods[0]).groups:
                here = unused.intersection(group.places)
                if not group.obstacles:
                    for place in here:
                        self.fitting.setdefault(place, []).extend(pods)
                elif group.obstacles == {Obstacle.TAINT}:
                    self.only_tainted |= here
                for place in here:
                    self._kinds.setdefault(place, set()).add(group.obstacles)

    def elsewhere(self, place: int) -> Note | None:
        """What keeps them all off a node; None where none waits."""
        if not self._refs:
            return None
        kinds = frozenset(chain.from_iterable(self._kinds.get(place, ())))
        return note("pending_elsewhere", waiting=self._names, obstacles=sorted(map(str, kinds)))

    @cached_property
    def _names(self) -> list[str]:
        return names(self._refs)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | Symptom | ObjectRef]:
    """Yield one finding per idle node; a symptom where a startup taint still keeps its pods off."""
    nominated = {pod.pod.status.nominatedNodeName for pod in facts.marked(marks.NOMINATED) if pod.pod.status}
    for place, node in enumerate(facts.gpu_nodes):
        yield node.ref
        offered = [item for item in node.resources if item.allocatable]
        since = latest(node.since, node.last_gpu_release)
        idle = age(facts, since)
        if node.ready is not True or not offered or holders(node) or any(item.requested for item in offered):
            continue
        if node.since is None or idle is None or idle < policy.idle_grace_seconds or _leaving(facts, node, policy):
            continue
        waits = facts.remember("what keeps waiting pods off GPU nodes", lambda: _Waits(facts))
        fitting = waits.fitting.get(place, [])
        if node.name in nominated or _has_young(facts, fitting, policy):
            continue
        cost = cost_of(node.price, idle)
        released = node.last_gpu_release is not None and node.last_gpu_release >= node.since
        finding = found(
            Severity.HIGH if cost and cost.usd_hour >= EXPENSIVE_USD_HOUR else Severity.MEDIUM,
            node.ref,
            remedy="pending" if fitting else _remedy(node),
            cost=cost,
            notes=[*_notes(node, cost, waits.elsewhere(place), fitting, released), *_kept(facts, node)],
            node=node.name,
            idle=seconds(idle, "pod status" if released else "metadata.creationTimestamp"),
            idle_since=moment(since),
            gpus=gpus(node.physical_gpus),
            gpu=of(node.product),
            offered=of([f"{item.name}={item.allocatable}" for item in offered], "status.allocatable"),
            provider=of(node.provider),
            instance_type=of(node.instance_type),
            instance_id=of(_instance_id(node), "spec.providerID, or the provider's label"),
            pool=of(node.pool),
            cpu_pods=of(names(pod.ref for pod in movable(node))),
        )
        starting = place in waits.only_tainted and stuck_startup_taints(facts, node)
        yield Symptom(finding, (Root(node.ref, ("karpenter-startup-taint-stuck",)),)) if starting else finding


def _notes(
    node: NodeFacts, cost: Cost | None, elsewhere: Note | None, fitting: list[PodFacts], released: bool
) -> Iterator[Note]:
    yield note("since_release" if released else "since_creation")
    yield cost_note(cost)
    if fitting:
        yield note("pending_fits", waiting=names(pod.ref for pod in fitting))
    elif elsewhere is not None:
        yield elsewhere
    if node.unschedulable:
        yield note("cordoned")
    cpu_pods = movable(node)
    if cpu_pods:
        yield note("cpu_pods")
    cuda = [pod for pod in cpu_pods if _has_cuda_image(pod)]
    if cuda:
        yield note("cuda_without_request", cuda_pods=names(pod.ref for pod in cuda))
    kept = [key for key, value in _KEEP_NODE.items() if (node.node.metadata.annotations or {}).get(key) == value]
    if kept:
        yield note("kept_by_annotation", annotations=kept)
    if node.spot:
        yield note("spot")


def _kept(facts: ClusterFacts, node: NodeFacts) -> Iterator[Note]:
    """Why no autoscaler takes it, apart from the pods and the annotations that are told already."""
    blockers = [reason for reason in kept_by(facts, node) if reason not in _TOLD]
    if blockers:
        yield note("kept", blockers=blockers)


def _has_cuda_image(pod: PodFacts) -> bool:
    containers = (pod.pod.spec.containers if pod.pod.spec else None) or []
    return any(image_cuda(item.image).cuda for item in containers if item.image)


def _has_young(facts: ClusterFacts, fitting: list[PodFacts], policy: Policy) -> bool:
    ages = [age(facts, pod.pod.metadata.creationTimestamp) for pod in fitting]
    return any(waited is not None and waited < policy.pending_grace_seconds for waited in ages)


def _leaving(facts: ClusterFacts, node: NodeFacts, policy: Policy) -> bool:
    """Whether an autoscaler is taking the node away and has not been at it for longer than the grace period."""
    started = [node.node.metadata.deletionTimestamp] if node.node.metadata.deletionTimestamp else []
    for taint in (node.node.spec.taints if node.node.spec else None) or []:
        if taint.key in _LEAVING:
            stamp = taint.value or ""
            began = datetime.fromtimestamp(int(stamp), UTC) if stamp.isdigit() else taint.timeAdded
            started.append(began or facts.observed_at)
    return any((age(facts, moment) or 0) < policy.idle_grace_seconds for moment in started)


def _remedy(node: NodeFacts) -> str:
    if "karpenter.sh/nodepool" in node.labels or "karpenter.sh/provisioner-name" in node.labels:
        return "karpenter"
    key = _REMEDY_BY_PROVIDER.get(node.provider or "", "default")
    needs_pool = key in ("gke", "aks", "doks", "coreweave") and node.pool is None
    needs_id = key in ("aws", "oke", "doks") and _instance_id(node) is None
    return "default" if needs_pool or needs_id else key


def _instance_id(node: NodeFacts) -> str | None:
    """The id by which the provider's own tool removes the machine."""
    if node.provider == "digitalocean":
        return node.labels.get("doks.digitalocean.com/node-id")
    provider_id = (node.node.spec.providerID if node.node.spec else None) or ""
    return provider_id.rsplit("/", 1)[-1] or None


RULE = Rule(
    id="idle-gpu-node",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
