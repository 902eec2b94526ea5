"""Which pods belong together, what a node has left, what queues and autoscalers there are."""

from decimal import Decimal
from typing import Any

import pytest

from rules.facts.cluster import ClusterFacts
from rules.findings import ObjectRef
from tests.rules.checks.kit import DATA, cluster, node, pod, sample

ONE = {"nvidia.com/gpu": 1}


def custom(kind: str, name: str, api: str = "kubeflow.org/v1", namespace: str = "ml", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}


def owned(name: str, kind: str, owner: str, api: str = "kubeflow.org/v1", **more: Any) -> dict[str, Any]:
    made = pod(name, gpus=ONE, owner=(kind, owner), **more)
    made["metadata"]["ownerReferences"][0]["apiVersion"] = api
    return made


def groups(*objects: Any) -> list[tuple[str, str, int, int | None, str | None]]:
    facts = cluster(*objects)
    return [(str(item.ref), item.part, len(item.pods), item.expected, item.gang) for item in facts.workload_groups]


def test_members_of_a_training_job_are_one_group_with_the_number_that_it_wants() -> None:
    specs = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    job = custom("PyTorchJob", "pretrain", spec={"pytorchReplicaSpecs": specs})
    members = [owned(f"pretrain-{index}", "PyTorchJob", "pretrain") for index in range(2)]
    done = owned("pretrain-old", "PyTorchJob", "pretrain", phase="Failed")
    assert groups(job, *members, done) == [("PyTorchJob/ml/pretrain", "", 2, 4, None)]
    assert groups(*members) == [("PyTorchJob/ml/pretrain", "", 2, None, None)]


def test_the_launcher_of_an_mpi_job_belongs_to_it() -> None:
    labels = {"training.kubeflow.org/job-name": "mpi"}
    launcher = owned("mpi-launcher-x", "Job", "mpi-launcher", api="batch/v1", labels=labels)
    worker = owned("mpi-worker-0", "MPIJob", "mpi", api="kubeflow.org/v2beta1", labels=labels)
    assert groups(launcher, worker) == [("MPIJob/ml/mpi", "", 2, None, None)]


def test_each_replica_of_a_leader_worker_set_is_a_group() -> None:
    def member(name: str, index: str) -> dict[str, Any]:
        made = pod(
            name,
            gpus=ONE,
            labels={
                "leaderworkerset.sigs.k8s.io/name": "llm",
                "leaderworkerset.sigs.k8s.io/group-index": index,
            },
        )
        made["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/size": "4"}
        return made

    found = groups(member("llm-0", "0"), member("llm-0-1", "0"), member("llm-1", "1"))
    assert found == [("LeaderWorkerSet/ml/llm", "0", 2, 4, None), ("LeaderWorkerSet/ml/llm", "1", 1, 4, None)]


@pytest.mark.parametrize(
    ("kind", "api", "label", "spec", "wanted"),
    [
        (
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            "jobset.sigs.k8s.io/jobset-name",
            {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4}}}, {"replicas": 1}]},
            9,
        ),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "jobset.sigs.k8s.io/jobset-name", {"replicatedJobs": "?"}, None),
        (
            "RayCluster",
            "ray.io/v1",
            "ray.io/cluster",
            {"workerGroupSpecs": [{"replicas": 3}, {"replicas": 1, "numOfHosts": 2}]},
            6,
        ),
    ],
)
def test_labels_of_operators_name_the_workload(kind: str, api: str, label: str, spec: Any, wanted: int | None) -> None:
    member = pod("w-0", gpus=ONE, labels={label: "big"})
    assert groups(custom(kind, "big", api, spec=spec), member) == [(f"{kind}/ml/big", "", 1, wanted, None)]


def test_volcanos_job_is_a_group_and_kubernetes_own_is_not() -> None:
    api = "batch.volcano.sh/v1alpha1"
    job = custom("Job", "v", api, spec={"tasks": [{"replicas": 2}, {"replicas": 1}]})
    member = owned("v-0", "Job", "v", api=api, schedulerName="volcano")
    assert groups(job, member, pod("sweep", owner=("Job", "sweep"))) == [("Job/ml/v", "", 1, 3, "volcano")]


@pytest.mark.parametrize(
    ("more", "gang"),
    [
        ({}, None),
        ({"schedulerName": "default-scheduler"}, None),
        ({"schedulerName": "kai-scheduler"}, "kai-scheduler"),
        ({"labels": {"kueue.x-k8s.io/queue-name": "team"}}, "kueue"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "pg"}}, "pg"),
    ],
)
def test_what_starts_all_members_together_is_known(more: dict[str, Any], gang: str | None) -> None:
    assert groups(owned("w-0", "PyTorchJob", "t", **more))[0][4] == gang


def test_a_pod_group_knows_its_members() -> None:
    facts, _ = sample(DATA / "cases" / "20-gang-waits-for-a-third-member")
    [group] = facts.pod_groups
    assert (str(group.ref), group.min_member, group.phase) == ("PodGroup/ml/mpi-demo", 3, "Pending")
    assert [pod.ref.name for pod in group.members] == ["mpi-demo-worker-0", "mpi-demo-worker-1"]


