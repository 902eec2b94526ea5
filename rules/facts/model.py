"""Facts about nodes and pods: what follows from their objects."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal, TypeVar, cast

import msgspec

from rules.facts.objects import Node, OwnerReference, Pod
from rules.facts.prices import Price
from rules.facts.resources import Form, Vendor, left
from rules.findings import ObjectRef

Derived = TypeVar("Derived")
SharingMode = Literal["none", "time-slicing", "mps", "mig-single", "mig-mixed", "partitioned", "hami"]
GpuEvidence = Literal["resource", "feature-label", "provider-label", "instance-type", "user-label"]


class GpuResource(msgspec.Struct, frozen=True):
    """One GPU resource that a node advertises, in the units of that resource (not always whole GPUs).

    Attributes:
        name: as the kubelet spells it, for example ``nvidia.com/gpu`` or ``nvidia.com/mig-1g.5gb``; for ``dra`` the
            driver, with the device type appended where it is not a whole GPU (``gpu.nvidia.com/mig``).
        form: ``device`` (the plain name of a vendor), ``shared`` (``.shared``), ``mig`` or ``partition``.
        capacity, allocatable: None when the node does not list the resource there. For ``dra`` the devices that are
            published, and those without a taint that keeps new claims away.
        requested: sum over pods that are bound to the node and not finished, as the scheduler counts them; for ``dra``
            the devices that claims hold, administrative access left out.
        origin: ``kubelet`` (device plugin) or ``dra`` (ResourceSlices).
    """

    name: str
    vendor: Vendor
    form: Form
    capacity: int | None
    allocatable: int | None
    requested: int
    origin: Literal["kubelet", "dra"] = "kubelet"

    @property
    def free(self) -> int | None:
        """Units that a new pod can get, never negative; None when the node lists no allocatable amount."""
        return None if self.allocatable is None else max(self.allocatable - self.requested, 0)


class Sharing(msgspec.Struct, frozen=True):
    """How the GPUs of a node are shared now.

    Attributes:
        mode: None when nothing on the node tells (feature discovery absent).
        replicas: units advertised per GPU under time-slicing, MPS and HAMi; None when unknown or not that mode.
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
        other_gpu_claim: how it may hold a GPU without such a request; None when it does not. ``dra-claim`` (also a
            claim that could not be resolved), ``fraction-annotation`` (KAI, Run:ai), ``hami-annotation``,
            ``gpu-memory-resource`` (HAMi, aliyun gpushare), ``vgpu-resource`` (Volcano), ``passthrough-resource``
            (KubeVirt), ``directx-resource`` (Windows), and, only for pods bound to a GPU node, ``visible-devices``
            (NVIDIA_VISIBLE_DEVICES) and ``device-mount`` (hostPath to the devices).
        controller: the ownerReference with controller=true.
        dra_devices: GPUs that its claims hold or ask for; None when it has no claims or nothing tells.
        marks: its rare traits (:mod:`rules.facts.marks`).
    """

    ref: ObjectRef
    pod: Pod
    phase: str
    node_name: str | None
    terminal: bool
    gpu_requests: Mapping[str, int]
    other_gpu_claim: str | None
    controller: OwnerReference | None
    dra_devices: int | None = None
    marks: int = 0

    @property
    def holds_gpu(self) -> bool:
        """True when it keeps a GPU (or may keep one by a way the scheduler does not count) on its node."""
        return self.node_name is not None and not self.terminal and bool(self.gpu_requests or self.other_gpu_claim)

    @property
    def is_daemon(self) -> bool:
        """True for pods that come with the node (DaemonSet pods and mirror pods of static manifests)."""
        return self.controller is not None and self.controller.kind in ("DaemonSet", "Node")

    @property
    def scheduling_gated(self) -> bool:
        """True when scheduling gates keep it out of the scheduler's queue: it waits for their owner, not for a node."""
        return self.node_name is None and bool(self.pod.spec and self.pod.spec.schedulingGates)


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A node and what follows from it. None is "unknown" everywhere.

    Attributes:
        ready: condition Ready; False also when the kubelet has stopped reporting (status Unknown).
        gpu_evidence: why it is taken for a GPU node: ``resource``, ``feature-label``, ``provider-label``,
            ``instance-type`` or ``user-label``; None when nothing says it has a GPU.
        product: GPU model as the labels name it, without suffixes of sharing; gpu_memory_mib: per GPU.
        physical_gpus: number of cards, never the number of shares.
        driver_version: kernel driver from feature-discovery labels, always with a minor number; driver_source: where
            it was read.
        cuda_ceiling: newest CUDA the driver reports to support ("12.4").
        provider: id of the provider in the catalogue (``aws``, ``gcp`` ...), from providerID, labels, or an instance
            type that only one provider has.
        spot: True, False, or None when neither labels nor taints tell.
        pool: name of the node pool or group.
        since: when the node was created.
        pods: pods bound to it that are not finished.
        last_gpu_release: latest end of a finished pod that held a GPU here, as far as such pods are still listed.
        price: price of the node per hour; None for nodes without a GPU.
    """

    ref: ObjectRef
    node: Node
    name: str
    labels: Mapping[str, str]
    ready: bool | None
    unschedulable: bool
    since: datetime | None
    gpu_evidence: GpuEvidence | None
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

    def remember(self, key: str, make: Callable[[], Derived]) -> Derived:
        """What several rules share of one node, made when first asked for. It must follow from the node and its pods
        alone: facts of a later moment may hold the same node."""
        known = self._remembered
        if key not in known:
            known[key] = make()
        return cast("Derived", known[key])

    @cached_property
    def _remembered(self) -> dict[str, object]:
        return {}

    @cached_property
    def left(self) -> Mapping[str, Decimal]:
        """What of every allocatable resource the pods leave, in base units (cores, bytes, GPUs), and under ``pods`` how
        many more pods it takes."""
        amounts = self.node.status.allocatable if self.node.status else None
        return left(amounts, (pod.pod.spec for pod in self.pods))

    @cached_property
    def gpu_pods(self) -> tuple[PodFacts, ...]:
        """Pods on the node that hold a GPU or may hold one."""
        return tuple(pod for pod in self.pods if pod.holds_gpu)
