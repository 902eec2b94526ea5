"""Pods of the big cluster: 5 % want GPUs, the others are what every cluster runs."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from tests.benchmarks import big_nodes
from tests.benchmarks.big_pod_shapes import GPU_APPS, Look, pod_text
from tests.benchmarks.big_text import ago, digest, image_digest, suffix, uid

EVERYWHERE = ("aws-node", "kube-proxy", "node-exporter", "fluent-bit")
ON_GPU_NODES = (
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
    "nvidia-dcgm-exporter",
    "nvidia-container-toolkit-daemonset",
    "nvidia-driver-daemonset",
    "nvidia-operator-validator",
    "node-feature-discovery-worker",
)
REPLICAS = 12
"""Pods of a Deployment without GPUs."""
TEAMS = 40

_FILLINGS = ((1,) * 8, (4, 4), (8,), (2, 2, 2, 2), (1,) * 8, (1, 1, 1, 1, 2), (1,) * 8, (), (4, 2, 1), (1,) * 8)
"""What pods hold of the GPUs of the nodes, in turn."""


class Planned(msgspec.Struct, frozen=True, order=True):
    """A pod that is to be written.

    Attributes:
        look: what it looks like.
        node: number of its node; -1 while it waits for one.
        gpus: that it asks for.
        variant: tells waiting pods apart.
    """

    namespace: str
    name: str
    number: int
    app: str
    look: Look
    node: int = -1
    gpus: int = 0
    variant: int = 0


class Numbers(msgspec.Struct, frozen=True):
    """How many pods there are of what."""

    daemon: int
    gpu: int
    waiting: int
    crashing: int
    finished: int
    plain: int


@cache
def numbers(nodes: int, pods: int) -> Numbers:
    """The parts of a cluster.

    Raises:
        ValueError: fewer pods than DaemonSets alone run on so many nodes.
    """
    gpu_nodes = -(-nodes // big_nodes.GPU_EVERY)
    daemon = nodes * len(EVERYWHERE) + gpu_nodes * len(ON_GPU_NODES)
    gpu = pods // 20
    if daemon + gpu > pods:
        raise ValueError(f"{nodes} nodes need more than {daemon + gpu} pods; {pods} were asked for")
    return Numbers(daemon, gpu, min(400, gpu // 8), gpu // 80, gpu // 20, pods - daemon - gpu)


@cache
def plan(nodes: int, pods: int) -> tuple[Planned, ...]:
    """All pods, in the order in which the API server lists them: by namespace and name."""
    made = [*_daemons(nodes), *_with_gpus(nodes, pods), *_plain(nodes, numbers(nodes, pods).plain)]
    return tuple(sorted(made))


def pods(nodes: int, pods: int) -> Iterator[tuple[Planned, str]]:
    """Every pod with its JSON text, in the order of the API server."""
    for planned in plan(nodes, pods):
        yield planned, written(planned)


def written(pod: Planned, *, version: int | None = None, restarts: int = 0) -> str:
    """The JSON text of a pod; ``version`` and ``restarts`` tell what has changed of it."""
    number = pod.number
    template, image = pod_text(pod.app, pod.look, pod.gpus, pod.variant)
    started = 600 + number * 37 % 1_900_000
    return template % {
        "name": pod.name,
        "namespace": pod.namespace,
        "app": pod.app,
        "uid": uid(number, 2),
        "owner": owner_of(pod),
        "owner_uid": uid(number // REPLICAS, 3),
        "hash": suffix(number // REPLICAS, 9),
        "version": 2_000_000 + number if version is None else version,
        "created": ago(started + 40),
        "rolled": ago(600 + number // REPLICAS * 37 % 1_900_000),  # the same for all pods of a roll-out
        "started": ago(started),
        "recently": ago(number % 280),
        "node": big_nodes.node_name(pod.node) if pod.node >= 0 else "",
        "host_ip": f"10.{pod.node >> 16 & 255}.{pod.node >> 8 & 255}.{pod.node & 255}",
        "ip": f"100.{64 + (number >> 16 & 63)}.{number >> 8 & 255}.{number & 255}",
        "token": suffix(number, 5),
        "team": team_of(pod.namespace),
        "container": digest(number),
        "sidecar": digest(number + 1_000_000),
        "digest": image_digest(image),
        "restarts": restarts,
    }


def owner_of(pod: Planned) -> str:
    """Name of the object that made the pod."""
    return pod.app if pod.look == "daemon" else pod.name.rpartition("-")[0]


def team_of(namespace: str) -> str:
    """Who pays for a namespace."""
    return namespace.removesuffix("-ml")


def _daemons(nodes: int) -> Iterator[Planned]:
    kinds: list[tuple[str, str, tuple[str, ...]]] = [("kube-system", app, EVERYWHERE) for app in EVERYWHERE]
    kinds += [("gpu-operator", app, ON_GPU_NODES) for app in ON_GPU_NODES]
    for family, (namespace, app, where) in enumerate(kinds):
        for node in range(nodes):
            if where is EVERYWHERE or big_nodes.is_gpu(node):
                number = node * len(kinds) + family
                yield Planned(namespace, f"{app}-{suffix(number, 5)}", number, app, "daemon", node)


def _with_gpus(nodes: int, pods: int) -> Iterator[Planned]:
    parts = numbers(nodes, pods)
    first = 3_000_000
    running = parts.gpu - parts.waiting - parts.crashing - parts.finished
    places = _places(nodes)
    for number in range(parts.gpu):
        team = f"team-{number * 7 % TEAMS:02d}-ml"
        app = GPU_APPS[number * 5 % len(GPU_APPS)]
        name = f"{app}-{suffix(number // 4, 6)}-{suffix(number, 5)}"
        late = number - running
        gpu_node = number % -(-nodes // big_nodes.GPU_EVERY) * big_nodes.GPU_EVERY
        if late < 0 and (place := next(places, None)) is not None:
            node, gpus = place
            yield Planned(team, name, first + number, app, "running", node, gpus)
        elif late < 0 or late >= parts.waiting + parts.crashing:
            yield Planned(team, name, first + number, app, "finished", gpu_node, 1)
        elif late < parts.waiting:
            gpus = (1, 2, 4, 8, 16)[late % 5]
            yield Planned(team, name, first + number, app, "waiting", -1, gpus, late)
        else:
            yield Planned(team, name, first + number, app, "crashing", gpu_node, 1)


def _places(nodes: int) -> Iterator[tuple[int, int]]:
    """Nodes and how many GPUs a pod takes there."""
    for turn, node in enumerate(range(0, nodes, big_nodes.GPU_EVERY)):
        if not big_nodes.is_broken(node):
            for gpus in _FILLINGS[turn % len(_FILLINGS)]:
                yield node, gpus


def _plain(nodes: int, count: int) -> Iterator[Planned]:
    looks: tuple[Look, ...] = ("web", "web", "worker", "sidecar", "web", "worker", "cron")
    on = [node for node in range(nodes) if not big_nodes.is_gpu(node)]
    for number in range(count):
        workload = number // REPLICAS
        look: Any = looks[workload % len(looks)]
        app = f"{('billing', 'search', 'catalog', 'orders', 'users', 'media')[workload % 6]}-{look}-{workload % 997}"
        name = f"{app}-{suffix(workload, 9)}-{suffix(number, 5)}"
        yield Planned(f"team-{workload % TEAMS:02d}", name, 1_000_000 + number, app, look, on[number * 13 % len(on)])
