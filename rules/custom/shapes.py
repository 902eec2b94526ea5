"""The facts that expressions may name: one table per kind of thing, from which come types, values and documentation.

The tables are a promise to teams: a fact keeps its name, its type and its meaning. What is unknown is absent, never
null and never false; what is known to be nothing is an empty string, an empty list, or 0.
"""

from collections.abc import Mapping
from typing import Any

from rules.custom.nodes import GPU_RESOURCE, NODE, NODE_GPU, TAINT
from rules.custom.pods import CONTAINER, POD, POD_GPU, REFERENCE, images_of
from rules.custom.scene import Scene, annotations_of, fact, labels_of, total
from rules.custom.types import DOUBLE, INT, STRING, TIMESTAMP, ListOf, MapOf, Shape, Type
from rules.facts.workloads import Workload

__all__ = ["CLUSTER", "NODE", "POD", "SCOPES", "SHAPES", "VARIABLES", "WORKLOAD", "Scene", "Wanted", "view"]

SCOPES: Mapping[str, str] = {
    "node": "every node",
    "pod": "every pod that is not finished",
    "workload": "every controller of pods (Deployment, StatefulSet, DaemonSet, Job, CronJob, PyTorchJob ...)",
    "cluster": "the cluster as a whole, once",
}
"""What a rule of each scope is asked about."""


def _replicas(workload: Workload) -> int | None:
    if workload.object is None:
        return None
    wanted = (workload.object.spec or {}).get(
        "replicas", 1 if workload.ref.kind in ("Deployment", "StatefulSet") else None
    )
    return wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else None


WORKLOAD = Shape(
    "workload",
    {
        "kind": fact(STRING, lambda _, item: item.ref.kind, "for example `Deployment`"),
        "name": fact(STRING, lambda _, item: item.ref.name, "`metadata.name`"),
        "namespace": fact(STRING, lambda _, item: item.ref.namespace, "`metadata.namespace`"),
        "labels": fact(
            MapOf(STRING), lambda _, item: labels_of(item.metadata), "`metadata.labels` of its object", maybe=True
        ),
        "annotations": fact(
            MapOf(STRING),
            lambda _, item: annotations_of(item.metadata),
            "`metadata.annotations` of its object",
            maybe=True,
        ),
        "age_seconds": fact(
            INT,
            lambda scene, item: scene.age(item.metadata.creationTimestamp) if item.metadata else None,
            "since its object was created",
            unit="s",
            maybe=True,
        ),
        "replicas": fact(INT, lambda _, item: _replicas(item), "`spec.replicas`: how many pods it wants", maybe=True),
        "gpus_requested": fact(
            INT,
            lambda _, item: sum(sum(pod.gpu_requests.values()) for pod in item.pods),
            "GPU units that its unfinished pods ask for together",
        ),
        "images": fact(ListOf(STRING), lambda _, item: images_of(item.pods), "images of its pods, each once"),
        "pods": fact(ListOf(POD, "workload.pods"), lambda _, item: list(item.pods), "its pods that are not finished"),
    },
)

CLUSTER = Shape(
    "cluster",
    {
        "name": fact(STRING, lambda scene, _: scene.facts.name, "as the settings name it"),
        "observed_at": fact(
            TIMESTAMP, lambda scene, _: scene.facts.observed_at, "the moment that the facts are of", unit="date"
        ),
        "node_count": fact(INT, lambda scene, _: len(scene.facts.nodes), "nodes", needs=("Node",)),
        "gpu_node_count": fact(INT, lambda scene, _: len(scene.facts.gpu_nodes), "nodes with a GPU", needs=("Node",)),
        "gpu_count": fact(
            INT,
            lambda scene, _: total(node.physical_gpus for node in scene.facts.gpu_nodes),
            "cards of all GPU nodes",
            needs=("Node",),
            maybe=True,
        ),
        "price_usd_hour": fact(
            DOUBLE,
            lambda scene, _: _price(scene),
            "what all GPU nodes cost together; unknown while the price of one is",
            unit="USD/h",
            needs=("Node",),
            maybe=True,
        ),
        "nodes": fact(
            ListOf(NODE, "cluster.nodes"),
            lambda scene, _: list(scene.facts.nodes),
            "all nodes",
            needs=("Node",),
            only_in=("cluster",),
        ),
        "pods": fact(
            ListOf(POD, "cluster.pods"),
            lambda scene, _: [pod for pod in scene.facts.pods if not pod.terminal],
            "all pods that are not finished",
            needs=("Pod",),
            only_in=("cluster",),
        ),
        "workloads": fact(
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
