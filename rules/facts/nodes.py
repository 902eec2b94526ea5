"""What follows from a node and the pods on it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from rules.facts.dra import Dra, DraGpu
from rules.facts.hardware import Hardware, gpu_amounts, hardware_of
from rules.facts.identity import ZONE, first, instance_type_of, pool_of, provider_of, region_of, spot_of
from rules.facts.model import GpuResource, NodeFacts, PodFacts
from rules.facts.objects import Node, OtherObject
from rules.facts.pods import ended_at
from rules.facts.prices import Price, PriceBook
from rules.facts.resources import Form, gpu_name
from rules.findings import ObjectRef

_NO_LABELS: Mapping[str, str] = {}
_DRA_FORMS: dict[str, Form] = {"gpu": "device", "vfio": "device", "mig": "mig"}


class BoundPods:
    """Pods of one node, gathered while all pods are gone through.

    Attributes:
        pods: those that are not finished.
        last_release: the latest end of a finished one that held a GPU.
    """

    __slots__ = ("last_release", "pods")

    def __init__(self) -> None:
        self.pods: list[PodFacts] = []
        self.last_release: datetime | None = None

    def ended(self, pod: PodFacts) -> None:
        """Note a finished pod that held a GPU: it holds nothing any more, and only tells when it let go."""
        end = ended_at(pod.pod)
        if end is not None and (self.last_release is None or end > self.last_release):
            self.last_release = end

    @property
    def requested(self) -> dict[str, int]:
        """What the pods request of GPUs together."""
        total: dict[str, int] = {}
        for pod in self.pods:
            for name, amount in pod.gpu_requests.items():
                total[name] = total.get(name, 0) + amount
        return total


class ReadNode(msgspec.Struct, frozen=True):
    """A node before its pods are known."""

    node: Node
    name: str
    labels: Mapping[str, str]
    provider: str | None
    instance_type: str | None
    hardware: Hardware


class NodeReader:
    """Reads nodes of one cluster.

    Args:
        prices: what nodes cost and what instance types hold.
        dra: slices and claims.
        machines: Machine objects, which name the pool of OpenShift nodes.
    """

    def __init__(self, prices: PriceBook, dra: Dra, machines: Iterable[OtherObject]) -> None:
        self._prices = prices
        self._dra = dra
        self._machines = {f"{item.metadata.namespace or ''}/{item.metadata.name}": item for item in machines}
        self._found: dict[tuple[object, ...], Price | None] = {}

    def read(self, node: Node) -> ReadNode:
        """What the node's own object tells."""
        labels = node.metadata.labels or _NO_LABELS
        name = node.metadata.name
        provider = provider_of(node.spec.providerID if node.spec else None, labels)
        instance_type = instance_type_of(labels, provider)
        provider = provider or self._prices.provider_of(instance_type)
        published = self._dra.gpus_by_node.get(name, ())
        hardware = hardware_of(
            node, labels, dra=published, prices=self._prices, provider=provider, instance_type=instance_type
        )
        return ReadNode(node, name, labels, provider, instance_type, hardware)

    def facts(self, read: ReadNode, bound: BoundPods) -> NodeFacts:
        """The node with its pods."""
        node, labels, hardware = read.node, read.labels, read.hardware
        region = region_of(labels, read.provider)
        spot = spot_of(node, labels)
        is_gpu = hardware.evidence is not None
        return NodeFacts(
            ref=ObjectRef("Node", "", read.name),
            node=node,
            name=read.name,
            labels=labels,
            ready=_ready(node),
            unschedulable=bool(node.spec and node.spec.unschedulable),
            since=node.metadata.creationTimestamp,
            gpu_evidence=hardware.evidence,
            vendor=hardware.vendor,
            product=hardware.product,
            gpu_memory_mib=hardware.memory_mib,
            physical_gpus=hardware.physical_gpus,
            resources=tuple(self._resources(read, bound)),
            sharing=hardware.sharing,
            driver_version=hardware.driver_version,
            driver_source=hardware.driver_source,
            cuda_ceiling=hardware.cuda_ceiling,
            provider=read.provider,
            instance_type=read.instance_type,
            region=region,
            zone=first(labels, ZONE),
            spot=spot,
            pool=pool_of(node, labels, read.provider, self._machines),
            pods=tuple(bound.pods),
            last_gpu_release=bound.last_release,
            price=self._price(read, region, spot) if is_gpu else None,
        )

    def _price(self, read: ReadNode, region: str | None, spot: bool | None) -> Price | None:
        hardware = read.hardware
        asked = (read.provider, read.instance_type, region, spot, hardware.product, hardware.physical_gpus)
        if asked not in self._found:
            self._found[asked] = self._prices.find(
                provider=read.provider,
                instance_type=read.instance_type,
                region=region,
                spot=spot,
                product=hardware.product,
                gpus=hardware.physical_gpus,
            )
        return self._found[asked]

    def _resources(self, read: ReadNode, bound: BoundPods) -> Iterator[GpuResource]:
        status = read.node.status
        capacity = gpu_amounts(status.capacity if status else None)
        allocatable = gpu_amounts(status.allocatable if status else None)
        requested = bound.requested
        for name in dict.fromkeys((*capacity, *allocatable, *requested)):
            known = gpu_name(name)
            if known is not None:
                yield GpuResource(
                    name=name,
                    vendor=known.vendor,
                    form=known.form,
                    capacity=capacity.get(name),
                    allocatable=allocatable.get(name),
                    requested=requested.get(name, 0),
                )
        published = self._dra.gpus_by_node.get(read.name)
        if published:
            yield from self._published(published, self._dra.held_by_node.get(read.name, set()))

    def _published(self, gpus: list[DraGpu], held: set[tuple[str, str, str]]) -> Iterator[GpuResource]:
        """Devices of slices, one resource per driver and type."""
        groups: dict[tuple[str, str], list[DraGpu]] = {}
        for gpu in gpus:
            groups.setdefault((gpu.device[0], gpu.form), []).append(gpu)
        for (driver, form), group in groups.items():
            yield GpuResource(
                name=driver if form == "gpu" else f"{driver}/{form}",
                vendor=group[0].vendor,
                form=_DRA_FORMS.get(form, "partition"),
                capacity=len(group),
                allocatable=sum(gpu.usable for gpu in group),
                requested=sum(gpu.device in held for gpu in group),
                origin="dra",
            )


def _ready(node: Node) -> bool | None:
    for condition in (node.status.conditions if node.status else None) or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return None
