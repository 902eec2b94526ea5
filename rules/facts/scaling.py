"""Who adds and removes nodes: cluster-autoscaler, Karpenter, or nobody that shows.

Sources: kubernetes/autoscaler cluster-autoscaler-1.36.1 config/flags/flags.go and FAQ.md;
MicrosoftDocs/azure-aks-docs articles/aks/cluster-autoscaler.md (profile of AKS);
cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler (GKE); docs.coreweave.com (pools of fixed size);
kubernetes-sigs/karpenter pkg/apis/v1; read in the second half of 2026.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from rules.facts.autoscaler import STATUS_NAME, NodeGroup
from rules.facts.events import event_reporter
from rules.facts.kinds import group_of
from rules.facts.model import NodeFacts, PodFacts
from rules.facts.objects import Event, OtherObject
from rules.findings import ObjectRef

KARPENTER_GROUP = "karpenter.sh"
POOL_LABELS = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")

Manager = Literal["karpenter", "cluster-autoscaler"]
Flavour = Literal["own", "aks", "gke", "managed"]

_NO_LOCAL_STORAGE_BLOCK = ("aks", "gke")
_MANAGED_AUTOSCALING = frozenset(
    {"gcp", "azure", "digitalocean", "oci", "scaleway", "linode", "civo", "vultr", "ovhcloud", "alibaba", "ibm"}
)
"""Providers whose managed service can scale pools without a Deployment in the cluster: that none is seen proves
nothing there."""

_OFF_LABELS = {"oke.oraclecloud.com/cluster_autoscaler": "disabled"}


class ClusterAutoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster-autoscaler of which something shows.

    Attributes:
        ref: its Deployment, its pod, or the ConfigMap that it writes; None when only events tell.
        flavour: ``own`` when it runs in the cluster, so that its flags are known; else whose managed one it is.
        flags: its command line flags without dashes; a flag without a value is ``true``.
        groups: node groups of its status; None when that is not there to be read.
    """

    ref: ObjectRef | None
    flavour: Flavour
    flags: Mapping[str, str]
    groups: tuple[NodeGroup, ...] | None

    def on(self, flag: str, default: bool) -> bool:
        """A boolean flag."""
        value = self.flags.get(flag)
        return default if value is None else value.lower() != "false"

    @property
    def gpu_threshold(self) -> float:
        """Requested share of a node's GPUs from which on it is never removed for being under-used."""
        try:
            return float(self.flags.get("scale-down-gpu-utilization-threshold", "0.5"))
        except ValueError:
            return 0.5

    @property
    def local_storage_blocks(self) -> bool:
        """Whether a pod with an emptyDir or hostPath keeps its node. Upstream yes; AKS and GKE switch it off."""
        return self.on("skip-nodes-with-local-storage", self.flavour not in _NO_LOCAL_STORAGE_BLOCK)

    @property
    def system_pods_block(self) -> bool:
        """Whether a pod of kube-system without a budget keeps its node."""
        return self.on("skip-nodes-with-system-pods", True)

    @property
    def custom_controllers_block(self) -> bool:
        """Whether a pod whose controller is a custom resource keeps its node."""
        return self.on("skip-nodes-with-custom-controller-pods", True)


