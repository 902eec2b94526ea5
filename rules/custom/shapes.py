"""The facts that expressions may name: one table per kind of thing, from which come types, values and documentation.

The tables are a promise to teams: a fact keeps its name, its type and its meaning. What is unknown is absent, never
null and never false; what is known to be nothing is an empty string, an empty list, or 0.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rules.custom.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP, Fact, ListOf, MapOf, Shape, Type
from rules.facts.cluster import ClusterFacts
from rules.facts.model import GpuResource, NodeFacts, PodFacts
from rules.facts.objects import Container, ContainerStatus, NodeSystemInfo, ObjectMeta
from rules.facts.workloads import Workload, Workloads, workloads_of
from rules.findings import ObjectRef

SCOPES: Mapping[str, str] = {
    "node": "every node",
    "pod": "every pod that is not finished",
    "workload": "every controller of pods (Deployment, StatefulSet, DaemonSet, Job, CronJob, PyTorchJob ...)",
    "cluster": "the cluster as a whole, once",
}
"""What a rule of each scope is asked about."""


class Scene(msgspec.Struct, frozen=True):
    """What facts are read from."""

    facts: ClusterFacts

    @property
    def workloads(self) -> Workloads:
        """Of the cluster."""
        return workloads_of(self.facts)

    def age(self, since: datetime | None) -> int | None:
        """Whole seconds from ``since`` to the moment of observation."""
        return None if since is None else max(0, int((self.facts.observed_at - since).total_seconds()))


def _fact(type_: Type, read: Any, says: str, **more: Any) -> Fact:
    return Fact(type=type_, read=read, says=says, **more)


def _labels(metadata: ObjectMeta | None) -> dict[str, str] | None:
    return None if metadata is None else dict(metadata.labels or {})


def _annotations(metadata: ObjectMeta | None) -> dict[str, str] | None:
    return None if metadata is None else dict(metadata.annotations or {})


def _sum(amounts: Iterable[int | None]) -> int | None:
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)


def _plain(node: NodeFacts) -> list[GpuResource]:
    """Resources that count cards or shares of them; two names for one card never count twice."""
    return [item for item in node.resources if item.origin == "kubelet"] or list(node.resources)


def _system(node: NodeFacts) -> NodeSystemInfo:
    return (node.node.status.nodeInfo if node.node.status else None) or NodeSystemInfo()


def _conditions(node: NodeFacts) -> dict[str, str]:
    conditions = (node.node.status.conditions if node.node.status else None) or ()
    return {item.type: item.status for item in conditions}


def _taints(node: NodeFacts) -> list[Any]:
    return list((node.node.spec.taints if node.node.spec else None) or ())


def _containers(pod: PodFacts) -> list[Container]:
    spec = pod.pod.spec
    return [*(spec.initContainers or ()), *(spec.containers or ())] if spec else []


def _statuses(pod: PodFacts) -> list[ContainerStatus]:
    status = pod.pod.status
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())] if status else []


def _waiting(pod: PodFacts) -> list[str]:
    states = (item.state.waiting for item in _statuses(pod) if item.state and item.state.waiting)
    return sorted({state.reason for state in states if state.reason})


def _images(pods: Iterable[PodFacts]) -> list[str]:
    return sorted({item.image for pod in pods for item in _containers(pod) if item.image})


def _replicas(workload: Workload) -> int | None:
    if workload.object is None:
        return None
    wanted = (workload.object.spec or {}).get(
        "replicas", 1 if workload.ref.kind in ("Deployment", "StatefulSet") else None
    )
    return wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else None


def _spec_text(name: str) -> Any:
    return lambda _, pod: (getattr(pod.pod.spec, name) or "") if pod.pod.spec else ""


TAINT = Shape(
    "taint",
    {
        "key": _fact(STRING, lambda _, taint: taint.key, "its key"),
        "value": _fact(STRING, lambda _, taint: taint.value or "", "its value; empty when it has none"),
        "effect": _fact(STRING, lambda _, taint: taint.effect, "`NoSchedule`, `PreferNoSchedule` or `NoExecute`"),
    },
)

REFERENCE = Shape(
    "owner",
    {
        "kind": _fact(STRING, lambda _, ref: ref.kind, "for example `Deployment`; empty when there is none"),
        "name": _fact(STRING, lambda _, ref: ref.name, "its name; empty when there is none"),
    },
)
_NOBODY = ObjectRef("", "", "")

CONTAINER = Shape(
    "container",
    {
        "name": _fact(STRING, lambda _, item: item.name, "its name"),
        "image": _fact(STRING, lambda _, item: item.image or "", "as the pod names it"),
        "command": _fact(ListOf(STRING), lambda _, item: list(item.command or ()), "`command`; empty when it has none"),
        "args": _fact(ListOf(STRING), lambda _, item: list(item.args or ()), "`args`; empty when it has none"),
        "env": _fact(
            MapOf(STRING),
            lambda _, item: {each.name: each.value for each in item.env or () if each.value is not None},
            "variables with a value of their own; those that come from a Secret, ConfigMap or field are left out",
        ),
        "privileged": _fact(
            BOOL, lambda _, item: (item.securityContext or {}).get("privileged") is True, "`securityContext.privileged`"
        ),
    },
)

POD_GPU = Shape(
    "pod.gpu",
    {
        "requested": _fact(
            INT,
            lambda _, pod: sum(pod.gpu_requests.values()),
            "GPU units it asks for, over all GPU resources, as the scheduler counts them; 0 when it asks for none",
            unit="",
        ),
        "resources": _fact(
            MapOf(INT), lambda _, pod: dict(pod.gpu_requests), 'the same by name, for example `{"nvidia.com/gpu": 2}`'
        ),
        "claim": _fact(
            STRING,
            lambda _, pod: pod.other_gpu_claim or "",
            "how it may hold a GPU without such a request (`dra-claim`, `fraction-annotation`, `visible-devices` ...); "
            "empty when it does not",
        ),
        "holds": _fact(BOOL, lambda _, pod: pod.holds_gpu, "whether it keeps a GPU on its node, in any of these ways"),
    },
)

POD = Shape(
    "pod",
    {
        "name": _fact(STRING, lambda _, pod: pod.ref.name, "`metadata.name`"),
        "namespace": _fact(STRING, lambda _, pod: pod.ref.namespace, "`metadata.namespace`"),
        "labels": _fact(MapOf(STRING), lambda _, pod: _labels(pod.pod.metadata), "`metadata.labels`"),
        "annotations": _fact(MapOf(STRING), lambda _, pod: _annotations(pod.pod.metadata), "`metadata.annotations`"),
        "created": _fact(
            TIMESTAMP,
            lambda _, pod: pod.pod.metadata.creationTimestamp,
            "`metadata.creationTimestamp`",
            unit="date",
            maybe=True,
        ),
        "age_seconds": _fact(
            INT,
            lambda scene, pod: scene.age(pod.pod.metadata.creationTimestamp),
            "since it was created",
            unit="s",
            maybe=True,
        ),
        "phase": _fact(STRING, lambda _, pod: pod.phase, "`Pending`, `Running` or `Unknown`"),
        "node": _fact(STRING, lambda _, pod: pod.node_name or "", "name of its node; empty while it has none"),
        "gpu": _fact(POD_GPU, lambda _, pod: pod, "what it wants of GPUs"),
        "images": _fact(ListOf(STRING), lambda _, pod: _images([pod]), "images of all its containers, each once"),
        "containers": _fact(
            ListOf(CONTAINER), lambda _, pod: _containers(pod), "init containers first, then the others"
        ),
        "owner": _fact(
            REFERENCE, lambda _, pod: pod.controller or _NOBODY, "its controller, for example a ReplicaSet or a Job"
        ),
        "workload": _fact(
            REFERENCE,
            lambda scene, pod: scene.workloads.of(pod) or _NOBODY,
            "what it comes from in the end: the Deployment of its ReplicaSet, the CronJob of its Job",
        ),
        "restarts": _fact(
            INT,
            lambda _, pod: sum(item.restartCount or 0 for item in _statuses(pod)),
            "how often its containers were started again",
        ),
        "waiting": _fact(
            ListOf(STRING), lambda _, pod: _waiting(pod), "why containers wait, for example `CrashLoopBackOff`"
        ),
        "priority_class": _fact(STRING, _spec_text("priorityClassName"), "`spec.priorityClassName`; empty when none"),
        "scheduler": _fact(STRING, _spec_text("schedulerName"), "`spec.schedulerName`; empty when none is named"),
        "runtime_class": _fact(STRING, _spec_text("runtimeClassName"), "`spec.runtimeClassName`; empty when none"),
        "node_selector": _fact(
            MapOf(STRING),
            lambda _, pod: dict((pod.pod.spec.nodeSelector or {}) if pod.pod.spec else {}),
            "`spec.nodeSelector`",
        ),
        "host_network": _fact(
            BOOL, lambda _, pod: bool(pod.pod.spec and pod.pod.spec.hostNetwork), "`spec.hostNetwork`"
        ),
    },
)

GPU_RESOURCE = Shape(
    "GPU resource",
    {
        "name": _fact(STRING, lambda _, item: item.name, "for example `nvidia.com/gpu` or `nvidia.com/mig-1g.5gb`"),
        "capacity": _fact(INT, lambda _, item: item.capacity, "units that the node has", maybe=True),
        "allocatable": _fact(INT, lambda _, item: item.allocatable, "units that pods can get", maybe=True),
        "requested": _fact(INT, lambda _, item: item.requested, "units that pods hold", needs=("Pod",)),
        "free": _fact(INT, lambda _, item: item.free, "allocatable less requested", needs=("Pod",), maybe=True),
    },
)

NODE_GPU = Shape(
    "node.gpu",
    {
        "present": _fact(BOOL, lambda _, node: node.is_gpu_node, "whether anything says that the node has a GPU"),
        "count": _fact(
            INT,
            lambda _, node: node.physical_gpus if node.is_gpu_node else 0,
            "cards, never shares of them; 0 on nodes without a GPU",
            maybe=True,
        ),
        "vendor": _fact(
            STRING,
            lambda _, node: node.vendor if node.is_gpu_node else "",
            "`nvidia`, `amd`, `intel`, `habana` or `aws-neuron`; empty on nodes without a GPU",
            maybe=True,
        ),
        "product": _fact(
            STRING,
            lambda _, node: node.product if node.is_gpu_node else "",
            "model as the labels name it, for example `NVIDIA-A100-SXM4-80GB`; empty on nodes without a GPU",
            maybe=True,
        ),
        "memory_mib": _fact(INT, lambda _, node: node.gpu_memory_mib, "of one GPU", unit="MiB", maybe=True),
        "sharing": _fact(
            STRING,
            lambda _, node: node.sharing.mode if node.is_gpu_node else "none",
            "`none`, `time-slicing`, `mps`, `mig-single`, `mig-mixed`, `partitioned` or `hami`",
            maybe=True,
        ),
        "replicas": _fact(
            INT, lambda _, node: node.sharing.replicas, "units per GPU under time-slicing, MPS and HAMi", maybe=True
        ),
        "allocatable": _fact(
            INT,
            lambda _, node: _sum(item.allocatable for item in _plain(node)),
            "units that pods can get, over all GPU resources of the node",
            maybe=True,
        ),
        "requested": _fact(
            INT,
            lambda _, node: sum(item.requested for item in _plain(node)),
            "units that pods hold, over all GPU resources",
            needs=("Pod",),
        ),
        "free": _fact(
            INT,
            lambda _, node: _sum(item.free for item in _plain(node)),
            "allocatable less requested",
            needs=("Pod",),
            maybe=True,
        ),
        "resources": _fact(
            ListOf(GPU_RESOURCE), lambda _, node: list(node.resources), "the same, one by one, and devices of DRA"
        ),
    },
)

NODE = Shape(
    "node",
    {
        "name": _fact(STRING, lambda _, node: node.name, "`metadata.name`"),
        "labels": _fact(MapOf(STRING), lambda _, node: dict(node.labels), "`metadata.labels`"),
        "annotations": _fact(MapOf(STRING), lambda _, node: _annotations(node.node.metadata), "`metadata.annotations`"),
        "created": _fact(
            TIMESTAMP, lambda _, node: node.since, "`metadata.creationTimestamp`", unit="date", maybe=True
        ),
        "age_seconds": _fact(
            INT, lambda scene, node: scene.age(node.since), "since it was created", unit="s", maybe=True
        ),
        "ready": _fact(BOOL, lambda _, node: node.ready, "condition Ready", maybe=True),
        "cordoned": _fact(BOOL, lambda _, node: node.unschedulable, "`spec.unschedulable`"),
        "taints": _fact(ListOf(TAINT), lambda _, node: _taints(node), "`spec.taints`"),
        "conditions": _fact(
            MapOf(STRING), lambda _, node: _conditions(node), "status by type, for example `conditions.DiskPressure`"
        ),
        "gpu": _fact(NODE_GPU, lambda _, node: node, "its GPUs"),
        "driver": _fact(
            STRING,
            lambda _, node: node.driver_version,
            "kernel driver, for example `550.54`; see `olderThan`",
            maybe=True,
        ),
        "cuda_ceiling": _fact(
            STRING, lambda _, node: node.cuda_ceiling, "newest CUDA that the driver supports", maybe=True
        ),
        "provider": _fact(STRING, lambda _, node: node.provider, "for example `aws`, `gcp`, `coreweave`", maybe=True),
        "instance_type": _fact(STRING, lambda _, node: node.instance_type, "for example `p5.48xlarge`", maybe=True),
        "region": _fact(STRING, lambda _, node: node.region, "as the provider names it", maybe=True),
        "zone": _fact(STRING, lambda _, node: node.zone, "as the provider names it", maybe=True),
        "pool": _fact(STRING, lambda _, node: node.pool, "node pool or group", maybe=True),
        "spot": _fact(BOOL, lambda _, node: node.spot, "whether it can be taken back at any time", maybe=True),
        "price_usd_hour": _fact(
            DOUBLE,
            lambda _, node: None if node.price is None else float(node.price.usd_hour),
            "what a GPU node costs: contract price, else list price, else an estimate",
            unit="USD/h",
            maybe=True,
        ),
        "architecture": _fact(STRING, lambda _, node: _system(node).architecture, "for example `amd64`", maybe=True),
        "os_image": _fact(STRING, lambda _, node: _system(node).osImage, "as the kubelet reports it", maybe=True),
        "kernel": _fact(STRING, lambda _, node: _system(node).kernelVersion, "as the kubelet reports it", maybe=True),
        "kubelet": _fact(STRING, lambda _, node: _system(node).kubeletVersion, "for example `v1.34.2`", maybe=True),
        "container_runtime": _fact(
            STRING,
            lambda _, node: _system(node).containerRuntimeVersion,
            "for example `containerd://2.1.4`",
            maybe=True,
        ),
        "pods": _fact(
            ListOf(POD, "node.pods"), lambda _, node: list(node.pods), "its pods that are not finished", needs=("Pod",)
        ),
    },
)

WORKLOAD = Shape(
    "workload",
    {
        "kind": _fact(STRING, lambda _, item: item.ref.kind, "for example `Deployment`"),
        "name": _fact(STRING, lambda _, item: item.ref.name, "`metadata.name`"),
        "namespace": _fact(STRING, lambda _, item: item.ref.namespace, "`metadata.namespace`"),
        "labels": _fact(
            MapOf(STRING), lambda _, item: _labels(item.metadata), "`metadata.labels` of its object", maybe=True
        ),
        "annotations": _fact(
            MapOf(STRING),
            lambda _, item: _annotations(item.metadata),
            "`metadata.annotations` of its object",
            maybe=True,
        ),
        "age_seconds": _fact(
            INT,
            lambda scene, item: scene.age(item.metadata.creationTimestamp) if item.metadata else None,
            "since its object was created",
            unit="s",
            maybe=True,
        ),
        "replicas": _fact(INT, lambda _, item: _replicas(item), "`spec.replicas`: how many pods it wants", maybe=True),
        "gpus_requested": _fact(
            INT,
            lambda _, item: sum(sum(pod.gpu_requests.values()) for pod in item.pods),
            "GPU units that its unfinished pods ask for together",
        ),
        "images": _fact(ListOf(STRING), lambda _, item: _images(item.pods), "images of its pods, each once"),
        "pods": _fact(ListOf(POD, "workload.pods"), lambda _, item: list(item.pods), "its pods that are not finished"),
    },
)

CLUSTER = Shape(
    "cluster",
    {
        "name": _fact(STRING, lambda scene, _: scene.facts.name, "as the settings name it"),
        "observed_at": _fact(
            TIMESTAMP, lambda scene, _: scene.facts.observed_at, "the moment that the facts are of", unit="date"
        ),
        "node_count": _fact(INT, lambda scene, _: len(scene.facts.nodes), "nodes", needs=("Node",)),
        "gpu_node_count": _fact(INT, lambda scene, _: len(scene.facts.gpu_nodes), "nodes with a GPU", needs=("Node",)),
        "gpu_count": _fact(
            INT,
            lambda scene, _: _sum(node.physical_gpus for node in scene.facts.gpu_nodes),
            "cards of all GPU nodes",
            needs=("Node",),
            maybe=True,
        ),
        "price_usd_hour": _fact(
            DOUBLE,
            lambda scene, _: _price(scene),
            "what all GPU nodes cost together; unknown while the price of one is",
            unit="USD/h",
            needs=("Node",),
            maybe=True,
        ),
        "nodes": _fact(
            ListOf(NODE, "cluster.nodes"),
            lambda scene, _: list(scene.facts.nodes),
            "all nodes",
            needs=("Node",),
            only_in=("cluster",),
        ),
        "pods": _fact(
            ListOf(POD, "cluster.pods"),
            lambda scene, _: [pod for pod in scene.facts.pods if not pod.terminal],
            "all pods that are not finished",
            needs=("Pod",),
            only_in=("cluster",),
        ),
        "workloads": _fact(
            ListOf(WORKLOAD, "cluster.workloads"),
            lambda scene, _: list(scene.workloads),
            "all workloads",
            needs=("Pod",),
            only_in=("cluster",),
        ),
    },
)


def _price(scene: Scene) -> float | None:
    prices = [node.price.usd_hour if node.price else None for node in scene.facts.gpu_nodes]
    return None if None in prices else float(sum(price for price in prices if price is not None))


VARIABLES: Mapping[str, Mapping[str, Shape]] = {
    "node": {"node": NODE, "cluster": CLUSTER},
    "pod": {"pod": POD, "node": NODE, "cluster": CLUSTER},
    "workload": {"workload": WORKLOAD, "cluster": CLUSTER},
    "cluster": {"cluster": CLUSTER},
}
"""Names in an expression, by scope. In scope ``pod``, ``node`` is the node of the pod, unknown while it has none."""

SHAPES: tuple[Shape, ...] = (
    NODE,
    NODE_GPU,
    GPU_RESOURCE,
    TAINT,
    POD,
    POD_GPU,
    CONTAINER,
    REFERENCE,
    WORKLOAD,
    CLUSTER,
)
"""All tables, in the order of the documentation."""

Wanted = Mapping[str, frozenset[str]]
"""Facts that are read, by name of their shape: what an expression does not name is not worked out."""


def view(scene: Scene, shape: Shape, thing: Any, wanted: Wanted) -> dict[str, Any]:
    """The ``wanted`` facts of ``thing`` as expressions see them; unknown ones are absent."""
    seen: dict[str, Any] = {}
    for name in wanted.get(shape.name, ()):
        fact = shape.facts[name]
        value = fact.read(scene, thing)
        if value is not None:
            seen[name] = _value(scene, fact.type, value, wanted)
    return seen


def _value(scene: Scene, type_: Type, value: Any, wanted: Wanted) -> Any:
    if isinstance(type_, Shape):
        return view(scene, type_, value, wanted)
    if isinstance(type_, ListOf) and isinstance(type_.item, Shape):
        item = type_.item
        return [view(scene, item, each, wanted) for each in value]
    return value