def test_the_deployment_of_a_pod_is_found_with_and_without_its_replica_set() -> None:
    facts, _ = sample(DATA / "clusters" / "eks-managed-spot-ondemand.json")
    llm = ObjectRef("Deployment", "inference", "llm-serve")
    assert len([pod for pod in facts.pods if facts.deployment_of(pod) == llm]) == 2
    alone = cluster(pod("web-7f9c-x", owner=("ReplicaSet", "web-7f9c"), labels={"pod-template-hash": "7f9c"}))
    assert alone.deployment_of(alone.pods[0]) == ObjectRef("Deployment", "ml", "web")
    other = cluster(pod("a", owner=("ReplicaSet", "a")), pod("b"))
    assert [other.deployment_of(item) for item in other.pods] == [None, None]


def test_the_name_of_a_replica_set_tells_its_deployment_where_nothing_else_does() -> None:
    hashed = pod("opt-tp2-6b7d9c5f44-9zkqv", owner=("ReplicaSet", "opt-tp2-6b7d9c5f44"))
    by_hand = pod("model-v2", owner=("ReplicaSet", "model-v2-blue"))
    rollout = pod("r", owner=("ReplicaSet", "r-6b7d9c5f44"), labels={"rollouts-pod-template-hash": "6b7d9c5f44"})
    facts = cluster(hashed, by_hand, rollout)
    assert [facts.deployment_of(item) for item in facts.pods] == [ObjectRef("Deployment", "ml", "opt-tp2"), None, None]


def left(facts: ClusterFacts) -> dict[str, Decimal]:
    return dict(facts.nodes[0].left)


def test_what_a_node_has_left_counts_every_resource_and_no_finished_pod() -> None:
    big = pod("big", on="gpu-1", gpus=ONE)
    big["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    big["spec"]["initContainers"] = [{"name": "init", "resources": {"requests": {"cpu": "4"}}}]
    big["spec"]["overhead"] = {"cpu": "250m"}
    whole = pod("pod-level", on="gpu-1", resources={"requests": {"cpu": "2"}})
    done = pod("done", on="gpu-1", gpus=ONE, phase="Succeeded")
    rest = left(cluster(node(), big, whole, done))
    assert rest["cpu"] == Decimal(16) - Decimal("4.25") - Decimal(2)
    assert rest["memory"] == Decimal(63 * 1024**3)
    assert rest["pods"] == 108
    assert rest["nvidia.com/gpu"] == 0


@pytest.mark.parametrize(
    ("objects", "systems"),
    [
        ([], set()),
        ([custom("ClusterQueue", "q", "kueue.x-k8s.io/v1beta1")], {"kueue"}),
        ([custom("Queue", "q", "scheduling.run.ai/v2")], {"kai"}),
        ([custom("PodGroup", "q", "scheduling.x-k8s.io/v1alpha1")], {"coscheduling"}),
        ([pod("volcano-scheduler-5d9")], {"volcano"}),
        ([pod("a", schedulerName="yunikorn")], {"yunikorn"}),
        ([pod("a", labels={"kueue.x-k8s.io/queue-name": "q"})], {"kueue"}),
    ],
)
def test_queueing_systems_are_recognised(objects: list[Any], systems: set[str]) -> None:
    assert cluster(*objects).queue_systems == systems


def status(text: str) -> dict[str, Any]:
    return custom("ConfigMap", "cluster-autoscaler-status", "v1", "kube-system", data={"status": text})


OLD_STATUS = """Cluster-autoscaler status at 2023-05-01 10:00:00 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=2 unready=0 notStarted=0 longNotStarted=0 registered=2 longUnregistered=0)
NodeGroups:
  Name:        asg-gpu
  Health:      Healthy (ready=0 unready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=6))
  ScaleUp:     Backoff (ready=0 cloudProviderTarget=0)
  Name:        asg-cpu
  Health:      Healthy (ready=2 unready=0 registered=2 cloudProviderTarget=2 (minSize=2, maxSize=2))
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)
"""


def test_node_groups_are_read_from_the_text_of_old_autoscalers() -> None:
    groups = cluster(status(OLD_STATUS)).autoscaler_groups
    assert groups is not None
    assert [(item.name, item.target, item.minimum, item.maximum, item.scale_up, item.full) for item in groups] == [
        ("asg-gpu", 0, 0, 6, "Backoff", False),
        ("asg-cpu", 2, 2, 2, "NoActivity", True),
    ]


def test_node_groups_are_read_from_yaml() -> None:
    facts, _ = sample(DATA / "cases" / "03-gpu-group-stuck-at-zero")
    assert facts.autoscaler_groups is not None
    assert [(item.name, item.target, item.ready, item.maximum) for item in facts.autoscaler_groups] == [
        ("asg-general", 2, 2, 2),
        ("asg-gpu-g4dn-spot", 0, 0, 6),
    ]
    info = "backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: x}"
    backoff = f"nodeGroups:\n- name: g\n  scaleUp: {{status: Backoff, {info}}}"
    groups = cluster(status(backoff)).autoscaler_groups
    assert groups is not None
    assert (groups[0].scale_up, groups[0].error_code, groups[0].full) == ("Backoff", "QUOTA_EXCEEDED", None)


@pytest.mark.parametrize("text", ["", "nonsense", "nodeGroups: 3", "nodeGroups: [3, {name: }]", "a: [", "{" * 5000])
def test_a_status_that_cannot_be_read_is_unknown(text: str) -> None:
    assert not cluster(status(text)).autoscaler_groups