class KarpenterPool(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool of Karpenter.

    Attributes:
        consolidate_after, policy: of ``spec.disruption``; None when it does not say.
        expire_after, grace: ``expireAfter`` and ``terminationGracePeriod`` of the template in seconds; None when it
            does not say; ``expire_after`` is also None for ``Never``.
        startup_taints: keys of the taints that somebody has to take away before pods come.
        taints: keys of the taints that stay.
    """

    ref: ObjectRef
    item: OtherObject
    consolidate_after: str | None
    policy: str | None
    expire_after: float | None
    grace: float | None
    startup_taints: tuple[str, ...]
    taints: tuple[str, ...]

    @property
    def zero_budget(self) -> bool:
        """Whether a disruption budget forbids, at all times, to remove empty or under-used nodes."""
        for budget in _disruption(self.item).get("budgets") or ():
            reasons = budget.get("reasons") or ["Empty", "Underutilized"]
            always = not budget.get("schedule")
            if always and str(budget.get("nodes")) in ("0", "0%") and {"Empty", "Underutilized"} <= set(reasons):
                return True
        return False

    @property
    def static(self) -> bool:
        """Whether it keeps a fixed number of nodes (``spec.replicas``)."""
        return "replicas" in (self.item.spec or {})


class Scaling(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """All that shows of node autoscaling.

    Attributes:
        pools: Karpenter's NodePools by name.
        claims: Karpenter's NodeClaims by the node that came of them.
        absent: True when no autoscaler is there; None when one may be there unseen.
        fixed_pools: names of pools whose object says that their size is fixed (CoreWeave without autoscaling).
        pool_names: of all node pools.
    """

    cluster_autoscaler: ClusterAutoscaler | None
    karpenter: bool
    pools: Mapping[str, KarpenterPool]
    claims: Mapping[str, OtherObject]
    absent: bool | None
    fixed_pools: frozenset[str]
    pool_names: frozenset[str]

    def manager(self, node: NodeFacts) -> Manager | None:
        """Who may remove the node, as far as anything tells."""
        if karpenter_pool(node) is not None:
            return "karpenter"
        if self.cluster_autoscaler is None or self.switched_off(node):
            return None
        return "cluster-autoscaler"

    def switched_off(self, node: NodeFacts) -> bool:
        """Whether the provider's label or pool object says that nothing scales the node's pool."""
        off = any(node.labels.get(label) == value for label, value in _OFF_LABELS.items())
        return off or node.pool in self.fixed_pools

    def pool(self, node: NodeFacts) -> KarpenterPool | None:
        """The node's NodePool; None when it was not read or Karpenter does not own the node."""
        return self.pools.get(karpenter_pool(node) or "")

    def group(self, node: NodeFacts) -> NodeGroup | None:
        """The node group of cluster-autoscaler that the node belongs to, told by names; None when they do not tell.

        Groups are named by the cloud: a scale set or instance group whose nodes begin with its name (AKS, GKE), or
        a group whose name holds that of the pool (``eks-ng-gpu-0ac1...``); the longest pool that fits counts.
        """
        if node.name not in self._group_of:
            self._group_of[node.name] = self._found_group(node)
        return self._group_of[node.name]

    @cached_property
    def _group_of(self) -> dict[str, NodeGroup | None]:
        return {}

    def _found_group(self, node: NodeFacts) -> NodeGroup | None:
        for group, stem, pools in self._named:
            if (node.pool is not None and node.pool in pools) or (stem and node.name.startswith(stem)):
                return group
        return None

    @cached_property
    def _named(self) -> tuple[tuple[NodeGroup, str, tuple[str | None, ...]], ...]:
        """Groups of cluster-autoscaler, how their nodes' names begin, and the pools that they may be."""
        return tuple(
            (group, group.name.rpartition("/")[2].removesuffix("-grp"), (group.name, self._pool_in.get(group.name)))
            for group in (self.cluster_autoscaler.groups if self.cluster_autoscaler else None) or ()
        )

    @cached_property
    def _pool_in(self) -> dict[str, str]:
        found = {}
        for group in (self.cluster_autoscaler.groups if self.cluster_autoscaler else None) or ():
            inside = [name for name in self.pool_names if f"-{name}-" in f"-{group.name}-"]
            if inside:
                found[group.name] = max(inside, key=len)
        return found


def karpenter_pool(node: NodeFacts) -> str | None:
    """Name of the Karpenter NodePool (or Provisioner) of a node; None when Karpenter does not own it."""
    return next((node.labels[label] for label in POOL_LABELS if node.labels.get(label)), None)


def scaling(
    nodes: Iterable[NodeFacts],
    pods: Iterable[PodFacts],
    events: Iterable[Event],
    others: Mapping[str, Iterable[OtherObject]],
    read_kinds: frozenset[str],
    groups: tuple[NodeGroup, ...] | None = None,
) -> Scaling:
    """Work out who scales the cluster's nodes; ``groups`` are :func:`~rules.facts.autoscaler.node_groups` of the
    cluster."""
    all_nodes = tuple(nodes)
    providers = {node.provider for node in all_nodes}
    autoscaler = _cluster_autoscaler(providers, pods, events, others, groups)
    pools = [item for item in others.get("NodePool", ()) if group_of(item.apiVersion) == KARPENTER_GROUP]
    claims = [item for item in others.get("NodeClaim", ()) if group_of(item.apiVersion) == KARPENTER_GROUP]
    karpenter = bool(pools or claims) or any(karpenter_pool(node) for node in all_nodes)
    proven = "Deployment" in read_kinds and ("ConfigMap" in read_kinds or not providers & _MANAGED_AUTOSCALING)
    return Scaling(
        cluster_autoscaler=autoscaler,
        karpenter=karpenter,
        pools={item.metadata.name: _pool(item) for item in pools},
        claims={str(name): item for item in claims if (name := (item.status or {}).get("nodeName"))},
        absent=False if karpenter or autoscaler else True if proven else None,
        fixed_pools=frozenset(
            item.metadata.name
            for item in others.get("NodePool", ())
            if group_of(item.apiVersion) == "compute.coreweave.com" and not (item.spec or {}).get("autoscaling")
        ),
        pool_names=frozenset(node.pool for node in all_nodes if node.pool),
    )


def _cluster_autoscaler(
    providers: set[str | None],
    pods: Iterable[PodFacts],
    events: Iterable[Event],
    others: Mapping[str, Iterable[OtherObject]],
    groups: tuple[NodeGroup, ...] | None,
) -> ClusterAutoscaler | None:
    for item in others.get("Deployment", ()):
        template = ((item.spec or {}).get("template") or {}).get("spec") or {}
        flags = _flags_of(template.get("containers") or (), item.metadata.name)
        if flags is not None and (item.spec or {}).get("replicas", 1) != 0:
            ref = ObjectRef("Deployment", item.metadata.namespace or "", item.metadata.name)
            return ClusterAutoscaler(ref=ref, flavour="own", flags=flags, groups=groups)
    for pod in pods:
        containers = (pod.pod.spec.containers if pod.pod.spec else None) or ()
        plain = [{"image": item.image, "command": item.command, "args": item.args} for item in containers]
        flags = None if pod.terminal else _flags_of(plain, pod.ref.name)
        if flags is not None:
            return ClusterAutoscaler(ref=pod.ref, flavour="own", flags=flags, groups=groups)
    status = next((item for item in others.get("ConfigMap", ()) if item.metadata.name == STATUS_NAME), None)
    flavour: Flavour = "aks" if "azure" in providers else "gke" if "gcp" in providers else "managed"
    if status is not None:
        ref = ObjectRef("ConfigMap", status.metadata.namespace or "", status.metadata.name)
        return ClusterAutoscaler(ref=ref, flavour=flavour, flags={}, groups=groups)
    if any(event_reporter(event) == "cluster-autoscaler" for event in events):
        return ClusterAutoscaler(ref=None, flavour=flavour, flags={}, groups=None)
    return None


_IMAGE = re.compile(r"(?:^|/)[\w.-]*cluster-autoscaler(?:-[a-z0-9]+)?(?:[:@]|$)")


def _flags_of(containers: Iterable[Mapping[str, Any]], name: str) -> dict[str, str] | None:
    """Flags of the container that is the autoscaler; None when none is."""
    if "cluster-autoscaler-operator" in name:
        return None
    for container in containers:
        words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        if _IMAGE.search(str(container.get("image") or "")) or any(
            word.rpartition("/")[2] == "cluster-autoscaler" for word in words[:1]
        ):
            flags = {}
            for word in words:
                if word.startswith("-"):
                    key, _, value = word.lstrip("-").partition("=")
                    flags[key] = value or "true"
            return flags
    return None


def _pool(item: OtherObject) -> KarpenterPool:
    template = ((item.spec or {}).get("template") or {}).get("spec") or {}
    disruption = _disruption(item)
    return KarpenterPool(
        ref=ObjectRef("NodePool", "", item.metadata.name),
        item=item,
        consolidate_after=disruption.get("consolidateAfter"),
        policy=disruption.get("consolidationPolicy"),
        # Up to v1beta1 it stood under disruption.
        expire_after=seconds_of(template.get("expireAfter") or disruption.get("expireAfter")),
        grace=seconds_of(template.get("terminationGracePeriod")),
        startup_taints=_keys(template.get("startupTaints")),
        taints=_keys(template.get("taints")),
    )


def _disruption(item: OtherObject) -> Mapping[str, Any]:
    return (item.spec or {}).get("disruption") or {}


def _keys(taints: object) -> tuple[str, ...]:
    items = taints if isinstance(taints, list) else []
    return tuple(str(item.get("key")) for item in items if isinstance(item, dict))


_PART = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|h|m|s)")
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,3})?(?:ms|h|m|s)){1,8}")
_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_of(duration: object) -> float | None:
    """A Go duration (``720h``, ``1h30m``) in seconds; None for ``Never`` and for what is none."""
    if not isinstance(duration, str) or not _DURATION.fullmatch(duration):
        return None
    return sum(float(part[1]) * _UNIT[part[2]] for part in _PART.finditer(duration))
