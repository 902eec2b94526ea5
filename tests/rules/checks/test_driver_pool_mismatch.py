"""Would a workload's image run on every node that it may land on? Asked before it lands there."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from rules.words import render
from tests.rules.checks.kit import Plain, container_status, findings, keys, node, only, pod

RULE = "driver-pool-mismatch"
CUDA_13 = "pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime"
TAINT = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}


def gpu(name: str, driver: str | None, product: str = "NVIDIA-L4", pool: str = "l4", **more: Any) -> dict[str, Any]:
    labels = {"agentpool": pool, "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product}
    if driver:
        labels["nvidia.com/cuda.driver-version.full"] = driver
    return node(name, labels={**labels, **more.pop("labels", {})}, **more)


OLD, NEW = gpu("old", "535.183.01"), gpu("new", "580.126.20")


def pods(image: str = CUDA_13, gpus: int = 1, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {"spec": {"containers": [container], **spec}}


def workload(kind: str = "Deployment", group: str = "apps/v1", status: Plain | None = None, **spec: Any) -> Plain:
    metadata = {"name": "llm", "namespace": "serve"}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec, "status": dict(status or {})}


def deployment(replicas: int = 1, **template: Any) -> Plain:
    return workload(replicas=replicas, template=pods(**template))


def test_half_of_the_pool_is_too_old_and_the_mixed_pool_is_the_cause() -> None:
    found = only(RULE, OLD, NEW, deployment())
    assert found.severity == Severity.MEDIUM
    assert [str(ref) for ref in found.objects] == ["Deployment/serve/llm", "Node/old"]
    assert keys(found) == ["drivers", "fits", "mixed_pool"]
    assert (found.value("bad_count"), found.value("reach_count")) == (1, 2)
    assert "operator: In, values: [580.126.20]" in render(found, "es").remedy


@pytest.mark.parametrize(
    "made",
    [
        workload("StatefulSet", template=pods(), replicas=1),
        workload("Job", "batch/v1", template=pods()),
        workload("CronJob", "batch/v1", jobTemplate={"spec": {"template": pods()}}),
        workload("PyTorchJob", "kubeflow.org/v1", pytorchReplicaSpecs={"Worker": {"replicas": 2, "template": pods()}}),
        workload("RayCluster", "ray.io/v1", workerGroupSpecs=[{"groupName": "gpu", "template": pods()}]),
        workload("Job", "batch.volcano.sh/v1alpha1", tasks=[{"name": "worker", "template": pods()}]),
        workload("Anything", "example.com/v1", deep={"er": [{"template": pods()}]}),
    ],
    ids=lambda made: f"{made['kind']}.{made['apiVersion']}",
)
def test_every_kind_of_object_that_holds_a_template_is_read(made: Plain) -> None:
    found = only(RULE, OLD, NEW, made)
    assert found.objects[0].kind == made["kind"]


def test_pods_speak_for_a_workload_that_was_not_read() -> None:
    lives = pod("llm-0", on="new", gpus={"nvidia.com/gpu": 1}, image=CUDA_13, owner=("StatefulSet", "llm"))
    assert str(only(RULE, OLD, NEW, lives).objects[0]) == "StatefulSet/ml/llm"


@pytest.mark.parametrize(
    ("old", "template"),
    [
        (OLD, pods(image="nvidia/cuda:12.2.2-base-ubuntu22.04")),
        (OLD, pods(image="team/private:latest")),
        (OLD, pods(nodeSelector={"nvidia.com/cuda.driver-version.full": "580.126.20"})),
        (OLD, {"spec": {"containers": [{"name": "main", "image": CUDA_13}]}}),
        (gpu("old", "535.183.01", taints=[TAINT]), pods()),
        (gpu("old", "535.183.01", gpus={"nvidia.com/mig-1g.5gb": 7}), pods()),
        (gpu("old", "535.183.01", gpus={"amd.com/gpu": 1}), pods()),
        (gpu("old", None), pods()),
        (OLD, pods(gpus=8)),
    ],
    ids=["fits", "unknown", "selected", "no-gpu", "tainted", "mig", "other-resource", "no-driver-known", "too-small"],
)
def test_nodes_out_of_reach_and_what_cannot_be_known_are_left_alone(old: Plain, template: Plain) -> None:
    assert findings(RULE, old, NEW, workload(template=template)) == []


def test_a_cordon_passes_and_a_toleration_opens_a_node() -> None:
    only(RULE, gpu("old", "535.183.01", unschedulable=True), NEW, deployment())
    only(RULE, gpu("old", "535.183.01", taints=[TAINT]), NEW, deployment(tolerations=[{"operator": "Exists"}]))


def test_a_card_that_the_software_has_no_code_for_is_told_apart_from_its_driver() -> None:
    volta = gpu("volta", "580.126.20", product="Tesla-V100-SXM2-16GB", pool="v100")
    found = only(RULE, volta, NEW, deployment())
    assert (found.remedy, keys(found)[0]) == ("card", "cards")
    assert "nvidia.com/gpu.product, operator: In, values: [NVIDIA-L4]" in render(found, "it").remedy
    assert only(RULE, volta, deployment()).remedy == "no_card"


def test_where_no_node_would_run_it_it_weighs_more_and_less_while_it_sleeps() -> None:
    nowhere = only(RULE, OLD, deployment())
    assert (nowhere.remedy, nowhere.severity) == ("nowhere", Severity.HIGH)
    assert only(RULE, OLD, deployment(replicas=0)).severity == Severity.LOW
    suspended = workload("Job", "batch/v1", template=pods(), suspend=True)
    assert "inactive" in keys(only(RULE, OLD, suspended))


def test_finished_jobs_and_children_of_other_objects_are_not_judged() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert findings(RULE, OLD, NEW, workload("Job", "batch/v1", status=done, template=pods())) == []
    child = {**workload("Job", "batch/v1", template=pods())}
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "llm", "uid": "1", "controller": True}
    child["metadata"] = {"name": "llm-1", "namespace": "serve", "ownerReferences": [owner]}
    parent = workload("CronJob", "batch/v1", jobTemplate={"spec": {"template": pods()}})
    assert only(RULE, OLD, NEW, child, parent).objects[0].kind == "CronJob"


def test_a_pod_that_shows_the_mismatch_already_speaks_instead() -> None:
    crash = container_status(waiting="CrashLoopBackOff", restarts=9, said="CUDA driver version is insufficient")
    shown = pod(
        "llm-0", on="old", gpus={"nvidia.com/gpu": 1}, image=CUDA_13, owner=("StatefulSet", "llm"), status=crash
    )
    assert findings(RULE, OLD, NEW, shown) == []
    found = only("driver-cuda-mismatch", OLD, NEW, shown)
    assert "StatefulSet/ml/llm" in {str(ref) for ref in found.objects}


def test_a_workload_with_two_roles_of_one_image_is_one_finding() -> None:
    roles = {"Master": {"template": pods()}, "Worker": {"template": pods()}}
    only(RULE, OLD, NEW, workload("PyTorchJob", "kubeflow.org/v1", pytorchReplicaSpecs=roles))


def test_an_age_of_the_pods_plays_no_part() -> None:
    young = pod("llm-0", on="new", gpus={"nvidia.com/gpu": 1}, image=CUDA_13, age=timedelta(seconds=5))
    only(RULE, OLD, NEW, young)
