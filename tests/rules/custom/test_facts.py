"""The facts that expressions see: documented types, and nothing that is unknown."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from rules.custom.expression import Expression
from rules.custom.shapes import CLUSTER, NODE, POD, SHAPES, VARIABLES, WORKLOAD, Scene, view
from rules.custom.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP, ListOf, MapOf, Shape, Type
from rules.facts.cluster import ClusterFacts, NodeFacts, build
from rules.facts.objects import Node, OtherObject, Pod
from rules.facts.prices import bundled
from rules.facts.workloads import workloads_of
from rules.findings import ObjectRef
from tests.rules.custom.make import found
from tests.rules.facts.make import NOW

NODE_OBJECT = {
    "metadata": {
        "name": "gpu-1",
        "creationTimestamp": "2026-11-28T09:00:00Z",
        "annotations": {"note": "x"},
        "labels": {
            "team": "vision",
            "node.kubernetes.io/instance-type": "p5.48xlarge",
            "topology.kubernetes.io/region": "us-east-1",
            "topology.kubernetes.io/zone": "us-east-1a",
            "eks.amazonaws.com/nodegroup": "h100",
            "eks.amazonaws.com/capacityType": "ON_DEMAND",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/mig.strategy": "single",
            "nvidia.com/cuda.driver.major": "550",
            "nvidia.com/cuda.driver.minor": "54",
            "nvidia.com/cuda.driver.rev": "15",
            "nvidia.com/cuda.runtime.major": "12",
            "nvidia.com/cuda.runtime.minor": "4",
        },
    },
    "spec": {"providerID": "aws:///us-east-1a/i-1", "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"nvidia.com/gpu": "8"},
        "allocatable": {"nvidia.com/gpu": "7"},
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
        "nodeInfo": {
            "architecture": "amd64",
            "osImage": "Ubuntu 24.04",
            "kernelVersion": "6.8.0",
            "kubeletVersion": "v1.34.2",
            "containerRuntimeVersion": "containerd://2.1.4",
        },
    },
}


def pod_object(name: str, **more: Any) -> Pod:
    document = {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": "2026-11-30T08:00:00Z",
            "labels": {"app": "train"},
            "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
        },
        "spec": {
            "nodeName": "gpu-1",
            "priorityClassName": "high",
            "nodeSelector": {"pool": "h100"},
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "command": ["python"],
                    "env": [{"name": "A", "value": "1"}, {"name": "SECRET"}],
                    "securityContext": {"privileged": True},
                    "resources": {"limits": {"nvidia.com/gpu": "2"}},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            ],
        },
    }
    for key, value in more.items():
        document[key] = {**document[key], **value} if isinstance(value, dict) else value  # type: ignore[dict-item]
    return msgspec.convert(document, Pod)


JOB = msgspec.convert(
    {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": "train", "namespace": "ml", "labels": {"team": "vision"}},
        "spec": {"parallelism": 2},
    },
    OtherObject,
)
DEPLOYMENT = msgspec.convert(
    {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "serve", "namespace": "ml", "creationTimestamp": "2026-11-30T08:00:00Z"},
        "spec": {"replicas": 0},
    },
    OtherObject,
)


def cluster_of(*nodes: Any, pods: tuple[Pod, ...] = (), read: tuple[str, ...] = ("Node", "Pod")) -> ClusterFacts:
    return build(
        "prod",
        NOW,
        nodes=[msgspec.convert(node, Node) for node in nodes],
        pods=pods,
        others={"Job": [JOB], "Deployment": [DEPLOYMENT]},
        read_kinds=read,
        prices=bundled(),
    )


FULL = cluster_of(NODE_OBJECT, pods=(pod_object("train-1"), pod_object("done", status={"phase": "Succeeded"})))
BARE = cluster_of({"metadata": {"name": "bare"}}, pods=(msgspec.convert({"metadata": {"name": "bare"}}, Pod),))


def variables_of(expression: Expression, facts: ClusterFacts) -> dict[str, Any]:
    """What an expression about the first node sees."""
    scene, wanted = Scene(facts), expression.checked.wanted
    return {"node": view(scene, NODE, facts.nodes[0], wanted), "cluster": view(scene, CLUSTER, None, wanted)}


def everything(facts: ClusterFacts, shape: Shape, thing: Any) -> dict[str, Any]:
    wanted = {each.name: frozenset(each.facts) for each in SHAPES}
    return view(Scene(facts), shape, thing, wanted)


def conforms(value: Any, type_: Type) -> bool:
    match type_:
        case Shape():
            return all(name in type_.facts and conforms(item, type_.facts[name].type) for name, item in value.items())
        case ListOf():
            return isinstance(value, list) and all(conforms(item, type_.item) for item in value)
        case MapOf():
            return isinstance(value, dict) and all(
                isinstance(key, str) and conforms(item, type_.value) for key, item in value.items()
            )
    kinds = {BOOL: bool, INT: int, DOUBLE: float, STRING: str, TIMESTAMP: datetime}
    return type(value) is kinds[type_]


@pytest.mark.parametrize("facts", [FULL, BARE], ids=["everything is known", "hardly anything is known"])
def test_every_fact_has_the_type_that_is_documented(facts: ClusterFacts) -> None:
    for shape, things in (
        (NODE, facts.nodes),
        (POD, facts.pods),
        (WORKLOAD, tuple(workloads_of(facts))),
        (CLUSTER, (None,)),
    ):
        for thing in things:
            assert conforms(everything(facts, shape, thing), shape)


def test_of_a_full_node_everything_is_known() -> None:
    seen = everything(FULL, NODE, FULL.nodes[0])
    assert seen.keys() == NODE.facts.keys()
    assert seen["gpu"].keys() | {"replicas"} == NODE.facts["gpu"].type.facts.keys()  # type: ignore[union-attr]
    assert (seen["driver"], seen["cuda_ceiling"], seen["pool"], seen["spot"]) == ("550.54.15", "12.4", "h100", False)
    assert seen["gpu"]["present"] is True
    assert {key: seen["gpu"][key] for key in ("count", "allocatable", "requested", "free", "memory_mib")} == {
        "count": 8,
        "allocatable": 7,
        "requested": 2,
        "free": 5,
        "memory_mib": 81559,
    }
    assert seen["age_seconds"] == 2 * 86400
    assert seen["taints"] == [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]
    assert seen["conditions"]["DiskPressure"] == "False"
    assert seen["price_usd_hour"] > 10
    assert [pod["name"] for pod in seen["pods"]] == ["train-1"]


def test_of_a_bare_node_what_is_unknown_is_absent() -> None:
    seen = everything(BARE, NODE, BARE.nodes[0])
    absent = NODE.facts.keys() - seen.keys()
    assert absent == {
        *("created", "age_seconds", "ready", "driver", "cuda_ceiling", "provider", "instance_type", "region", "zone"),
        *("pool", "spot", "price_usd_hour", "architecture", "os_image", "kernel", "kubelet", "container_runtime"),
    }
    assert seen["gpu"] == {
        "present": False,
        "count": 0,
        "vendor": "",
        "product": "",
        "sharing": "none",
        "resources": [],
        "allocatable": 0,
        "requested": 0,
        "free": 0,
    }


def test_a_pod_shows_what_it_asks_for_and_where_it_comes_from() -> None:
    pod = FULL.pod("ml", "train-1")
    seen = everything(FULL, POD, pod)
    assert seen.keys() == POD.facts.keys()
    assert seen["gpu"] == {"requested": 2, "resources": {"nvidia.com/gpu": 2}, "claim": "", "holds": True}
    assert seen["images"] == ["fetch:1", "train:1"]
    assert seen["workload"] == seen["owner"] == {"kind": "Job", "name": "train"}
    assert (seen["restarts"], seen["waiting"], seen["priority_class"]) == (3, ["CrashLoopBackOff"], "high")
    assert seen["containers"][1]["env"] == {"A": "1"}
    assert seen["containers"][1]["privileged"] is True
    bare = everything(BARE, POD, BARE.pods[0])
    assert POD.facts.keys() - bare.keys() == {"created", "age_seconds"}
    assert (bare["node"], bare["workload"], bare["scheduler"]) == ("", {"kind": "", "name": ""}, "")


def test_workloads_are_found_with_and_without_pods_and_objects() -> None:
    alone = pod_object(
        "orphan", metadata={"ownerReferences": [{"kind": "RayCluster", "name": "r", "controller": True}]}
    )
    facts = cluster_of(NODE_OBJECT, pods=(pod_object("train-1"), alone))
    workloads = {item.ref.kind: everything(facts, WORKLOAD, item) for item in workloads_of(facts)}
    assert workloads.keys() == {"Deployment", "Job", "RayCluster"}
    assert (workloads["Job"]["gpus_requested"], workloads["Job"]["labels"]) == (2, {"team": "vision"})
    assert "replicas" not in workloads["Job"]
    assert (workloads["Deployment"]["replicas"], workloads["Deployment"]["pods"]) == (0, [])
    assert workloads["Deployment"]["age_seconds"] == 3600
    assert workloads["RayCluster"].keys() == {"kind", "name", "namespace", "gpus_requested", "images", "pods"}


def test_owners_in_a_ring_end() -> None:
    ring = [
        msgspec.convert(
            {
                "kind": "Loop",
                "metadata": {"name": one, "ownerReferences": [{"kind": "Loop", "name": other, "controller": True}]},
            },
            OtherObject,
        )
        for one, other in (("a", "b"), ("b", "a"))
    ]
    pod = msgspec.convert(
        {"metadata": {"name": "p", "ownerReferences": [{"kind": "Loop", "name": "a", "controller": True}]}}, Pod
    )
    facts = build("x", NOW, nodes=(), pods=[pod], others={"Loop": ring}, read_kinds=["Pod"], prices=bundled())
    assert workloads_of(facts).of(facts.pods[0]) == ObjectRef("Loop", "", "b")


def test_the_cluster_is_summed_up_and_a_sum_with_an_unknown_part_is_unknown() -> None:
    seen = everything(FULL, CLUSTER, None)
    assert (seen["gpu_node_count"], seen["gpu_count"], seen["node_count"]) == (1, 8, 1)
    assert seen["price_usd_hour"] == FULL.nodes[0].price.usd_hour  # type: ignore[union-attr]
    unknown = cluster_of(NODE_OBJECT, {"metadata": {"name": "x", "labels": {"nvidia.com/gpu.present": "true"}}})
    assert {"gpu_count", "price_usd_hour"} & everything(unknown, CLUSTER, None).keys() == set()


def test_only_what_an_expression_names_is_worked_out() -> None:
    expression = Expression("node.gpu.count > 1 && node.pods.exists(p, p.name == 'a')", "node")
    seen = variables_of(expression, FULL)
    assert seen == {"node": {"gpu": {"count": 8}, "pods": [{"name": "train-1"}]}, "cluster": {}}


@pytest.mark.parametrize(
    ("scope", "when", "expected"),
    [
        ("node", "node.gpu.present && node.driver.olderThan('560')", ["gpu-1"]),
        ("node", "node.taints.exists(t, t.key == 'nvidia.com/gpu' && t.effect == 'NoSchedule')", ["gpu-1"]),
        ("node", "node.labels.team == 'vision' && node.labels['team'] == 'vision'", ["gpu-1"]),
        ("node", "node.labels.get('owner', '') == ''", ["gpu-1"]),
        ("node", "node.labels.exists(key, key.startsWith('nvidia.com/'))", ["gpu-1"]),
        ("node", "node.created < cluster.observed_at - duration('36h')", ["gpu-1"]),
        ("node", "node.price_usd_hour / double(node.gpu.count) > 1.0", ["gpu-1"]),
        ("node", "node.gpu.resources.map(r, r.free).sum() >= 5", ["gpu-1"]),
        ("node", "double(node.gpu.free) > 0.5 * double(node.gpu.allocatable)", ["gpu-1"]),
        ("node", 'node.kubelet.matches("^v1\\\\.3[0-4]\\\\.") && node.conditions.DiskPressure == "False"', ["gpu-1"]),
        ("pod", "pod.gpu.requested > 0 && node.gpu.count == 8", ["train-1"]),
        ("pod", "pod.containers.exists(c, c.privileged)", ["train-1"]),
        ("pod", "pod.images.exists(i, i.endsWith(':latest'))", []),
        ("workload", "workload.gpus_requested > 0 && workload.kind == 'Job'", ["train"]),
        ("workload", "workload.kind == 'Deployment' && workload.replicas == 0", ["serve"]),
        ("cluster", "cluster.gpu_count > 4 && cluster.pods.size() == 1", [""]),
        ("cluster", "cluster.nodes.exists(n, n.pods.exists(p, p.gpu.holds))", [""]),
        ("cluster", "sum(cluster.workloads.map(w, w.gpus_requested)) == 2", [""]),
        ("cluster", "cluster.nodes.all(n, n.ready) ? cluster.node_count > 1 : true", []),
    ],
)
def test_conditions_that_teams_write(scope: str, when: str, expected: list[str]) -> None:
    assert found(FULL, when, scope) == expected


def test_ages_are_never_negative() -> None:
    young: Mapping[str, Any] = {"metadata": {"name": "n", "creationTimestamp": (NOW + timedelta(hours=1)).isoformat()}}
    [node] = cluster_of(young).nodes
    assert isinstance(node, NodeFacts)
    assert everything(cluster_of(young), NODE, node)["age_seconds"] == 0


def test_every_variable_is_documented() -> None:
    assert {shape for names in VARIABLES.values() for shape in names.values()} <= set(SHAPES)
    for shape in SHAPES:
        for name, fact in shape.facts.items():
            assert fact.says, (shape.name, name)
            if isinstance(fact.type, Shape):
                assert fact.type in SHAPES
