"""Small Kubernetes objects for tests, written as dictionaries and decoded like any other."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, build
from rules.facts.objects import Event, Node, OtherObject, Pod
from rules.facts.prices import PriceBook, bundled

DATA = Path(__file__).parents[2] / "data"
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def node(
    name: str = "n1",
    labels: Mapping[str, str] | None = None,
    gpus: Mapping[str, Any] | None = None,
    *,
    capacity: Mapping[str, Any] | None = None,
    provider_id: str | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"providerID": provider_id, "taints": list(taints)},
            "status": {"allocatable": gpus, "capacity": gpus if capacity is None else capacity},
        },
        Node,
    )


def container(requests: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests, "limits": requests}, **more}


def pod(
    name: str = "p1",
    *containers: Mapping[str, Any],
    on: str | None = "n1",
    phase: str = "Running",
    namespace: str = "default",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: str | None = None,
) -> Pod:
    owners = [{"kind": owner, "name": "owner", "controller": True}] if owner else None
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": annotations,
                "ownerReferences": owners,
            },
            "spec": {"nodeName": on, "containers": list(containers), **(spec or {})},
            "status": {"phase": phase, **(status or {})},
        },
        Pod,
    )


def other(kind: str, name: str, api_version: str = "v1", **fields: Any) -> OtherObject:
    namespace = fields.pop("namespace", None)
    labels = fields.pop("labels", None)
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return msgspec.convert({"kind": kind, "apiVersion": api_version, "metadata": metadata, **fields}, OtherObject)


def cluster(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    others: Mapping[str, Iterable[OtherObject]] | None = None,
    *,
    events: Iterable[Event] = (),
    prices: PriceBook | None = None,
) -> ClusterFacts:
    return build(
        "test",
        NOW,
        nodes=nodes,
        pods=pods,
        events=events,
        others=others,
        read_kinds={"Node", "Pod", "Event", *(others or {})},
        prices=bundled() if prices is None else prices,
    )


def facts_of(one: Node, *pods: Pod, prices: PriceBook | None = None) -> NodeFacts:
    return cluster([one], pods, prices=prices).nodes[0]
