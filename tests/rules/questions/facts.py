"""Cluster facts built by hand for the tests of the answers."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from rules.facts.cluster import ClusterFacts, GpuResource, NodeFacts, PodFacts, Sharing
from rules.facts.marks import marks_of
from rules.facts.objects import Node, NodeStatus, ObjectMeta, OtherObject, Pod, PodSpec
from rules.findings import ObjectRef, Unreadable

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DRIVER_LABEL = "nvidia.com/cuda.driver-version.full"


def gpu_pod(name: str, node: str, gpus: int = 1, scheduler: str | None = None) -> PodFacts:
    ref = ObjectRef("Pod", "ml", name)
    pod = Pod(metadata=ObjectMeta(name=name, namespace="ml"), spec=PodSpec(nodeName=node, schedulerName=scheduler))
    requests = {"nvidia.com/gpu": gpus} if gpus else {}
    return PodFacts(ref, pod, "Running", node, False, requests, None, None, marks=marks_of(pod, None, "Running"))


def gpu_node(
    name: str,
    *,
    pool: str | None = None,
    gpus: int | None = 1,
    resources: Iterable[GpuResource] | None = None,
    sharing: Sharing | None = None,
    driver: str | None = "550.54.15",
    allocatable: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    ready: bool | None = True,
    pods: Iterable[PodFacts] = (),
    requested: int = 0,
) -> NodeFacts:
    if resources is None:
        resources = [GpuResource("nvidia.com/gpu", "nvidia", "device", gpus, gpus, requested)] if gpus else []
    return NodeFacts(
        ref=ObjectRef("Node", "", name),
        node=Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=dict(allocatable or {}))),
        name=name,
        labels={},
        ready=ready,
        unschedulable=unschedulable,
        since=None,
        gpu_evidence="resource",
        vendor="nvidia",
        product=None,
        gpu_memory_mib=None,
        physical_gpus=gpus,
        resources=tuple(resources),
        sharing=sharing or Sharing("none", source="nvidia.com/gpu.sharing-strategy"),
        driver_version=driver,
        driver_source=DRIVER_LABEL if driver else None,
        cuda_ceiling=None,
        provider=None,
        instance_type=None,
        region=None,
        zone=None,
        spot=None,
        pool=pool,
        pods=tuple(pods),
        last_gpu_release=None,
        price=None,
    )


def cluster(
    name: str = "prod",
    nodes: Iterable[NodeFacts] = (),
    *,
    pods: Iterable[PodFacts] = (),
    others: Mapping[str, Iterable[OtherObject]] | None = None,
    read: Iterable[str] = ("Node", "Pod"),
    unreadable: Iterable[Unreadable] = (),
    **more: Any,
) -> ClusterFacts:
    return ClusterFacts(
        name=name,
        observed_at=NOW,
        nodes=tuple(nodes),
        pods=tuple(pods),
        events=(),
        others={kind: tuple(items) for kind, items in (others or {}).items()},
        read_kinds=frozenset(read),
        unreadable=tuple(unreadable),
        **more,
    )


def other(kind: str, name: str, api_version: str = "", **spec: Any) -> OtherObject:
    return OtherObject(metadata=ObjectMeta(name=name), apiVersion=api_version, kind=kind, spec=spec or None)
