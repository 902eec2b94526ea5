"""Facts about one cluster, derived once from its objects and indexed for the rules."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import msgspec

from rules.facts import marks
from rules.facts.autoscaler import NodeGroup, node_groups
from rules.facts.budgets import Budget, budgets
from rules.facts.components import Components, components_of
from rules.facts.derive import Deriver
from rules.facts.events import index_events
from rules.facts.groups import (
    PodGroupFacts,
    WorkloadGroup,
    deployment_of,
    deployments_by_replica_set,
    pod_groups,
    queue_systems,
    workload_groups,
)
from rules.facts.images import ImageConfigs, ImageUse, gpu_images, reference
from rules.facts.kinds import group_of
from rules.facts.memo import ObjectMemo
from rules.facts.model import GpuEvidence, GpuResource, NodeFacts, PodFacts, Sharing, SharingMode
from rules.facts.objects import Container, Event, Node, OtherObject, Pod
from rules.facts.pause import collector_paused
from rules.facts.prices import PriceBook
from rules.facts.resources import Vendor
from rules.facts.scaling import Scaling, scaling
from rules.facts.storage import ClaimFacts, claims_of
from rules.findings import ObjectRef, Unreadable

__all__ = [
    "ClusterFacts",
    "FactsBuilder",
    "GpuEvidence",
    "GpuResource",
    "NodeFacts",
    "PodFacts",
    "Sharing",
    "SharingMode",
    "Vendor",
    "build",
]

Derived = TypeVar("Derived")
_NOT_DEMAND = ("visible-devices", "device-mount")


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything known about one cluster at one moment.

    Attributes:
        observed_at: the "now" of every age (timezone-aware).
        others: objects of further kinds, by :func:`~rules.facts.kinds.kind_key`: ``others["Job"]`` holds the Jobs of
            Kubernetes only, Volcano's are under ``Job.batch.volcano.sh``. See also :meth:`of_kind`.
        read_kinds: kinds that were read completely; a kind outside it is unknown, not empty.
        unreadable: kinds that could not be read, with the reason.
        api_groups: API groups that the server serves; None when it was not asked (see :attr:`components`).
        image_configs: OCI configurations of images, where a registry was asked and answered in time; an image outside
            it is left to its tag. See :meth:`image_config`.
    """

    name: str
    observed_at: datetime
    nodes: tuple[NodeFacts, ...]
    pods: tuple[PodFacts, ...]
    events: tuple[Event, ...]
    others: Mapping[str, tuple[OtherObject, ...]]
    read_kinds: frozenset[str]
    unreadable: tuple[Unreadable, ...]
    api_groups: frozenset[str] | None = None
    image_configs: ImageConfigs = {}

    def knows(self, kind: str) -> bool:
        """True when all objects of ``kind`` were read (there may be none)."""
        return kind in self.read_kinds

    @cached_property
    def gpu_nodes(self) -> tuple[NodeFacts, ...]:
        """Nodes that have a GPU, as far as anything tells."""
        return tuple(node for node in self.nodes if node.is_gpu_node)

    @cached_property
    def node_labels(self) -> frozenset[str]:
        """Keys of the labels of all nodes."""
        return frozenset().union(*(node.labels for node in self.nodes))

    @cached_property
    def gpu_pods(self) -> tuple[PodFacts, ...]:
        """Pods that ask for a GPU, or hold or may hold one in another way, finished ones included."""
        return tuple([pod for pod in self.pods if pod.gpu_requests or pod.other_gpu_claim])

    def gpu_pods_where(self, key: str, keep: Callable[[PodFacts], object]) -> list[PodFacts]:
        """Unfinished ones of :attr:`gpu_pods`, but for those that come with a node, of which ``keep`` is true, in no
        certain order. It looks at the pod alone, and is asked once for every node that stays as it is."""

        def on(node: NodeFacts) -> list[PodFacts]:
            return [pod for pod in node.gpu_pods if not pod.is_daemon and keep(pod)]

        found = [pod for node in self._nodes_with_gpu_pods for pod in node.remember(key, partial(on, node))]
        return found + [pod for pod in self._loose_gpu_pods if not pod.terminal and not pod.is_daemon and keep(pod)]

    @cached_property
    def _nodes_with_gpu_pods(self) -> list[NodeFacts]:
        return [node for node in self.nodes if node.gpu_pods]

    @cached_property
    def _loose_gpu_pods(self) -> list[PodFacts]:
        """Those on no node that is here."""
        return [pod for pod in self.gpu_pods if pod.node_name is None or pod.node_name not in self._nodes_by_name]

    @cached_property
    def unscheduled_pods(self) -> tuple[PodFacts, ...]:
        """Pods in phase Pending that have no node."""
        return self.marked(marks.WAITS)

    def marked(self, mark: int) -> tuple[PodFacts, ...]:
        """Pods with a mark of :mod:`rules.facts.marks`, in their order."""
        return tuple([pod for pod in self._marked if pod.marks & mark])

    @cached_property
    def _marked(self) -> list[PodFacts]:
        return [pod for pod in self.pods if pod.marks]

    @cached_property
    def pending_gpu_pods(self) -> tuple[PodFacts, ...]:
        """Pods that want a GPU and have no node yet. Those with scheduling gates are among them; see
        :attr:`~rules.facts.model.PodFacts.scheduling_gated`."""
        return tuple(
            pod
            for pod in self.unscheduled_pods
            if (pod.gpu_requests or (pod.other_gpu_claim and pod.other_gpu_claim not in _NOT_DEMAND))
        )

    @cached_property
    def gpu_images(self) -> tuple[ImageUse, ...]:
        """Images of GPU containers, as a registry would be asked for them."""
        return gpu_images(self.nodes, self.gpu_pods)

    def image_config(self, pod: PodFacts, container: Container) -> Mapping[str, Any] | None:
        """The OCI configuration of what a container runs or will run; None when it was not read."""
        named = reference(pod, container)
        return self.image_configs.get(named) if named else None

    def node(self, name: str) -> NodeFacts | None:
        """The node called ``name``."""
        return self._nodes_by_name.get(name)

    def pod(self, namespace: str, name: str) -> PodFacts | None:
        """The pod called ``name``."""
        return self._pods_by_name.get((namespace, name))

    def pods_on(self, node_name: str) -> tuple[PodFacts, ...]:
        """Pods on a node that are not finished; empty for a node that is not there."""
        node = self.node(node_name)
        return node.pods if node else ()

    def of_kind(self, kind: str, group: str | None = None) -> tuple[OtherObject, ...]:
        """Objects of ``kind`` (a kind key, see :attr:`others`), of one API group where ``group`` is given."""
        found = self.others.get(kind, ())
        return found if group is None else tuple(item for item in found if group_of(item.apiVersion) == group)

    def events_of(self, ref: ObjectRef) -> tuple[Event, ...]:
        """Events about an object, oldest first."""
        return self._events_by_ref.get(ref, ())

    @cached_property
    def workload_groups(self) -> tuple[WorkloadGroup, ...]:
        """Multi-node workloads that have pods: their members wait for each other."""
        return workload_groups(self.marked(marks.GROUPED), self.others)

    @cached_property
    def pod_groups(self) -> tuple[PodGroupFacts, ...]:
        """PodGroups of gang schedulers with their pods."""
        return pod_groups(self.of_kind("PodGroup"), self.pods)

    @cached_property
    def queue_systems(self) -> frozenset[str]:
        """Queueing systems and gang schedulers in use; see :func:`~rules.facts.groups.queue_systems`."""
        return queue_systems(self.marked(marks.QUEUED), self.others)

    @cached_property
    def autoscaler_groups(self) -> tuple[NodeGroup, ...] | None:
        """Node groups of cluster-autoscaler; None when its status is not there to be read."""
        return node_groups(self.of_kind("ConfigMap"))

    @cached_property
    def scaling(self) -> Scaling:
        """Who adds and removes nodes."""
        autoscalers = self.marked(marks.AUTOSCALES)
        return scaling(
            self.nodes, autoscalers, self.events, self.others, self.read_kinds, groups=self.autoscaler_groups
        )

    @cached_property
    def budgets(self) -> tuple[Budget, ...]:
        """PodDisruptionBudgets with the pods that they select; see also ``knows("PodDisruptionBudget")``."""
        return budgets(self.of_kind("PodDisruptionBudget"), self.pods)

    @cached_property
    def budgets_by_pod(self) -> Mapping[ObjectRef, tuple[int, ...]]:
        """Of every unfinished pod that a PodDisruptionBudget selects, the positions in :attr:`budgets` of those that
        do."""
        found: dict[ObjectRef, tuple[int, ...]] = {}
        for place, budget in enumerate(self.budgets):
            for pod in budget.pods:
                found[pod.ref] = (*found.get(pod.ref, ()), place)
        return found

    @cached_property
    def components(self) -> Components:
        """Software for GPUs that is there, and whether it works."""
        return components_of(self)

    @cached_property
    def claims(self) -> Mapping[ObjectRef, ClaimFacts]:
        """PersistentVolumeClaims by reference; see also ``knows("PersistentVolumeClaim")``."""
        return claims_of(self)

    def remember(self, key: str, make: Callable[[], Derived]) -> Derived:
        """What several rules share and none should work out twice: the value under ``key``, made when first asked
        for. The same key must always be given an equal ``make``, and what it makes must not hold on to these facts: in
        a ring they would outlive their time until somebody collects garbage."""
        if key not in self._remembered:
            self._remembered[key] = make()
        return cast("Derived", self._remembered[key])

    def remember_of(self, item: OtherObject, key: str, make: Callable[[OtherObject], Derived]) -> Derived:
        """What ``make`` makes of one object and nothing else; later facts that hold the same object still know it."""
        return self._memo.of(item, key, make)

    @cached_property
    def _memo(self) -> ObjectMemo:
        return ObjectMemo()

    @cached_property
    def _remembered(self) -> dict[str, object]:
        return {}

    def deployment_of(self, pod: PodFacts) -> ObjectRef | None:
        """The Deployment behind a pod; None when there is none."""
        return deployment_of(pod, self._deployments)

    @cached_property
    def _deployments(self) -> dict[tuple[str, str], str]:
        return deployments_by_replica_set(self.of_kind("ReplicaSet"))

    @cached_property
    def _nodes_by_name(self) -> dict[str, NodeFacts]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _pods_by_name(self) -> dict[tuple[str, str], PodFacts]:
        return {(pod.ref.namespace, pod.ref.name): pod for pod in self.pods}

    @cached_property
    def _events_by_ref(self) -> dict[ObjectRef, tuple[Event, ...]]:
        return index_events(self.events)


