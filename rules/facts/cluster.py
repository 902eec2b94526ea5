"""Facts about one cluster, derived once from its objects and indexed for the rules."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from rules.facts.objects import Event, Node, OtherObject, OwnerReference, Pod
from rules.facts.prices import Price, PriceBook
from rules.findings import ObjectRef, Unreadable

Vendor = Literal["nvidia", "amd", "intel", "habana", "aws-neuron"]
SharingMode = Literal["none", "time-slicing", "mps", "mig-single", "mig-mixed", "partitioned", "hami"]


class GpuResource(msgspec.Struct, frozen=True):
    """One GPU resource that a node advertises, in the units of that resource (not always whole GPUs).

    Attributes:
        name: as the kubelet spells it, for example ``nvidia.com/gpu`` or ``nvidia.com/mig-1g.5gb``.
        form: ``device`` (the plain name of a vendor), ``shared`` (``.shared``), ``mig`` or ``partition``.
        capacity, allocatable: None when the node does not list the resource there.
        requested: sum over pods that are bound to the node and not finished, as the scheduler counts them.
    """

    name: str
    vendor: Vendor
    form: Literal["device", "shared", "mig", "partition"]
    capacity: int | None
    allocatable: int | None
    requested: int


class Sharing(msgspec.Struct, frozen=True):
    """How the GPUs of a node are shared now.

    Attributes:
        mode: None when nothing on the node tells (feature discovery absent).
        replicas: units advertised per GPU under time-slicing and MPS; None when unknown or not that mode.
        profiles: advertised MIG profiles or partitions and their allocatable number.
        source: the label or field it was read from.
    """

    mode: SharingMode | None
    replicas: int | None = None
    profiles: Mapping[str, int] = msgspec.field(default_factory=dict)
    source: str | None = None


class PodFacts(msgspec.Struct, frozen=True):
    """A pod and what follows from it.

    Attributes:
        terminal: phase Succeeded or Failed: it holds nothing, whatever its spec says.
        gpu_requests: effective request per GPU resource (init containers and sidecars counted as the scheduler does);
            empty when it asks for none.
        other_gpu_claim: how it may hold a GPU without such a request: ``dra-claim``, ``fraction-annotation``,
            ``visible-devices``, ``gpu-memory-resource`` ...; None when it does not.
        controller: the ownerReference with controller=true.
    """

    ref: ObjectRef
    pod: Pod
    phase: str
    node_name: str | None
    terminal: bool
    gpu_requests: Mapping[str, int]
    other_gpu_claim: str | None
    controller: OwnerReference | None

    @property
    def holds_gpu(self) -> bool:
        """True when it keeps a GPU (or may keep one by a way the scheduler does not count) on its node."""
        return self.node_name is not None and not self.terminal and bool(self.gpu_requests or self.other_gpu_claim)

    @property
    def is_daemon(self) -> bool:
        """True for pods that come with the node (DaemonSet pods and mirror pods of static manifests)."""
        return self.controller is not None and self.controller.kind in ("DaemonSet", "Node")


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A node and what follows from it. None is "unknown" everywhere.

    Attributes:
        gpu_evidence: why it is taken for a GPU node: ``resource``, ``feature-label``, ``provider-label``,
            ``instance-type`` or ``user-label``; None when nothing says it has a GPU.
        product: GPU model as the labels name it; gpu_memory_mib: per GPU.
        physical_gpus: number of cards, never the number of shares.
        driver_version: kernel driver from feature-discovery labels; driver_source: the label.
        cuda_ceiling: newest CUDA the driver reports to support ("12.4").
        provider: id of the provider in the catalogue (``aws``, ``gcp`` ...), from providerID or labels.
        spot: True, False, or None when neither labels nor taints tell.
        pool: name of the node pool or group.
        since: when the node was created.
        pods: pods bound to it that are not finished.
        last_gpu_release: latest end of a finished pod that held a GPU here, as far as such pods are still listed.
        price: price of the node per hour.
    """

    ref: ObjectRef
    node: Node
    name: str
    labels: Mapping[str, str]
    ready: bool | None
    unschedulable: bool
    since: datetime | None
    gpu_evidence: Literal["resource", "feature-label", "provider-label", "instance-type", "user-label"] | None
    vendor: Vendor | None
    product: str | None
    gpu_memory_mib: int | None
    physical_gpus: int | None
    resources: tuple[GpuResource, ...]
    sharing: Sharing
    driver_version: str | None
    driver_source: str | None
    cuda_ceiling: str | None
    provider: str | None
    instance_type: str | None
    region: str | None
    zone: str | None
    spot: bool | None
    pool: str | None
    pods: tuple[PodFacts, ...]
    last_gpu_release: datetime | None
    price: Price | None

    @property
    def is_gpu_node(self) -> bool:
        """True when something says that the node has a GPU."""
        return self.gpu_evidence is not None

    @property
    def gpu_pods(self) -> tuple[PodFacts, ...]:
        """Pods on the node that hold a GPU or may hold one."""
        return tuple(pod for pod in self.pods if pod.holds_gpu)


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one cluster at one moment.

    Attributes:
        observed_at: the "now" of every age (timezone-aware).
        others: objects of further kinds, by kind.
        read_kinds: kinds that were read completely; a kind outside it is unknown, not empty.
        unreadable: kinds that could not be read, with the reason.
    """

    name: str
    observed_at: datetime
    nodes: tuple[NodeFacts, ...]
    pods: tuple[PodFacts, ...]
    events: tuple[Event, ...]
    others: Mapping[str, tuple[OtherObject, ...]]
    read_kinds: frozenset[str]
    unreadable: tuple[Unreadable, ...]

    def knows(self, kind: str) -> bool:
        """True when all objects of ``kind`` were read (there may be none)."""
        return kind in self.read_kinds

    @property
    def gpu_nodes(self) -> tuple[NodeFacts, ...]:
        """Nodes that have a GPU, as far as anything tells."""
        return tuple(node for node in self.nodes if node.is_gpu_node)

    def node(self, name: str) -> NodeFacts | None:
        """The node called ``name``."""
        return next((node for node in self.nodes if node.name == name), None)

    def events_of(self, ref: ObjectRef) -> tuple[Event, ...]:
        """Events about an object, oldest first."""
        raise NotImplementedError


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
) -> ClusterFacts:
    """Derive and index the facts of one cluster."""
    raise NotImplementedError
