"""Rollouts, gangs and queues that block themselves: what is claimed and what is not."""

from typing import Any

import pytest

from rules.checks._rollout import Rollout, rollout_of
from rules.facts.objects import ObjectMeta, OtherObject
from rules.findings import Severity
from tests.rules.checks.kit import Plain, findings, keys, node, only, pod, report

ONE = {"nvidia.com/gpu": 1}
EIGHT = {"nvidia.com/gpu": 8}


def made(kind: str, name: str, api: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "ml"}, **parts}


def deployment(replicas: int = 1, gpus: dict[str, int] | None = None, **spec: Any) -> dict[str, Any]:
    limits = {key: str(value) for key, value in (ONE if gpus is None else gpus).items()}
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    return made("Deployment", "llm", "apps/v1", spec={"replicas": replicas, "template": template, **spec})


def replica(name: str, version: str, **how: Any) -> dict[str, Any]:
    owner = ("ReplicaSet", f"llm-{version}")
    return pod(name, gpus=ONE, owner=owner, labels={"pod-template-hash": version}, **how)


def rules_of(*objects: Plain) -> set[str]:
    result = report(*objects)
    assert result.failed_rules == ()
    return {item.rule for item in result.findings}


# rollouts


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 1}, Rollout(1, 1, 0)),
        ({"replicas": 3}, Rollout(3, 1, 0)),
        ({"replicas": 4}, Rollout(4, 1, 1)),
        ({}, Rollout(1, 1, 0)),
        ({"replicas": 0}, None),
        ({"replicas": 2, "strategy": {"type": "Recreate"}}, None),
        (
            {
                "replicas": 2,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            },
            Rollout(2, 0, 1),
        ),
        (
            {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "10%"}}},
            Rollout(2, 0, 1),
        ),
        ({"replicas": 10, "strategy": {"rollingUpdate": {"maxSurge": "15%", "maxUnavailable": 0}}}, Rollout(10, 2, 0)),
    ],
)
def test_surge_and_unavailable_are_rounded_as_kubernetes_rounds_them(
    spec: dict[str, Any], expected: Rollout | None
) -> None:
    assert rollout_of(OtherObject(ObjectMeta(name="llm"), kind="Deployment", spec=spec)) == expected


OLD = replica("llm-old", "5d9", on="gpu-1")
NEW = replica("llm-new", "7f9")


def test_an_update_that_waits_for_its_own_gpu_is_a_deadlock() -> None:
    found = only("rollout-deadlock", node(), deployment(), OLD, NEW)
    assert {str(ref) for ref in found.objects} >= {"Deployment/ml/llm", "Pod/ml/llm-new", "Pod/ml/llm-old"}
    assert "gpu-pod-pending" not in rules_of(node(), deployment(), OLD, NEW)


@pytest.mark.parametrize(
    "objects",
    [
        [node(), deployment(4), OLD, NEW],
        [node(), deployment(2), OLD, replica("llm-more", "5d9")],
        [node(), deployment(), pod("other", on="gpu-1", gpus=ONE), NEW],
        [node(), node("gpu-2"), deployment(), OLD, NEW],
        [node(), deployment(strategy={"type": "Recreate"}), OLD, NEW],
    ],
    ids=["may-stop-one", "scaling-not-rolling", "others-hold-it", "one-is-free", "recreate"],
)
def test_what_is_no_deadlock_of_a_rollout(objects: list[Plain]) -> None:
    assert findings("rollout-deadlock", *objects) == []