class FactsBuilder:
    """Builds the facts of one cluster again and again, at little more than the cost of what has changed.

    Objects that were given before, the same ones and not equal ones, keep their facts: hold on to decoded objects that
    did not change, and put new ones in their places. Everything else may change freely from one call to the next, the
    moment of observation too: no age is kept. The facts are equal to those of :func:`build`, whatever was built before.
    One builder works for one thread at a time.

    Args:
        name: of the cluster.
        prices: what nodes cost; other prices need another builder.
    """

    def __init__(self, name: str, prices: PriceBook) -> None:
        self._name = name
        self._deriver = Deriver(prices)
        self._memo = ObjectMemo()

    @property
    def remembered_pods(self) -> int:
        """Number of pods of which facts are kept: at most a quarter more than the last call had, and some."""
        return self._deriver.remembered_pods

    def build(
        self,
        observed_at: datetime,
        *,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        events: Iterable[Event] = (),
        others: Mapping[str, Iterable[OtherObject]] | None = None,
        read_kinds: Iterable[str],
        unreadable: Iterable[Unreadable] = (),
        api_groups: Iterable[str] | None = None,
    ) -> ClusterFacts:
        """Derive and index the facts; the arguments are those of :func:`build`."""
        filed = {kind: tuple(items) for kind, items in (others or {}).items()}
        kinds = frozenset(read_kinds)
        with collector_paused():
            derived = self._deriver.derive(nodes, pods, filed, kinds)
        self._memo.keep(item for items in filed.values() for item in items)
        facts = ClusterFacts(
            name=self._name,
            observed_at=observed_at,
            nodes=derived.nodes,
            pods=derived.pods,
            events=tuple(events),
            others=filed,
            read_kinds=kinds,
            unreadable=tuple(unreadable),
            api_groups=None if api_groups is None else frozenset(api_groups),
        )
        facts.__dict__["_memo"] = self._memo  # instead of the empty one
        return facts


def build(
    name: str,
    observed_at: datetime,
    *,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    events: Iterable[Event] = (),
    others: Mapping[str, Iterable[OtherObject]] | None = None,
    read_kinds: Iterable[str],
    unreadable: Iterable[Unreadable] = (),
    prices: PriceBook,
    api_groups: Iterable[str] | None = None,
) -> ClusterFacts:
    """Derive and index the facts of one cluster, once. See :class:`FactsBuilder` for one that is watched.

    Args:
        name: of the cluster.
        observed_at: the "now" of every age, with a time zone.
        others: objects of further kinds by kind key.
        read_kinds: kinds that were read completely.
        unreadable: kinds that could not be read.
        prices: what nodes cost.
        api_groups: that the API server serves; None when it was not asked.
    """
    return FactsBuilder(name, prices).build(
        observed_at,
        nodes=nodes,
        pods=pods,
        events=events,
        others=others,
        read_kinds=read_kinds,
        unreadable=unreadable,
        api_groups=api_groups,
    )
