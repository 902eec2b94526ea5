"""Small clusters for the tests of rules, through the same decoding and building as real ones."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rules.checks import RULES
from rules.engine import evaluate
from rules.facts.cluster import ClusterFacts, build
from rules.facts.decode import Objects, decode_objects, newest_timestamp
from rules.facts.prices import PriceBook, bundled
from rules.findings import Finding, Report
from rules.policy import Policy

DATA = Path(__file__).parents[2] / "data"
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
Plain = Mapping[str, Any]


@cache
def prices() -> PriceBook:
    return bundled()


def stamp(ago: timedelta) -> str:
    return (NOW - ago).isoformat().replace("+00:00", "Z")


def facts_of(objects: Objects, name: str, observed_at: datetime, read: Iterable[str] = ()) -> ClusterFacts:
    return build(
        name,
        observed_at,
        nodes=objects.nodes,
        pods=objects.pods,
        events=objects.events,
        others=objects.others,
        read_kinds={*objects.kinds, *read},
        prices=prices(),
    )


def cluster(
    *objects: Plain, observed_at: datetime = NOW, read: Iterable[str] = ("Node", "Pod", "Event")
) -> ClusterFacts:
    """A cluster of these objects; kinds in ``read`` count as read completely."""
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return facts_of(decode_objects(listed, "test"), "test", observed_at, read)


def report(*objects: Plain, policy: Policy | None = None, **how: Any) -> Report:
    return evaluate(cluster(*objects, **how), policy or Policy(), RULES)


def findings(rule: str, *objects: Plain, policy: Policy | None = None, **how: Any) -> list[Finding]:
    """Findings of one rule; a failing rule fails the test."""
    result = report(*objects, policy=policy, **how)
    assert result.failed_rules == ()
    return [item for item in result.findings if item.rule == rule]


def only(rule: str, *objects: Plain, **how: Any) -> Finding:
    found = findings(rule, *objects, **how)
    assert len(found) == 1, found
    return found[0]


def keys(finding: Finding) -> list[str]:
    """Keys of the finding's notes."""
    return [note.key for note in finding.notes]


def sample(path: Path) -> tuple[ClusterFacts, Report]:
    """A sample cluster or case of ``tests/data``, observed at its newest timestamp or, for clusters, at NOW."""
    file = path / "cluster.json" if path.is_dir() else path
    objects = decode_objects(file.read_bytes(), file.name)
    newest = newest_timestamp(objects)
    assert newest is not None
    facts = facts_of(objects, path.stem, max(NOW, newest) if path.is_file() else newest)
    return facts, evaluate(facts, Policy(), RULES)


def node(
    name: str = "gpu-1",
    *,
    gpus: Mapping[str, int | str] | None = None,
    capacity: Mapping[str, int | str] | None = None,
    age: timedelta = timedelta(days=10),
    ready: str = "True",
    ready_for: timedelta | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Plain] = (),
    annotations: Mapping[str, str] | None = None,
    conditions: Iterable[Plain] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A node with one whole GPU unless told otherwise."""
    allocatable = {"nvidia.com/gpu": 1} if gpus is None else gpus
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "creationTimestamp": stamp(age),
            "labels": {"nvidia.com/gpu.present": "true", "kubernetes.io/hostname": name}
            if labels is None
            else dict(labels),
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": list(taints), **spec},
        "status": {
            "capacity": {**amounts, **{key: str(value) for key, value in (capacity or allocatable).items()}},
            "allocatable": {**amounts, **{key: str(value) for key, value in allocatable.items()}},
            "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": stamp(ready_for or age)},
                *conditions,
            ],
            "nodeInfo": {"osImage": "Ubuntu 22.04.5 LTS", "kernelVersion": "6.8.0-90-generic"},
        },
    }


def pod(
    name: str = "train",
    *,
    namespace: str = "ml",
    on: str | None = None,
    gpus: Mapping[str, int] | None = None,
    image: str = "apps/train:1",
    phase: str | None = None,
    age: timedelta = timedelta(hours=2),
    owner: tuple[str, str] | None = None,
    status: Plain | None = None,
    message: str | None = None,
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod; bound and running when ``on`` is given, else pending."""
    limits = {key: str(value) for key, value in (gpus or {}).items()}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": stamp(age),
        "labels": dict(labels or {}),
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}
        ]
    container = {
        "name": "main",
        "image": image,
        "resources": {"limits": limits, "requests": limits},
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
    }
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {
            "phase": phase or ("Running" if on else "Pending"),
            **({"conditions": conditions} if message else {}),
            **(status or {}),
        },
    }


def event(reason: str, message: str, about: Plain, *, component: str, ago: timedelta = timedelta(minutes=5)) -> Plain:
    """An Event about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['metadata']['name']}.{reason}", "namespace": "ml"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {
            "kind": about["kind"],
            "namespace": about["metadata"].get("namespace"),
            "name": about["metadata"]["name"],
        },
        "source": {"component": component},
        "lastTimestamp": stamp(ago),
    }


def daemon_set(name: str, image: str, **pod_spec: Any) -> dict[str, Any]:
    """A DaemonSet with one container."""
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}], **pod_spec}}},
    }


def container_status(
    *,
    waiting: str | None = None,
    restarts: int = 0,
    said: str | None = None,
    up: timedelta | None = None,
    ready: bool = False,
) -> dict[str, Any]:
    """``status`` of a pod whose container waits for ``waiting`` or has been up for ``up``."""
    state: dict[str, Any] = {}
    if waiting:
        state = {"waiting": {"reason": waiting}}
    elif up is not None:
        state = {"running": {"startedAt": stamp(up)}}
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": said}} if said else {}
    return {
        "containerStatuses": [
            {"name": "main", "ready": ready, "restartCount": restarts, "state": state, "lastState": last}
        ]
    }
