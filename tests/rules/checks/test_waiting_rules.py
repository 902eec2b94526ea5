"""The rules that each explain one reason for which GPU pods wait: what they claim and what they do not."""

from typing import Any

import pytest

from rules.findings import Severity
from rules.words import render
from tests.rules.checks.kit import Plain, event, findings, keys, node, only, pod

ONE = {"nvidia.com/gpu": 1}
TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
GPU_LABELS = {"nvidia.com/gpu.present": "true"}


def of_four(count: int) -> dict[str, int]:
    return {"nvidia.com/gpu": count}


def rules_of(*objects: Plain, **how: Any) -> set[str]:
    from tests.rules.checks.kit import report

    result = report(*objects, **how)
    assert result.failed_rules == ()
    return {item.rule for item in result.findings}


# mig-resource-mismatch, shared-rename-zero-key


def test_the_profile_with_enough_memory_is_proposed() -> None:
    offered = {"nvidia.com/mig-1g.5gb": 4, "nvidia.com/mig-2g.10gb": 1, "nvidia.com/mig-3g.20gb": 1}
    found = only("mig-resource-mismatch", node(gpus=offered), pod(gpus={"nvidia.com/mig-1g.10gb": 1}))
    assert (found.remedy, found.value("example")) == ("profile", "nvidia.com/mig-2g.10gb")


def test_a_mig_profile_where_gpus_are_whole_is_told() -> None:
    assert only("mig-resource-mismatch", node(), pod(gpus={"nvidia.com/mig-1g.10gb": 1})).remedy == "whole"


def test_a_mig_name_without_its_dash_is_told() -> None:
    wrong = pod(gpus={"nvidia.com/mig1g.5gb": 1})
    found = only("mig-resource-mismatch", node(gpus={"nvidia.com/mig-1g.5gb": 7}), wrong)
    assert (found.remedy, found.value("example")) == ("dash", "nvidia.com/mig-1g.5gb")


@pytest.mark.parametrize(
    "objects",
    [
        [node(gpus={"nvidia.com/mig-1g.5gb": 7}), node("gpu-2"), pod("holder", on="gpu-2", gpus=ONE), pod(gpus=ONE)],
        [node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4}), pod(gpus=ONE)],
        [node(gpus={"amd.com/gpu": 8}, labels={}), pod(gpus=ONE)],
        [node(gpus={}, labels=GPU_LABELS), pod(gpus={"nvidia.com/mig-1g.5gb": 1})],
        [node(gpus={"nvidia.com/mig-1g.5gb": 7}), pod(gpus=ONE, schedulingGates=[{"name": "kueue"}])],
    ],
    ids=["whole-elsewhere", "renamed", "other-maker", "broken", "gated"],
)
def test_what_is_no_mismatch_of_mig(objects: list[Plain]) -> None:
    assert findings("mig-resource-mismatch", *objects) == []


def test_a_renamed_resource_without_waiting_pods_is_no_trouble() -> None:
    renamed = node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4})
    assert findings("shared-rename-zero-key", renamed) == []
    found = only("shared-rename-zero-key", renamed, pod(gpus=ONE))
    assert found.severity == Severity.HIGH
    assert "gpu-pod-pending" not in rules_of(renamed, pod(gpus=ONE))


# untolerated-gpu-taint-pod


@pytest.mark.parametrize(
    ("toleration", "note"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, "other_key"),
        ({"key": "sku", "operator": "Equal", "value": "cpu"}, "value_differs"),
        ({"key": "sku", "operator": "Exists", "effect": "NoExecute"}, "value_differs"),
    ],
)
def test_a_toleration_that_does_not_match_is_compared(toleration: Plain, note: str) -> None:
    found = only("untolerated-gpu-taint-pod", node(taints=[TAINT]), pod(gpus=ONE, tolerations=[toleration]))
    assert note in keys(found)
    assert found.value("taints") == ["sku=gpu:NoSchedule"]


def test_a_taint_is_in_the_way_even_while_the_gpus_are_in_use() -> None:
    found = only("untolerated-gpu-taint-pod", node(taints=[TAINT]), pod("h", on="gpu-1", gpus=ONE), pod(gpus=ONE))
    assert "in_use_too" in keys(found)


@pytest.mark.parametrize(
    "objects",
    [
        [node(), node("gpu-2", taints=[TAINT]), pod("h", on="gpu-1", gpus=ONE), pod(gpus=ONE)],
        [node(taints=[{"key": "amd-gpu-unhealthy", "effect": "NoSchedule"}]), pod(gpus=ONE)],
        [node(taints=[TAINT]), pod(gpus={"nvidia.com/gpu": 16})],
        [node(taints=[TAINT], gpus={}, labels=GPU_LABELS), pod(gpus=ONE)],
        [node(taints=[TAINT]), pod(gpus=ONE, tolerations=[{"operator": "Exists"}])],
        [node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), pod(gpus=ONE)],
        [node(taints=[TAINT]), pod(gpus=ONE, nodeSelector={"zone": "x"})],
    ],
    ids=["tolerated-and-full", "sick", "too-small", "broken", "tolerates-all", "soft", "not-selected"],
)
def test_a_taint_is_not_blamed_for_what_it_does_not_cause(objects: list[Plain]) -> None:
    assert findings("untolerated-gpu-taint-pod", *objects) == []


