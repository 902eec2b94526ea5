"""Whether a snapshot holds all objects of a kind: where that is not sure, it is unknown."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from rules.facts.completeness import of_operator, of_place, of_whole
from rules.facts.decode import Objects, decode_objects
from rules.facts.objectset import not_in_snapshot

Plain = dict[str, Any]


def obj(kind: str, name: str, namespace: str | None = None, **more: Any) -> Plain:
    labels = more.pop("labels", {})
    version = more.pop("version", None)
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
    if version:
        metadata["resourceVersion"] = version
    group = {"DaemonSet": "apps/v1", "Deployment": "apps/v1", "ClusterPolicy": "nvidia.com/v1"}
    return {"apiVersion": group.get(kind, "v1"), "kind": kind, "metadata": metadata, **more}


def a_list(*items: Plain) -> str:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items})


def decode(text: str | Plain) -> Objects:
    return decode_objects((text if isinstance(text, str) else json.dumps(text)).encode(), "test")


NODE, OTHER_NODE = obj("Node", "gpu-1"), obj("Node", "gpu-2")
POD = obj("Pod", "train", "ml", spec={"nodeName": "gpu-1"})
OPERATOR = obj("Pod", "gpu-operator-1", "gpu-operator", labels={"app": "gpu-operator"})


@pytest.mark.parametrize(
    ("text", "kinds", "partial"),
    [
        (a_list(NODE, POD), {"Node", "Pod"}, set()),
        (json.dumps({"kind": "PodList", "items": []}), {"Pod"}, set()),
        (json.dumps(POD), set(), {"Pod"}),
        (json.dumps(obj("DaemonSet", "plugin", "a")), set(), {"DaemonSet"}),
        (a_list(NODE) + json.dumps(POD), {"Node"}, {"Pod"}),
        (a_list(NODE, POD) + json.dumps(POD), {"Node", "Pod"}, set()),
        (json.dumps(NODE) + "\n" + json.dumps(POD), {"Node", "Pod"}, set()),
        ("kind: Pod\nmetadata: {name: a}\n", set(), {"Pod"}),
        ("kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\n", {"Pod"}, set()),
    ],
)
def test_a_list_or_a_stream_is_complete_and_an_object_by_itself_is_not(
    text: str, kinds: set[str], partial: set[str]
) -> None:
    objects = decode(text)
    assert (set(objects.kinds), set(objects.partial)) == (kinds, partial)


def test_files_complete_each_other() -> None:
    merged = decode(POD).merge(decode(a_list(NODE)))
    assert set(merged.partial) == {"Pod"}
    merged = merged.merge(decode(a_list(POD)))
    assert (set(merged.kinds), dict(merged.partial)) == ({"Node", "Pod"}, {})


def test_a_node_by_itself_is_all_nodes_unless_pods_run_elsewhere() -> None:
    alone = of_whole(decode(NODE).merge(decode(a_list(POD))))
    assert alone.kinds == {"Node", "Pod"}
    both = of_whole(decode(NODE).merge(decode(OTHER_NODE)).merge(decode(a_list(POD))))
    assert both.kinds == {"Node", "Pod"}
    elsewhere = of_whole(decode(OTHER_NODE).merge(decode(a_list(POD))))
    assert elsewhere.kinds == {"Pod"}
    assert "gpu-1" in elsewhere.partial["Node"]
    finished = {**POD, "status": {"phase": "Succeeded"}}
    assert "Node" in of_whole(decode(OTHER_NODE).merge(decode(a_list(finished)))).kinds
    listed = of_whole(decode(a_list(OTHER_NODE, POD)))
    assert "Node" in listed.kinds, "a list of nodes is believed: the other one may be a node that is gone"


def test_a_resource_of_which_there_is_one_is_complete_by_itself() -> None:
    assert of_whole(decode(obj("ClusterPolicy", "cluster-policy"))).kinds == {"ClusterPolicy"}


@pytest.mark.parametrize(
    ("path", "objects", "complete"),
    [
        ("must-gather/gpu_operand_pods.yaml", [POD], False),
        ("gpu_operand_ds.yaml", [obj("DaemonSet", "a", "gpu-operator")], False),
        ("namespaces/ml/core/pods.yaml", [POD], False),
        ("ml/pods.json", [POD], False),
        ("namespaces/ml/core/pods.yaml", [POD, obj("Pod", "b", "other")], True),
        ("cluster/pods.json", [POD], True),
        ("ml.json", [POD], True),
        ("ml/all.json", [NODE, POD], True),
        ("ml/nodes.json", [NODE], True),
    ],
)
def test_a_place_may_say_that_a_list_is_of_one_namespace(path: str, objects: list[Plain], complete: bool) -> None:
    placed = of_place(decode(a_list(*objects)), PurePosixPath(path))
    assert bool(placed.partial) is not complete
    assert bool(placed.kinds) is complete


def test_nothing_but_the_pods_of_the_operators_namespace_is_one_namespace() -> None:
    operand = obj("Pod", "driver-1", "gpu-operator")
    assert set(of_operator(decode(a_list(OPERATOR, operand))).partial) == {"Pod"}
    assert of_operator(decode(a_list(OPERATOR, operand, POD))).partial == {}
    assert of_operator(decode(a_list(operand))).partial == {}
    assert of_operator(decode(a_list(NODE, OPERATOR))).partial == {}, "one list of everything is believed"


def test_a_gpu_workload_that_has_pods_contradicts_a_snapshot_without_them() -> None:
    def workload(kind: str, namespace: str, limits: Plain, **status: int) -> Plain:
        container = {"name": "main", "resources": {"limits": limits}}
        spec = {"template": {"spec": {"containers": [container]}}}
        return obj(kind, "serve", namespace, spec=spec, status=status)

    gpu = {"nvidia.com/gpu": "1"}
    lost = of_whole(decode(a_list(NODE, POD, workload("Deployment", "serve", gpu, replicas=2))))
    assert "Deployment serve/serve" in lost.partial["Pod"]
    for fine in (
        workload("Deployment", "ml", gpu, replicas=2),
        workload("Deployment", "serve", gpu, replicas=0),
        workload("Deployment", "serve", {"cpu": "1"}, replicas=2),
        workload("DaemonSet", "serve", gpu, currentNumberScheduled=2),
    ):
        assert of_whole(decode(a_list(NODE, POD, fine))).partial == {}


def test_what_may_be_missing_is_said_with_its_reason() -> None:
    objects = of_whole(decode(a_list(NODE)).merge(decode(POD)).merge(decode(obj("DaemonSet", "a", "b"))))
    said = {item.kind: item.detail for item in not_in_snapshot(objects.kinds, partial=objects.partial)}
    assert set(said) == {"Pod", "Event", "DaemonSet"}
    assert "by themselves" in said["Pod"]
    assert "holds no Event" in said["Event"]


def test_of_two_readings_of_an_object_the_newer_one_stays() -> None:
    old = decode(a_list(obj("Pod", "train", "ml", version="9", spec={"nodeName": "a", "hostNetwork": True})))
    new = decode(a_list(obj("Pod", "train", "ml", version="10", spec={"nodeName": "b"})))
    for merged in (old.merge(new), new.merge(old)):
        assert [pod.spec.nodeName for pod in merged.pods if pod.spec] == ["b"]


def test_where_the_version_does_not_tell_the_fuller_reading_stays() -> None:
    full = decode(a_list(obj("Node", "gpu-1", status={"capacity": {"nvidia.com/gpu": "8"}})))
    for version in (None, "7"):
        bare = decode(a_list(obj("Node", "gpu-1", version=version)))
        for merged in (full.merge(bare), bare.merge(full)):
            assert merged.nodes[0].status is not None


def test_of_two_equal_readings_the_later_one_stays() -> None:
    one, two = (decode(a_list(obj("Pod", "p", "ml", spec={"nodeName": name}))) for name in "ab")
    assert [pod.spec.nodeName for pod in one.merge(two).pods if pod.spec] == ["b"]


def test_within_one_file_the_newer_one_stays_too() -> None:
    versions = ("12", "3", "11")
    pods = [obj("Pod", "p", "ml", version=version, spec={"nodeName": f"n{version}"}) for version in versions]
    assert [pod.spec.nodeName for pod in decode(a_list(*pods)).pods if pod.spec] == ["n12"]
