"""Facts about nodes and their GPUs."""

from typing import Any

from rules.custom.pods import POD
from rules.custom.scene import annotations_of, fact, total
from rules.custom.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP, ListOf, MapOf, Shape
from rules.facts.model import GpuResource, NodeFacts
from rules.facts.objects import NodeSystemInfo


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


TAINT = Shape(
    "taint",
    {
        "key": fact(STRING, lambda _, taint: taint.key, "its key"),
        "value": fact(STRING, lambda _, taint: taint.value or "", "its value; empty when it has none"),
        "effect": fact(STRING, lambda _, taint: taint.effect, "`NoSchedule`, `PreferNoSchedule` or `NoExecute`"),
    },
)

GPU_RESOURCE = Shape(
    "GPU resource",
    {
        "name": fact(STRING, lambda _, item: item.name, "for example `nvidia.com/gpu` or `nvidia.com/mig-1g.5gb`"),
        "capacity": fact(INT, lambda _, item: item.capacity, "units that the node has", maybe=True),
        "allocatable": fact(INT, lambda _, item: item.allocatable, "units that pods can get", maybe=True),
        "requested": fact(INT, lambda _, item: item.requested, "units that pods hold", needs=("Pod",)),
        "free": fact(INT, lambda _, item: item.free, "allocatable less requested", needs=("Pod",), maybe=True),
    },
)

NODE_GPU = Shape(
    "node.gpu",
    {
        "present": fact(BOOL, lambda _, node: node.is_gpu_node, "whether anything says that the node has a GPU"),
        "count": fact(
            INT,
            lambda _, node: node.physical_gpus if node.is_gpu_node else 0,
            "cards, never shares of them; 0 on nodes without a GPU",
            maybe=True,
        ),
        "vendor": fact(
            STRING,
            lambda _, node: node.vendor if node.is_gpu_node else "",
            "`nvidia`, `amd`, `intel`, `habana` or `aws-neuron`; empty on nodes without a GPU",
            maybe=True,
        ),
        "product": fact(
            STRING,
            lambda _, node: node.product if node.is_gpu_node else "",
            "model as the labels name it, for example `NVIDIA-A100-SXM4-80GB`; empty on nodes without a GPU",
            maybe=True,
        ),
        "memory_mib": fact(INT, lambda _, node: node.gpu_memory_mib, "of one GPU", unit="MiB", maybe=True),
        "sharing": fact(
            STRING,
            lambda _, node: node.sharing.mode if node.is_gpu_node else "none",
            "`none`, `time-slicing`, `mps`, `mig-single`, `mig-mixed`, `partitioned` or `hami`",
            maybe=True,
        ),
        "replicas": fact(
            INT, lambda _, node: node.sharing.replicas, "units per GPU under time-slicing, MPS and HAMi", maybe=True
        ),
        "allocatable": fact(
            INT,
            lambda _, node: total(item.allocatable for item in _plain(node)),
            "units that pods can get, over all GPU resources of the node",
            maybe=True,
        ),
        "requested": fact(
            INT,
            lambda _, node: sum(item.requested for item in _plain(node)),
            "units that pods hold, over all GPU resources",
            needs=("Pod",),
        ),
        "free": fact(
            INT,
            lambda _, node: total(item.free for item in _plain(node)),
            "allocatable less requested",
            needs=("Pod",),
            maybe=True,
        ),
        "resources": fact(
            ListOf(GPU_RESOURCE), lambda _, node: list(node.resources), "the same, one by one, and devices of DRA"
        ),
    },
)

NODE = Shape(
    "node",
    {
        "name": fact(STRING, lambda _, node: node.name, "`metadata.name`"),
        "labels": fact(MapOf(STRING), lambda _, node: dict(node.labels), "`metadata.labels`"),
        "annotations": fact(
            MapOf(STRING), lambda _, node: annotations_of(node.node.metadata), "`metadata.annotations`"
        ),
        "created": fact(TIMESTAMP, lambda _, node: node.since, "`metadata.creationTimestamp`", unit="date", maybe=True),
        "age_seconds": fact(
            INT, lambda scene, node: scene.age(node.since), "since it was created", unit="s", maybe=True
        ),
        "ready": fact(BOOL, lambda _, node: node.ready, "condition Ready", maybe=True),
        "cordoned": fact(BOOL, lambda _, node: node.unschedulable, "`spec.unschedulable`"),
        "taints": fact(ListOf(TAINT), lambda _, node: _taints(node), "`spec.taints`"),
        "conditions": fact(
            MapOf(STRING), lambda _, node: _conditions(node), "status by type, for example `conditions.DiskPressure`"
        ),
        "gpu": fact(NODE_GPU, lambda _, node: node, "its GPUs"),
        "driver": fact(
            STRING,
            lambda _, node: node.driver_version,
            "kernel driver, for example `550.54`; see `olderThan`",
            maybe=True,
        ),
        "cuda_ceiling": fact(
            STRING, lambda _, node: node.cuda_ceiling, "newest CUDA that the driver supports", maybe=True
        ),
        "provider": fact(STRING, lambda _, node: node.provider, "for example `aws`, `gcp`, `coreweave`", maybe=True),
        "instance_type": fact(STRING, lambda _, node: node.instance_type, "for example `p5.48xlarge`", maybe=True),
        "region": fact(STRING, lambda _, node: node.region, "as the provider names it", maybe=True),
        "zone": fact(STRING, lambda _, node: node.zone, "as the provider names it", maybe=True),
        "pool": fact(STRING, lambda _, node: node.pool, "node pool or group", maybe=True),
        "spot": fact(BOOL, lambda _, node: node.spot, "whether it can be taken back at any time", maybe=True),
        "price_usd_hour": fact(
            DOUBLE,
            lambda _, node: None if node.price is None else float(node.price.usd_hour),
            "what a GPU node costs: contract price, else list price, else an estimate",
            unit="USD/h",
            maybe=True,
        ),
        "architecture": fact(STRING, lambda _, node: _system(node).architecture, "for example `amd64`", maybe=True),
        "os_image": fact(STRING, lambda _, node: _system(node).osImage, "as the kubelet reports it", maybe=True),
        "kernel": fact(STRING, lambda _, node: _system(node).kernelVersion, "as the kubelet reports it", maybe=True),
        "kubelet": fact(STRING, lambda _, node: _system(node).kubeletVersion, "for example `v1.34.2`", maybe=True),
        "container_runtime": fact(
            STRING,
            lambda _, node: _system(node).containerRuntimeVersion,
            "for example `containerd://2.1.4`",
            maybe=True,
        ),
        "pods": fact(
            ListOf(POD, "node.pods"), lambda _, node: list(node.pods), "its pods that are not finished", needs=("Pod",)
        ),
    },
)