# selector-matches-nothing


def affinity(*values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": list(values)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


T4 = node(labels={**GPU_LABELS, "nvidia.com/gpu.product": "Tesla-T4-SHARED", "zone": "a"})


@pytest.mark.parametrize(
    ("spec", "remedy"),
    [
        ({"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}, "closest"),
        ({"nodeSelector": {"nvidia.com/gpu.product": "B200"}}, "default"),
        ({"nodeSelector": {"team": "vision"}}, "no_such_label"),
        (affinity("Tesla-T4", "B200"), "closest"),
    ],
)
def test_a_value_that_no_node_has_is_told_with_the_closest_there_is(spec: dict[str, Any], remedy: str) -> None:
    found = only("selector-matches-nothing", T4, pod(gpus=ONE, **spec))
    assert found.remedy == remedy
    assert "gpu-pod-pending" not in rules_of(T4, pod(gpus=ONE, **spec))


def pool(name: str) -> Plain:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {}}


def status(*groups: dict[str, Any]) -> Plain:
    import json

    data = {"status": json.dumps({"nodeGroups": list(groups)})}
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def group(name: str, target: int, maximum: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "health": {"cloudProviderTarget": target, "minSize": 0, "maxSize": maximum}, **more}


B200 = pod(gpus=ONE, nodeSelector={"nvidia.com/gpu.product": "B200"})


@pytest.mark.parametrize(
    "objects",
    [
        [T4, pool("any"), B200],
        [T4, status(group("asg-b200", 0, 4)), B200],
        [T4, pod(gpus=ONE, **affinity("Tesla-T4", "Tesla-T4-SHARED"))],
        [T4, pod("h", on="gpu-1", gpus=ONE), pod(gpus=ONE, nodeSelector={"zone": "a"})],
        [node("cpu", gpus={}, labels={}), B200],
    ],
    ids=["karpenter", "empty-group", "one-of-two", "there", "no-gpu-nodes"],
)
def test_a_selector_is_not_blamed_where_such_a_node_is_or_may_come(objects: list[Plain]) -> None:
    assert findings("selector-matches-nothing", *objects) == []


def test_the_autoscaler_that_knows_all_groups_and_refuses_settles_it() -> None:
    said = "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector"
    refusal = event("NotTriggerScaleUp", said, B200, component="cluster-autoscaler")
    assert only("selector-matches-nothing", T4, status(group("asg-t4", 0, 4)), B200, refusal).value("there")


# fragmentation


def halves(*taken: int, **more: Any) -> list[Plain]:
    made: list[Plain] = []
    for index, count in enumerate(taken):
        name = f"gpu-{index}"
        made += [node(name, gpus=of_four(4), **more), pod(f"h{index}", on=name, gpus=of_four(count))]
    return made


def test_free_gpus_on_too_many_nodes_are_fragmented() -> None:
    found = only("fragmentation", *halves(2, 1, 4), pod(gpus=of_four(4)))
    assert (found.value("free_total"), found.value("most_free"), found.value("node")) == (5, 3, "gpu-1")
    assert "gpu-2" not in {ref.name for ref in found.objects}
    assert "gpu-pod-pending" not in rules_of(*halves(2, 1, 4), pod(gpus=of_four(4)))


@pytest.mark.parametrize(
    "objects",
    [
        [*halves(2, 3), pod(gpus=of_four(4))],
        [*halves(2, 2, unschedulable=True), pod(gpus=of_four(4))],
        [*halves(2, 2, taints=[TAINT]), pod(gpus=of_four(4))],
        [*halves(2, 2), pod(gpus=of_four(8))],
        [*halves(4, 4), pod(gpus=ONE)],
    ],
    ids=["too-few-in-all", "cordoned", "tainted", "never-fits", "full"],
)
def test_what_defragmenting_would_not_help_is_none(objects: list[Plain]) -> None:
    assert findings("fragmentation", *objects) == []


# cpu-starved-gpu


def hungry(name: str, cpu: str, on: str | None = None, gpus: dict[str, int] | None = None) -> dict[str, Any]:
    made = pod(name, on=on, gpus=gpus)
    made["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": cpu, **{key: str(value) for key, value in (gpus or {}).items()}},
        "limits": {key: str(value) for key, value in (gpus or {}).items()},
    }
    return made


def test_pods_without_a_gpu_that_starve_it_are_named() -> None:
    web, train = hungry("web", "15", on="gpu-1"), hungry("train", "4", gpus=ONE)
    found = only("cpu-starved-gpu", node(), web, train)
    assert found.remedy == "default"
    assert "ml/web" in render(found, "en").detail
    assert "gpu-pod-pending" not in rules_of(node(), web, train)


def test_gpu_pods_that_took_more_cpu_than_their_share_are_told_apart() -> None:
    greedy = hungry("greedy", "15", on="gpu-1", gpus=of_four(1))
    assert only("cpu-starved-gpu", node(gpus=of_four(4)), greedy, hungry("train", "4", gpus=ONE)).remedy == "gpu_pods"


def test_a_pod_that_asks_for_more_than_any_node_has_is_not_starved() -> None:
    assert findings("cpu-starved-gpu", node(), hungry("web", "1", on="gpu-1"), hungry("t", "64", gpus=ONE)) == []


# scale-from-zero-unknown-gpu

REFUSED = "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu, 1 max node group size reached"
CPU_NODE = node("cpu-1", gpus={}, labels={})
GROUPS = status(group("cpu", 2, 2), group("gpu", 0, 6))


def refused(asking: Plain, said: str = REFUSED) -> Plain:
    return event("NotTriggerScaleUp", said, asking, component="cluster-autoscaler")


def test_the_tags_describe_the_node_that_the_pod_wants() -> None:
    asking = pod(gpus=ONE, nodeSelector={"team": "a"}, tolerations=[{"key": "sku", "value": "gpu"}])
    found = only("scale-from-zero-unknown-gpu", CPU_NODE, GROUPS, asking, refused(asking))
    tags = found.value("tags")
    assert isinstance(tags, list)
    assert [tag.rpartition("node-template/")[2] for tag in tags] == [
        "resources/nvidia.com/gpu=1",
        "label/team=a",
        "taint/sku=gpu:NoSchedule",
    ]
    assert {"empty", "full"} == set(keys(found))
    assert "gpu-pod-pending" not in rules_of(CPU_NODE, GROUPS, asking, refused(asking))


ASKING = pod(gpus=ONE)


@pytest.mark.parametrize(
    "objects",
    [
        [CPU_NODE, status(group("cpu", 1, 2), group("gpu", 6, 6)), ASKING, refused(ASKING)],
        [node(), pod("h", on="gpu-1", gpus=ONE), GROUPS, ASKING, refused(ASKING)],
        [node(gpus={"nvidia.com/mig-1g.5gb": 7}), ASKING, refused(ASKING)],
        [CPU_NODE, GROUPS, ASKING, refused(ASKING, "pod didn't trigger scale-up: 2 Insufficient cpu")],
        [CPU_NODE, GROUPS, ASKING],
    ],
    ids=["no-empty-group", "example-lives", "gpu-nodes-unknown-groups", "cpu", "not-said"],
)
def test_the_autoscaler_is_not_called_blind_without_proof(objects: list[Plain]) -> None:
    assert findings("scale-from-zero-unknown-gpu", *objects) == []


# claim-pending, claim-allocated-unused


def slice_of(*memory: str, on: str = "gpu-1") -> Plain:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"type": {"string": "gpu"}, "productName": {"string": "L40S"}},
            "capacity": {"memory": {"value": size}},
        }
        for index, size in enumerate(memory)
    ]
    spec = {"nodeName": on, "driver": "gpu.nvidia.com", "pool": {"name": on, "generation": 1}, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": on}, "spec": spec}


def claim(name: str = "gpu", **request: Any) -> dict[str, Any]:
    wanted = {"deviceClassName": "gpu.nvidia.com", **request}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
    }