def autoscaler(target: int, maximum: int) -> Plain:
    text = f"nodeGroups:\n- name: gpu\n  health: {{cloudProviderTarget: {target}, minSize: 0, maxSize: {maximum}}}\n"
    config = made("ConfigMap", "cluster-autoscaler-status", "v1", data={"status": text})
    return {**config, "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}}


@pytest.mark.parametrize(
    ("objects", "severity"),
    [
        ([node(), deployment(), OLD], Severity.MEDIUM),
        ([node(), deployment(), OLD, autoscaler(1, 1)], Severity.MEDIUM),
        ([node(), deployment(), OLD, autoscaler(1, 4)], None),
        ([node(labels={"nvidia.com/gpu.present": "true", "karpenter.sh/nodepool": "g"}), deployment(), OLD], None),
        ([node(gpus={"nvidia.com/gpu": 2}), deployment(), OLD], None),
        ([node(), deployment(4), OLD], None),
        ([node(), deployment(), OLD, NEW], None),
        ([node(), deployment(gpus={})], None),
    ],
    ids=["fixed", "full-group", "group-may-grow", "karpenter", "spare", "may-stop-one", "already-stuck", "no-gpu"],
)
def test_the_next_rollout_is_a_risk_only_where_nothing_gives_it_room(
    objects: list[Plain], severity: Severity | None
) -> None:
    found = findings("rollout-deadlock-risk", *objects)
    assert [item.severity for item in found] == ([] if severity is None else [severity])


@pytest.mark.parametrize(("members", "strategy", "count"), [("3", {}, 1), ("1", {}, 0), ("3", {"type": "Recreate"}, 0)])
def test_a_gang_larger_than_a_rolling_update_starts_is_told(members: str, strategy: Any, count: int) -> None:
    item = deployment(3, strategy=strategy)
    item["spec"]["template"]["metadata"] = {"annotations": {"scheduling.volcano.sh/group-min-member": members}}
    assert len(findings("gang-min-member-rollout", node(gpus=EIGHT), item)) == count


# multi-node jobs


def worker(index: int, job: str = "pretrain", on: str | None = None, **how: Any) -> dict[str, Any]:
    member = pod(f"{job}-worker-{index}", gpus=EIGHT, on=on, owner=("PyTorchJob", job), **how)
    member["metadata"]["ownerReferences"][0]["apiVersion"] = "kubeflow.org/v1"
    return member


NODE = node(gpus=EIGHT)
HALF = [NODE, worker(0, on="gpu-1"), worker(1)]


def test_a_half_scheduled_job_is_told_once_with_all_its_pods() -> None:
    found = only("partial-gang", *HALF)
    assert found.objects[0].kind == "PyTorchJob"
    assert {ref.name for ref in found.objects} == {"pretrain", "pretrain-worker-0", "pretrain-worker-1"}
    assert "in_the_way" in keys(found)
    assert not rules_of(*HALF) & {"gpu-pod-pending", "two-jobs-deadlock"}


@pytest.mark.parametrize(
    "objects",
    [
        [NODE, worker(0, on="gpu-1", schedulerName="volcano"), worker(1, schedulerName="volcano")],
        [NODE, worker(0), worker(1)],
        [NODE, node("gpu-2", gpus=EIGHT), worker(0, on="gpu-1"), worker(1, on="gpu-2")],
        [NODE, pod("a", on="gpu-1", gpus=EIGHT, owner=("Job", "sweep")), pod("b", gpus=EIGHT, owner=("Job", "sweep"))],
        [NODE, worker(0, on="gpu-1"), worker(1, schedulingGates=[{"name": "g"}])],
    ],
    ids=["gang-scheduler", "none-runs", "all-run", "independent-pods", "gated"],
)
def test_what_is_no_half_scheduled_gang(objects: list[Plain]) -> None:
    assert findings("partial-gang", *objects) == []


def test_two_half_scheduled_jobs_that_need_each_others_gpus_are_a_deadlock() -> None:
    two = [NODE, node("gpu-2", gpus=EIGHT), worker(0, "a", "gpu-1"), worker(1, "a"), worker(0, "b", "gpu-2")]
    assert findings("two-jobs-deadlock", *two) == []
    found = only("two-jobs-deadlock", *two, worker(1, "b"))
    assert (found.value("gpus_held"), found.value("gpus_missing")) == (16, 16)


def group(wanted: int) -> dict[str, Any]:
    return made("PodGroup", "mpi", "scheduling.volcano.sh/v1beta1", spec={"minMember": wanted})


def member(index: int, kind: str = "MPIJob", **how: Any) -> dict[str, Any]:
    item = pod(f"mpi-worker-{index}", gpus=ONE, owner=(kind, "mpi"), schedulerName="volcano", **how)
    item["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "mpi"}
    return item


def job(workers: int = 2, kind: str = "MPIJob") -> dict[str, Any]:
    roles = {"Launcher": {"replicas": 1}, "Worker": {"replicas": workers}}
    return made(kind, "mpi", "kubeflow.org/v2beta1", spec={"mpiReplicaSpecs": roles})


CONFLICT, WRONG = "gang-operator-conflict", "gang-min-wrong"


@pytest.mark.parametrize(
    ("objects", "rule"),
    [
        ([group(3), job(), member(0), member(1)], CONFLICT),
        ([group(3), member(0), member(1)], CONFLICT),
        ([group(5), job(), member(0), member(1)], WRONG),
        ([group(5), member(0), member(1)], WRONG),
        ([group(3), member(0, "VCJob"), member(1, "VCJob")], WRONG),
        ([group(2), job(), member(0), member(1)], None),
        ([group(4), job(3), member(0), member(1)], CONFLICT),
        ([group(3), job(4), member(0), member(1), member(2)], None),
    ],
    ids=["late", "late-unread", "more-than-ever", "unread-more", "unknown-kind", "complete", "late-and-slow", "full"],
)
def test_gangs_that_lack_members_are_told_by_the_rule_that_knows_why(objects: list[Plain], rule: str | None) -> None:
    found = rules_of(node(gpus=EIGHT), *objects) & {CONFLICT, WRONG}
    assert found == ({rule} if rule else set())


def test_a_gang_that_has_just_begun_is_no_trouble() -> None:
    from datetime import timedelta

    young = [member(0, age=timedelta(minutes=1)), member(1, age=timedelta(minutes=1))]
    assert not rules_of(node(gpus=EIGHT), group(3), job(), *young) & {CONFLICT, WRONG}


# Kueue

KUEUE = "kueue.x-k8s.io/v1beta1"
LABELS = {"nvidia.com/gpu.present": "true", "pool": "h100"}


def queue(amount: int, name: str = "team") -> dict[str, Any]:
    flavor = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(amount)}]}
    item = made("ClusterQueue", name, KUEUE, spec={"resourceGroups": [{"flavors": [flavor]}]})
    return {**item, "metadata": {"name": name}}


