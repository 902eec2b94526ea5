"""Rules on what GPU nodes cost and why they stay."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import ObjectRef, Severity
from rules.words import render
from tests.rules.checks.kit import Plain, findings, keys, node, only, pod, stamp
from tests.rules.scaling import KARPENTER, POOLED, autoscaler, deployment, node_claim, node_pool, replica, status

CPU = node("cpu-1", gpus={}, labels={"role": "web"})
GPU = {"nvidia.com/gpu": 1}
L40S = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-L40S",
    "node.kubernetes.io/instance-type": "g6e.12xlarge",
    "topology.kubernetes.io/region": "us-east-1",
}
AWS = "aws:///us-east-1b/i-0143"


def large(**labels: str) -> Plain:
    return node(gpus={"nvidia.com/gpu": 4}, labels={**L40S, **labels}, providerID=AWS)


def running(started: timedelta) -> dict[str, Any]:
    return {"startTime": stamp(started)}


# gpu-node-without-taint


def test_a_pool_is_one_trouble_and_its_label_makes_the_command() -> None:
    both = [node(name, labels={**POOLED, "eks.amazonaws.com/nodegroup": "gpu"}) for name in ("gpu-1", "gpu-2")]
    found = only("gpu-node-without-taint", *both, CPU)
    assert found.severity == Severity.LOW
    assert found.value("targets") == "-l eks.amazonaws.com/nodegroup=gpu"


def test_a_pod_that_landed_there_makes_it_cost_money() -> None:
    found = only("gpu-node-without-taint", node(), CPU, replica("web-1", of="web", gpus=0))
    assert found.severity == Severity.MEDIUM
    assert found.value("landed") == ["ml/web-1"]
    assert "kubectl taint nodes gpu-1 nvidia.com/gpu=present:NoSchedule" in render(found, "en").remedy


@pytest.mark.parametrize(
    "quiet",
    [
        [node(taints=[{"key": "x", "effect": "NoSchedule"}]), CPU],
        [node(), node("gpu-2")],
        [node(), node("cpu-1", gpus={}, labels={"a": "b"}, taints=[{"key": "system", "effect": "NoSchedule"}])],
        [node(ready="False"), CPU],
        [node(unschedulable=True), CPU],
    ],
    ids=["any-taint", "only-gpu-nodes", "no-other-place", "dead", "cordoned"],
)
def test_no_taint_is_asked_for_where_it_helps_nobody(quiet: list[Plain]) -> None:
    assert findings("gpu-node-without-taint", *quiet) == []


def test_a_preference_is_no_taint() -> None:
    only("gpu-node-without-taint", node(taints=[{"key": "x", "effect": "PreferNoSchedule"}]), CPU)


# cpu-pods-block-scale-down


def test_the_money_of_an_idle_node_is_told_once() -> None:
    cluster = [node(labels={**L40S, **POOLED}, providerID=AWS), autoscaler(), status(minimum=1), replica(gpus=0)]
    evidence = only("cpu-pods-block-scale-down", *cluster)
    carrier = only("idle-gpu-node", *cluster)
    assert evidence.cost is None
    assert carrier.cost is not None
    assert evidence.severity.rank < carrier.severity.rank
    assert evidence.value("blockers") == ["min_size"]


def test_daemons_and_young_nodes_block_nothing() -> None:
    daemon = pod(on="gpu-1", owner=("DaemonSet", "agent"))
    assert findings("cpu-pods-block-scale-down", node(), daemon) == []
    assert findings("cpu-pods-block-scale-down", node(age=timedelta(minutes=10)), replica(gpus=0)) == []


# cordoned-idle-gpu


def cordon(ago: timedelta | None) -> Plain:
    added = {"timeAdded": stamp(ago)} if ago else {}
    return node(
        unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", **added}]
    )


def test_a_cordon_of_a_day_is_told_with_its_age() -> None:
    found = only("cordoned-idle-gpu", cordon(timedelta(days=3)))
    assert found.value("cordoned") == 3 * 86400
    assert found.cost is None


def test_a_cordon_without_a_time_is_told_as_unknown() -> None:
    found = only("cordoned-idle-gpu", cordon(None))
    assert found.severity == Severity.LOW
    assert found.value("cordoned") is None
    assert keys(found) == ["since_unknown"]


def test_a_cordon_that_drains_or_is_fresh_is_left_alone() -> None:
    assert findings("cordoned-idle-gpu", cordon(timedelta(hours=3))) == []
    assert findings("cordoned-idle-gpu", cordon(timedelta(days=3)), pod(on="gpu-1", gpus=GPU)) == []


# Karpenter


def test_a_node_that_never_became_ready_for_karpenter_is_told_with_its_reason() -> None:
    bare = node(gpus={}, labels={"karpenter.sh/nodepool": "gpu", "nvidia.com/gpu.present": "true"})
    found = only("karpenter-never-initialized", bare, node_claim(initialized="False"))
    assert ObjectRef("NodeClaim", "", "gpu-x7k2q") in found.objects
    assert "kubectl label" not in render(found, "en").remedy
    assert findings("karpenter-never-initialized", bare, node_claim(initialized="True")) == []


def test_without_claims_the_label_tells() -> None:
    labels = {"karpenter.sh/provisioner-name": "gpu", "nvidia.com/gpu.present": "true"}
    only("karpenter-never-initialized", node(gpus={}, labels=labels))
    assert findings("karpenter-never-initialized", node(labels=KARPENTER)) == []


def test_a_startup_taint_explains_why_a_node_is_not_initialized() -> None:
    taint = {"key": "cni/agent-not-ready", "effect": "NoExecute"}
    stuck = node(labels={**KARPENTER, "karpenter.sh/initialized": ""}, taints=[taint])
    pool = node_pool(template={"spec": {"startupTaints": [taint]}})
    assert only("karpenter-startup-taint-stuck", stuck, pool).value("taints") == ["cni/agent-not-ready"]
    assert findings("karpenter-never-initialized", stuck, pool) == []
    assert findings("karpenter-startup-taint-stuck", node(labels=KARPENTER), pool) == []


def test_an_empty_node_is_told_with_what_keeps_it() -> None:
    found = only(
        "karpenter-empty-node-kept", node(labels=KARPENTER), node_pool(disruption={"budgets": [{"nodes": "0"}]})
    )
    assert found.value("blockers") == ["budget_zero"]
    assert found.severity == Severity.LOW
    assert keys(only("karpenter-empty-node-kept", node(labels=KARPENTER))) == ["unknown"]


@pytest.mark.parametrize(
    "quiet",
    [
        [node(labels=KARPENTER), pod(on="gpu-1")],
        [node(labels=KARPENTER, age=timedelta(hours=2)), node_pool(disruption={"consolidateAfter": "3h"})],
        [node(labels=KARPENTER, taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])],
        [node()],
    ],
    ids=["not-empty", "waits-longer", "leaving", "not-karpenter"],
)
def test_a_node_that_karpenter_need_not_remove_yet_is_left_alone(quiet: list[Plain]) -> None:
    assert findings("karpenter-empty-node-kept", *quiet) == []


@pytest.mark.parametrize(
    ("disruption", "pods", "remedy"),
    [
        ({"consolidateAfter": "Never"}, [], "never"),
        ({"budgets": [{"nodes": "0"}]}, [], "budget"),
        ({"consolidationPolicy": "WhenEmpty"}, [replica(gpus=1)], "when_empty"),
        ({"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}, [], "default"),
    ],
)
def test_a_pool_that_cannot_shrink_is_told_with_its_setting(disruption: Plain, pods: list[Plain], remedy: str) -> None:
    found = only("consolidation-disabled", large(**KARPENTER), node_pool(disruption=disruption), *pods)
    assert found.remedy == remedy


@pytest.mark.parametrize(
    ("disruption", "pods"),
    [
        ({"consolidationPolicy": "WhenEmpty"}, [replica(gpus=3)]),
        ({"consolidationPolicy": "WhenEmpty"}, [replica(gpus=1, age=0)]),
        ({"consolidationPolicy": "WhenEmpty"}, []),
        ({"budgets": [{"nodes": "0", "schedule": "0 8 * * *", "duration": "10h"}]}, []),
    ],
    ids=["in-use", "young", "empty", "scheduled"],
)
def test_a_careful_pool_is_a_choice(disruption: Plain, pods: list[Plain]) -> None:
    assert findings("consolidation-disabled", large(**KARPENTER), node_pool(disruption=disruption), *pods) == []


@pytest.mark.parametrize(
    "template",
    [
        {
            "spec": {
                "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g6", "p5"]}]
            }
        },
        {
            "spec": {
                "requirements": [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["0"]}]
            }
        },
        {
            "spec": {
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
                ]
            }
        },
        {"spec": {"requirements": [{"key": "karpenter.azure.com/sku-gpu-name", "operator": "In", "values": ["A100"]}]}},
        {"spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}},
    ],
    ids=["family", "count", "type", "azure", "taint"],
)
def test_a_gpu_pool_without_limits_is_found_before_it_has_nodes(template: Plain) -> None:
    only("nodepool-without-limits", CPU, node_pool(template=template))
    assert findings("nodepool-without-limits", CPU, node_pool(template=template, limits={"cpu": "100"})) == []


def test_a_pool_for_general_work_needs_no_gpu_limit() -> None:
    general = {
        "spec": {
            "requirements": [{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]}]
        }
    }
    assert findings("nodepool-without-limits", CPU, node_pool(template=general)) == []


def test_gpu_machines_for_cpu_pods_are_found() -> None:
    found = only("nodepool-gpu-for-cpu-pods", node(labels=KARPENTER), node_pool(), replica(gpus=0))
    assert found.value("pods") == ["ml/chat-1"]
    for quiet in (
        [node_pool(), replica(gpus=1)],
        [node_pool(template={"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}), replica(gpus=0)],
        [node_pool()],
    ):
        assert findings("nodepool-gpu-for-cpu-pods", node(labels=KARPENTER), *quiet) == []


# Cluster Autoscaler


def test_a_group_on_aws_needs_the_label_only_where_cluster_autoscaler_runs() -> None:
    bare = node(labels=POOLED, providerID=AWS)
    only("ca-gpu-label-missing", bare, autoscaler())
    assert findings("ca-gpu-label-missing", bare) == []
    assert findings("ca-gpu-label-missing", node(labels={**POOLED, **KARPENTER}, providerID=AWS), autoscaler()) == []
    assert findings("ca-gpu-label-missing", node(labels=POOLED, providerID="gce://p/z/i"), autoscaler()) == []


def test_a_minimum_is_a_bill_only_while_nobody_asks() -> None:
    found = only("ca-min-size-gpu", node(labels=POOLED), status(minimum=1))
    assert found.objects[0].kind == "ConfigMap"
    assert findings("ca-min-size-gpu", node(labels=POOLED), status(minimum=0)) == []
    assert findings("ca-min-size-gpu", node(labels=POOLED), status(minimum=1), pod(on="gpu-1", gpus=GPU)) == []
    assert findings("ca-min-size-gpu", node(labels=POOLED), status(target=3, minimum=1)) == []


def test_a_plain_cache_keeps_a_partly_used_node() -> None:
    disk = pod("cache", on="gpu-1", owner=("ReplicaSet", "cache-x"), volumes=[{"name": "v", "emptyDir": {}}])
    found = only("local-storage-blocks", large(), autoscaler(), disk, replica(gpus=1))
    assert found.severity == Severity.MEDIUM
    assert found.objects[0] == ObjectRef("Pod", "ml", "cache")
    assert findings("local-storage-blocks", large(), autoscaler(), disk, replica(gpus=2)) == []
    assert findings("local-storage-blocks", large(), disk) == []
    assert findings("local-storage-blocks", large(**KARPENTER), autoscaler(), disk) == []


def test_training_that_is_not_moved_is_as_it_should_be() -> None:
    train = pod("train", on="gpu-1", gpus=GPU, owner=("PyTorchJob", "train"))
    assert only("custom-controller-blocks", large(), autoscaler(), train).severity == Severity.LOW
    assert findings("custom-controller-blocks", large(), train) == []
    flag = "--skip-nodes-with-custom-controller-pods=false"
    assert findings("custom-controller-blocks", large(), autoscaler(flag), train) == []


# autoscaling-disabled-pools, no-price-key, single-gpu-no-redundancy


def test_machines_of_ones_own_without_an_autoscaler_are_information() -> None:
    found = only("autoscaling-disabled-pools", node(), read=("Node", "Pod", "Event", "Deployment"))
    assert found.severity == Severity.INFO
    rented = node(labels=POOLED, providerID=AWS)
    assert (
        only("autoscaling-disabled-pools", rented, read=("Node", "Pod", "Event", "Deployment")).severity == Severity.LOW
    )
    assert findings("autoscaling-disabled-pools", node()) == []
    assert findings("autoscaling-disabled-pools", node(labels=KARPENTER), read=("Node", "Pod", "Deployment")) == []


@pytest.mark.parametrize(
    "known",
    [
        node(labels=L40S),
        node(providerID=AWS),
        node(gpus={}, labels={"a": "b"}),
        node(ready="Unknown"),
    ],
    ids=["type", "provider", "no-gpu", "gone"],
)
def test_a_node_with_a_key_to_a_price_is_not_asked_about(known: Plain) -> None:
    assert findings("no-price-key", known) == []


def test_one_finding_asks_for_all_prices() -> None:
    k3s = {"nvidia.com/gpu.present": "true", "node.kubernetes.io/instance-type": "k3s"}
    found = only("no-price-key", node(), node("gpu-2", labels=k3s, providerID="k3s://gpu-2"))
    assert found.value("nodes") == ["gpu-1", "gpu-2"]
    assert found.severity == Severity.INFO


def test_a_single_node_that_serves_is_good_to_know() -> None:
    found = only("single-gpu-no-redundancy", node(), replica())
    assert found.objects == (ObjectRef("Node", "", "gpu-1"), ObjectRef("Deployment", "ml", "chat"))
    assert findings("single-gpu-no-redundancy", node(), node("gpu-2"), replica()) == []
    assert findings("single-gpu-no-redundancy", node(labels=KARPENTER), replica()) == []
    assert findings("single-gpu-no-redundancy", node(), pod(on="gpu-1", gpus=GPU, owner=("Job", "train"))) == []


# whole-node-for-small-request, right-size-inference


def test_a_quarter_of_a_machine_costs_the_rest_of_it() -> None:
    job = pod("train", on="gpu-1", gpus=GPU, owner=("Job", "train"))
    found = only("whole-node-for-small-request", large(), job)
    assert found.value("smaller") == "g6e.xlarge"
    assert found.cost is not None
    assert found.cost.usd_so_far is None
    assert findings("right-size-inference", large(), job) == []


def test_a_service_is_told_to_take_a_smaller_machine() -> None:
    found = only("right-size-inference", large(), replica())
    assert found.remedy == "default"
    assert findings("whole-node-for-small-request", large(), replica()) == []


@pytest.mark.parametrize(
    "quiet",
    [
        [large(), replica(gpus=2)],
        [large()],
        [node(gpus={"nvidia.com/gpu": 4}, labels=L40S, providerID=AWS, age=timedelta(hours=20)), replica()],
        [node(gpus={"nvidia.com/gpu": 4}), replica()],
        [
            large(
                **{
                    "nvidia.com/gpu.sharing-strategy": "time-slicing",
                    "nvidia.com/gpu.replicas": "4",
                    "nvidia.com/gpu.count": "1",
                }
            ),
            replica(),
        ],
    ],
    ids=["half", "idle", "young", "owned", "shared"],
)
def test_no_size_is_advised_where_it_is_right_or_unknown(quiet: list[Plain]) -> None:
    for rule in ("right-size-inference", "whole-node-for-small-request"):
        assert findings(rule, *quiet) == []


def test_where_no_smaller_type_exists_that_is_said() -> None:
    labels = {
        **L40S,
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    lone = node(
        gpus={"nvidia.com/gpu": 8}, labels={**labels, "topology.kubernetes.io/region": "us-east-1"}, providerID=AWS
    )
    found = only("whole-node-for-small-request", lone, pod("train", on="gpu-1", gpus=GPU))
    assert found.severity == Severity.HIGH
    assert found.cost is not None
    assert found.remedy in ("no_smaller", "default")
    assert (found.value("smaller") is None) == (found.remedy == "no_smaller")


# deployment-keeps-gpu-node


@pytest.mark.parametrize(("days", "severity"), [(1, Severity.INFO), (4, Severity.LOW), (10, Severity.MEDIUM)])
def test_a_deployment_that_nobody_scales_weighs_more_with_time(days: int, severity: Severity) -> None:
    found = only("deployment-keeps-gpu-node", node(labels=KARPENTER), deployment(), replica(age=days))
    assert found.severity == severity
    assert found.cost is None
    said = render(found, "en")
    assert "is idle" not in said.title + said.detail
    assert "--replicas 0" in said.remedy


@pytest.mark.parametrize(
    "quiet",
    [
        [node(), deployment(), replica()],
        [node(labels=KARPENTER), deployment(replicas=2), replica()],
        [node(labels=KARPENTER), replica()],
        [node(labels=KARPENTER), node_pool(disruption={"budgets": [{"nodes": "0"}]}), deployment(), replica()],
    ],
    ids=["nobody-removes-nodes", "replicas", "unknown-owner", "kept-by-more"],
)
def test_a_deployment_is_not_blamed_when_the_node_would_stay_anyway(quiet: list[Plain]) -> None:
    assert findings("deployment-keeps-gpu-node", *quiet) == []


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_a_deployment_that_something_scales_is_left_alone(kind: str) -> None:
    scaler = {
        "apiVersion": "autoscaling/v2" if kind.startswith("H") else "keda.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": "chat", "namespace": "ml"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}},
    }
    assert findings("deployment-keeps-gpu-node", node(labels=KARPENTER), deployment(), replica(), scaler) == []


# notebooks, Ray, KEDA, Jobs


def test_a_notebook_is_suspicious_and_never_called_idle() -> None:
    held = pod("nb-0", on="gpu-1", gpus=GPU, labels={"notebook-name": "nb"}, status=running(timedelta(days=2)))
    notebook = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "nb", "namespace": "ml"}}
    found = only("notebook-idle", node(), held, notebook)
    assert found.objects[0] == ObjectRef("Notebook", "ml", "nb")
    assert found.severity == Severity.LOW
    assert (
        findings("notebook-idle", node(), {**held, "status": {"phase": "Running", **running(timedelta(hours=3))}}) == []
    )


def ray(name: str = "exp", owner: str | None = None, **spec: Any) -> Plain:
    meta: dict[str, Any] = {"name": name, "namespace": "ml", "creationTimestamp": stamp(timedelta(days=5))}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "ray.io/v1", "kind": owner, "name": "job", "controller": True}]
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta, "spec": spec}


WORKER = pod("worker", on="gpu-1", gpus=GPU, labels={"ray.io/cluster": "exp"}, owner=("RayCluster", "exp"))
FIXED: dict[str, Any] = {"workerGroupSpecs": [{"groupName": "gpu", "minReplicas": 1}]}


def test_a_ray_cluster_that_cannot_shrink_is_suspicious() -> None:
    assert only("ray-idle-cluster", node(), WORKER, ray(**FIXED)).severity == Severity.LOW
    for quiet in (
        ray(**FIXED, enableInTreeAutoscaling=True),
        ray(**FIXED, suspend=True),
        ray(owner="RayService", **FIXED),
        ray(owner="RayJob", **FIXED),
    ):
        assert findings("ray-idle-cluster", node(), WORKER, quiet) == []


def test_a_worker_group_without_gpus_is_nothing_to_us() -> None:
    template = {"spec": {"containers": [{"name": "w", "resources": {"limits": {"cpu": "4"}}}]}}
    cpu: dict[str, Any] = {"workerGroupSpecs": [{"groupName": "cpu", "minReplicas": 3, "template": template}]}
    assert findings("ray-idle-cluster", node(), WORKER, ray(**cpu)) == []


def test_what_a_finished_ray_job_leaves_is_waste() -> None:
    job: dict[str, Any] = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "job", "namespace": "ml"},
        "spec": {},
        "status": {"jobStatus": "SUCCEEDED"},
    }
    found = only("ray-idle-cluster", node(), WORKER, ray(owner="RayJob", **FIXED), job)
    assert (found.severity, found.remedy) == (Severity.MEDIUM, "job")
    shut = {**job, "spec": {"shutdownAfterJobFinishes": True}}
    assert findings("ray-idle-cluster", node(), WORKER, ray(owner="RayJob", **FIXED), shut) == []


def test_a_floor_of_one_is_information_for_keda_and_knative() -> None:
    scaled: dict[str, Any] = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "chat", "namespace": "ml"},
        "spec": {"scaleTargetRef": {"name": "chat"}, "minReplicaCount": 1},
    }
    assert only("keda-min-one", node(), replica(), scaled).severity == Severity.INFO
    idle = {**scaled, "spec": {**scaled["spec"], "idleReplicaCount": 0}}
    assert findings("keda-min-one", node(), replica(), idle) == []
    assert findings("keda-min-one", node(), replica(gpus=0), scaled) == []
    knative = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "chat", "namespace": "ml"},
        "spec": {"template": {"metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "2"}}}},
    }
    served = replica()
    served["metadata"]["labels"]["serving.knative.dev/service"] = "chat"
    assert only("keda-min-one", node(), served, knative).remedy == "knative"


def sidecar(exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": exit_code, "finishedAt": stamp(timedelta(hours=9))}}
    states = [
        {"name": "main", "state": ended},
        {"name": "logs", "state": {"running": {"startedAt": stamp(timedelta(days=2))}}},
    ]
    made = pod("train", on="gpu-1", gpus=GPU, owner=("Job", "train"), status={"containerStatuses": states}, **spec)
    made["spec"]["containers"].append({"name": "logs", "image": "apps/logs:1"})
    return made


def test_a_sidecar_that_goes_on_keeps_the_gpu() -> None:
    found = only("job-never-cleaned", node(), sidecar(restartPolicy="Never"))
    assert found.value("running") == ["logs"]
    assert found.remedy == "sidecar"
    only("job-never-cleaned", node(), sidecar(restartPolicy="OnFailure"))
    assert findings("job-never-cleaned", node(), sidecar(exit_code=1, restartPolicy="OnFailure")) == []
    assert findings("job-never-cleaned", node(), sidecar(restartPolicy="Always")) == []


def job(name: str, **spec: Any) -> Plain:
    limits = {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    done = {"type": "Complete", "status": "True", "lastTransitionTime": stamp(timedelta(days=3))}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"template": {"spec": limits}, **spec},
        "status": {"conditions": [done]},
    }


def test_finished_jobs_are_told_when_they_pile_up() -> None:
    assert only("job-never-cleaned", node(), *(job(f"j{n}") for n in range(5))).severity == Severity.LOW
    assert findings("job-never-cleaned", node(), *(job(f"j{n}") for n in range(4))) == []
    assert findings("job-never-cleaned", node(), *(job(f"j{n}", ttlSecondsAfterFinished=60) for n in range(9))) == []


def test_a_protected_notebook_and_ended_work_are_told() -> None:
    marked = pod(
        "nb", on="gpu-1", gpus=GPU, labels={"component": "singleuser-server"}, status=running(timedelta(days=2))
    )
    marked["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert keys(only("do-not-disrupt-on-idle", node(), marked)) == ["notebook"]
    over = sidecar(restartPolicy="Never")
    over["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    over["status"]["startTime"] = stamp(timedelta(days=2))
    assert only("do-not-disrupt-on-idle", node(), over).severity == Severity.MEDIUM
    work = pod(on="gpu-1", gpus=GPU, status=running(timedelta(days=9)))
    work["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    assert findings("do-not-disrupt-on-idle", node(), work) == []