def held(name: str, device: str, **more: Any) -> dict[str, Any]:
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "gpu-1", "device": device, **more}
    return {**claim(name), "status": {"allocation": {"devices": {"results": [result]}}}}


def cel(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {}}
CLAIMING = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
DRA_NODE = node(gpus={}, labels=GPU_LABELS)


@pytest.mark.parametrize(
    ("wanted", "remedy"),
    [
        (
            claim(selectors=cel("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('60Gi')) >= 0")),
            "memory",
        ),
        (claim(selectors=cel("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0")), "default"),
        (claim(selectors=cel("device.attributes['gpu.nvidia.com'].productName == 'H100'")), "product"),
        (claim(count=4), "count"),
        (claim(count=2), "in_use"),
        (claim(deviceClassName="mig.nvidia.com"), "device_class"),
    ],
)
def test_what_no_device_meets_is_named(wanted: Plain, remedy: str) -> None:
    objects = [DRA_NODE, slice_of("46068Mi", "46068Mi"), CLASS, wanted, held("other", "gpu-0"), CLAIMING]
    found = only("claim-pending", *objects)
    assert found.remedy == remedy
    assert found.severity == (Severity.LOW if remedy == "in_use" else Severity.HIGH)
    assert "gpu-pod-pending" not in rules_of(*objects)


@pytest.mark.parametrize(
    "fine",
    [
        held("gpu", "gpu-0", adminAccess=True),
        claim(),
        {**held("gpu", "gpu-0"), "kind": "ResourceClaim"}
        | {"status": {**held("gpu", "gpu-0")["status"], "reservedFor": [{"resource": "pods", "name": "train"}]}},
    ],
    ids=["admin", "not-allocated", "reserved"],
)
def test_claims_that_hold_nothing_in_vain(fine: Plain) -> None:
    assert findings("claim-allocated-unused", DRA_NODE, fine) == []


def test_a_claim_without_a_pod_keeps_its_gpu() -> None:
    assert only("claim-allocated-unused", DRA_NODE, held("gpu", "gpu-0")).value("gpus") == 1
