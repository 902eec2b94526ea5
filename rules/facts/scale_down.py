"""Why is this GPU node still up? What keeps its autoscaler from taking it away, worked out from the objects.

:func:`scale_down_blockers` answers for one node. It follows the rules of the autoscaler that owns the node, with the
defaults of its flavour (upstream, AKS, GKE, Karpenter). What only the autoscaler's own simulation knows (whether the
pods would fit elsewhere, cool-down times) is left out. DaemonSet pods never keep a node.

Sources: kubernetes/autoscaler cluster-autoscaler-1.36.1 utils/drain, simulator/utilization/info.go, core/scaledown and
FAQ.md; kubernetes-sigs/karpenter pkg/controllers/state/statenode.go, pkg/controllers/disruption, pkg/apis/v1;
MicrosoftDocs/azure-aks-docs articles/aks/node-auto-repair.md.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.objects import OtherObject
from rules.facts.scaling import ClusterAutoscaler, seconds_of
from rules.findings import ObjectRef

Reason = Literal[
    "gpu_pods",
    "cpu_pods",
    "bare_pod",
    "custom_controller",
    "safe_to_evict_false",
    "local_storage",
    "system_pod",
    "pdb",
    "several_pdbs",
    "local_volume",
    "do_not_disrupt_pod",
    "do_not_disrupt_node",
    "scale_down_disabled",
    "provider_hold",
    "not_initialized",
    "consolidation_never",
    "policy_when_empty",
    "budget_zero",
    "static_pool",
    "min_size",
    "pool_fixed",
    "no_autoscaler",
]

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
AKS_HOLD = "kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason"
HOSTNAME = "kubernetes.io/hostname"
KNOWN_CONTROLLERS = frozenset({"ReplicaSet", "Job", "StatefulSet", "DaemonSet", "ReplicationController", "Node"})


class Blocker(msgspec.Struct, frozen=True):
    """One thing that keeps a node.

    Attributes:
        objects: what it is about: pods, budgets, the pool; empty when it is the node itself.
        certain: False when it follows from a default or a name that this cluster may have otherwise.
    """

    reason: Reason
    objects: tuple[ObjectRef, ...] = ()
    certain: bool = True


def scale_down_blockers(facts: ClusterFacts, node: NodeFacts) -> tuple[Blocker, ...]:
    """What keeps the node up, the nearest cause first; empty when nothing that is known does."""
    pods = movable(node)
    holding = [pod.ref for pod in pods if pod.holds_gpu]
    others = [pod.ref for pod in pods if not pod.holds_gpu]
    found = [Blocker("gpu_pods", tuple(holding))] if holding else []
    if others:
        found.append(Blocker("cpu_pods", tuple(others)))
    manager = facts.scaling.manager(node)
    if manager == "karpenter":
        found += _karpenter(facts, node, pods)
    elif manager == "cluster-autoscaler" and facts.scaling.cluster_autoscaler is not None:
        found += _cluster_autoscaler(facts, node, facts.scaling.cluster_autoscaler, pods)
    else:
        found += _nobody(facts, node)
    return tuple(found)


def movable(node: NodeFacts) -> tuple[PodFacts, ...]:
    """Unfinished pods that an autoscaler has to move before it takes the node: all but those that come with it."""
    return node.remember("movable", lambda: tuple(pod for pod in node.pods if not pod.is_daemon))


def gpu_share(node: NodeFacts) -> float | None:
    """Requested share of the node's GPUs, of the resource of which most is requested; None when it offers none."""
    shares = [item.requested / item.allocatable for item in node.resources if item.allocatable]
    return max(shares, default=None)