FLAVOR = {**made("ResourceFlavor", "h100", KUEUE, spec={"nodeLabels": {"pool": "h100"}}), "metadata": {"name": "h100"}}


def workload(*conditions: dict[str, str], gpus: int = 8) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)}
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    item = made(
        "Workload",
        "job-sweep",
        KUEUE,
        spec={"queueName": "team", "podSets": [{"name": "main", "count": 1, "template": template}]},
        status={
            "conditions": list(conditions),
            "admission": {"podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "h100"}}]},
        },
    )
    item["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "controller": True}
    ]
    return item


ADMITTED = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}
H100 = node(gpus=EIGHT, labels=LABELS)
BUSY = pod("holder", on="gpu-1", gpus=EIGHT)
WAITS = pod("sweep-1", gpus=EIGHT, owner=("Job", "sweep"))


def test_quota_above_the_gpus_is_told_with_the_pods_that_wait_for_it() -> None:
    objects = [H100, queue(8), queue(8, "other"), FLAVOR, workload(ADMITTED), BUSY, WAITS]
    found = only("kueue-admits-without-capacity", *objects)
    assert (found.value("quota"), found.value("capacity")) == (16, 8)
    assert "gpu-pod-pending" not in rules_of(*objects)


@pytest.mark.parametrize(
    "objects",
    [
        [H100, queue(8), FLAVOR, workload(ADMITTED), BUSY, WAITS],
        [H100, queue(16), FLAVOR, workload(ADMITTED), BUSY],
        [H100, queue(16), FLAVOR, workload(), BUSY, WAITS],
    ],
    ids=["quota-fits", "nothing-waits", "not-admitted"],
)
def test_quota_that_harms_nobody_is_not_told(objects: list[Plain]) -> None:
    assert findings("kueue-admits-without-capacity", *objects) == []


@pytest.mark.parametrize(
    ("reason", "message", "gpus", "count"),
    [
        ("ExceedsMaxQuota", "", 16, 1),
        ("Pending", "couldn't assign flavors: request > maximum capacity (16 > 8)", 16, 1),
        ("NoMatchingFlavor", "", 8, 1),
        ("Pending", "insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed", 8, 0),
        ("ExceedsMaxQuota", "", 0, 0),
    ],
)
def test_what_kueue_can_never_admit_is_told_and_what_waits_its_turn_is_not(
    reason: str, message: str, gpus: int, count: int
) -> None:
    waiting = {"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
    assert len(findings("kueue-never-admits", H100, workload(waiting, gpus=gpus))) == count