def under_used(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether cluster-autoscaler would take the node for under-used: only the requested share of GPUs counts."""
    share, autoscaler = gpu_share(node), facts.scaling.cluster_autoscaler
    return share is not None and share < (autoscaler.gpu_threshold if autoscaler else 0.5)


def annotation(item: PodFacts | NodeFacts, key: str) -> str | None:
    """An annotation of a pod or node."""
    meta = item.pod.metadata if isinstance(item, PodFacts) else item.node.metadata
    return (meta.annotations or {}).get(key)


def local_volumes(pod: PodFacts) -> list[str]:
    """Volumes of the pod that are lost with its node: emptyDir on disk and hostPath, but for those that an annotation
    gives free. An emptyDir in memory does not count."""
    free = {name.strip() for name in (annotation(pod, SAFE_VOLUMES) or "").split(",")}
    return [
        str(volume.get("name"))
        for volume in (pod.pod.spec.volumes if pod.pod.spec else None) or ()
        if _local(volume) and volume.get("name") not in free
    ]


def _local(volume: dict[str, Any]) -> bool:
    if "emptyDir" in volume:
        return (volume["emptyDir"] or {}).get("medium") != "Memory"
    return "hostPath" in volume


def custom_controller(pod: PodFacts) -> bool:
    """Whether the pod's controller is none that cluster-autoscaler knows how to move."""
    return pod.controller is not None and (
        pod.controller.kind not in KNOWN_CONTROLLERS
        # Volcano's Job is one too; an owner without apiVersion is taken for Kubernetes' own.
        or (pod.controller.kind == "Job" and (pod.controller.apiVersion or "batch/").partition("/")[0] != "batch")
    )


def pinned_by_volume(facts: ClusterFacts, pod: PodFacts) -> tuple[ObjectRef, ...]:
    """Claims of the pod whose volume lives on one node only; empty as well when claims or volumes were not read."""
    volumes, claims = facts.remember("volumes and claims by name", lambda: _volumes(facts))
    found = []
    for volume in (pod.pod.spec.volumes if pod.pod.spec else None) or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = claims.get((pod.ref.namespace, str(name)))
        bound = volumes.get(str((claim.spec or {}).get("volumeName"))) if claim else None
        if bound is not None and _on_one_node(bound.spec or {}):
            found.append(ObjectRef("PersistentVolumeClaim", pod.ref.namespace, str(name)))
    return tuple(found)


def _volumes(facts: ClusterFacts) -> tuple[dict[str, OtherObject], dict[tuple[str, str], OtherObject]]:
    return (
        {item.metadata.name: item for item in facts.of_kind("PersistentVolume")},
        {(item.metadata.namespace or "", item.metadata.name): item for item in facts.of_kind("PersistentVolumeClaim")},
    )


def _on_one_node(spec: dict[str, Any]) -> bool:
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or []
    return bool(terms) and all(
        any(
            item.get("key") == HOSTNAME and item.get("operator") == "In" and len(item.get("values") or ()) == 1
            for item in term.get("matchExpressions") or ()
        )
        for term in terms
    )


def protected_by_do_not_disrupt(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether Karpenter's annotation still protects the pod: ``true`` for ever, a duration for so long after start."""
    value = annotation(pod, DO_NOT_DISRUPT)
    if value is None or value == "true":
        return value == "true"
    lasts, started = seconds_of(value), pod.pod.status.startTime if pod.pod.status else None
    return lasts is not None and started is not None and (facts.observed_at - started).total_seconds() < lasts


def node_do_not_disrupt(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether the node or its NodeClaim carries Karpenter's annotation."""
    claim = facts.scaling.claims.get(node.name)
    marks = (claim.metadata.annotations or {}) if claim else {}
    return "true" in (annotation(node, DO_NOT_DISRUPT), marks.get(DO_NOT_DISRUPT))


def initialized(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether Karpenter takes the node for ready: by its NodeClaim, else by the label that Karpenter writes."""
    claim = facts.scaling.claims.get(node.name)
    conditions = ((claim.status or {}).get("conditions") or ()) if claim else ()
    told = next((item.get("status") for item in conditions if item.get("type") == "Initialized"), None)
    return told == "True" if told is not None else node.labels.get("karpenter.sh/initialized") == "true"


def pod_blockers(facts: ClusterFacts, autoscaler: ClusterAutoscaler, pod: PodFacts) -> Iterator[Reason]:
    """Why cluster-autoscaler will not move a pod, budgets and volumes left out. A pod of kube-system blocks only for
    its first hour in newer versions (``blocking-system-pod-distruption-timeout``)."""
    verdict = annotation(pod, SAFE_TO_EVICT)
    if verdict in ("false", "on-completion"):
        yield "safe_to_evict_false"
    if verdict in ("true", "false"):
        return
    if pod.controller is None:
        yield "bare_pod"
    elif autoscaler.custom_controllers_block and custom_controller(pod):
        yield "custom_controller"
    if autoscaler.local_storage_blocks and local_volumes(pod):
        yield "local_storage"
    if autoscaler.system_pods_block and pod.ref.namespace == "kube-system" and not guarded(facts, pod):
        yield "system_pod"


def guarded(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether a PodDisruptionBudget selects the pod."""
    return pod.ref in facts.budgets_by_pod


def _budget_blockers(facts: ClusterFacts, pods: Sequence[PodFacts]) -> Iterator[Blocker]:
    guards = {pod.ref: places for pod in pods if (places := facts.budgets_by_pod.get(pod.ref))}
    # In the order in which the budgets name them.
    met: dict[ObjectRef, None] = {}
    for place in sorted({place for places in guards.values() for place in places}):
        budget = facts.budgets[place]
        inside = [pod.ref for pod in budget.pods if pod.ref in guards]
        met.update(dict.fromkeys(inside))
        if budget.blocks:
            yield Blocker("pdb", (budget.ref, *inside))
    several = [ref for ref in met if len(guards[ref]) > 1]
    if several:
        yield Blocker("several_pdbs", tuple(several))


def _local_volume_blockers(facts: ClusterFacts, pods: Sequence[PodFacts]) -> Iterator[Blocker]:
    pinned = {pod.ref: claims for pod in pods if (claims := pinned_by_volume(facts, pod))}
    if pinned:
        yield Blocker("local_volume", tuple(ref for pod, claims in pinned.items() for ref in (pod, *claims)))


def _karpenter(facts: ClusterFacts, node: NodeFacts, pods: Sequence[PodFacts]) -> Iterator[Blocker]:
    if not initialized(facts, node):
        yield Blocker("not_initialized")
    if node_do_not_disrupt(facts, node):
        yield Blocker("do_not_disrupt_node")
    # Here the annotation counts on DaemonSet pods too.
    marked = [pod.ref for pod in node.pods if protected_by_do_not_disrupt(facts, pod)]
    if marked:
        yield Blocker("do_not_disrupt_pod", tuple(marked))
    yield from _budget_blockers(facts, pods)
    yield from _local_volume_blockers(facts, pods)
    pool = facts.scaling.pool(node)
    if pool is None:
        return
    if pool.static:
        yield Blocker("static_pool", (pool.ref,))
    if pool.consolidate_after == "Never":
        yield Blocker("consolidation_never", (pool.ref,))
    if pool.policy == "WhenEmpty" and pods:
        yield Blocker("policy_when_empty", (pool.ref,))
    if pool.zero_budget:
        yield Blocker("budget_zero", (pool.ref,))


def _cluster_autoscaler(
    facts: ClusterFacts, node: NodeFacts, autoscaler: ClusterAutoscaler, pods: Sequence[PodFacts]
) -> Iterator[Blocker]:
    if annotation(node, SCALE_DOWN_DISABLED) == "true":
        yield Blocker("scale_down_disabled")
    if annotation(node, AKS_HOLD):
        yield Blocker("provider_hold")
    by_reason: dict[Reason, list[ObjectRef]] = {}
    for pod in pods:
        for reason in pod_blockers(facts, autoscaler, pod):
            by_reason.setdefault(reason, []).append(pod.ref)
    for reason, refs in by_reason.items():
        # What follows from a flag is certain only where the flags are seen.
        certain = reason in ("bare_pod", "safe_to_evict_false") or autoscaler.flavour == "own"
        yield Blocker(reason, tuple(refs), certain)
    yield from _budget_blockers(facts, pods)
    yield from _local_volume_blockers(facts, pods)
    group = facts.scaling.group(node)
    if group is not None and group.minimum and (group.target is None or group.target <= group.minimum):
        yield Blocker("min_size", (group.source,))


def _nobody(facts: ClusterFacts, node: NodeFacts) -> Iterator[Blocker]:
    if facts.scaling.switched_off(node):
        yield Blocker("pool_fixed")
    elif facts.scaling.absent:
        yield Blocker("no_autoscaler")
