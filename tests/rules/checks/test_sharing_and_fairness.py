"""Shares, quotas, models and GPUs that are held in vain: what is claimed and what is not."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from tests.rules.checks.kit import Plain, cluster, event, findings, keys, node, only, pod, report

ONE = {"nvidia.com/gpu": 1}
TWO = {"nvidia.com/gpu": 2}
FOUR = {"nvidia.com/gpu": 4}
PRESENT = {"nvidia.com/gpu.present": "true"}
SLICED = {
    **PRESENT,
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.count": "1",
}


def labelled(name: str, product: str, gpus: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    return node(name, gpus=gpus or ONE, labels={**PRESENT, "nvidia.com/gpu.product": product}, **more)


# shares


@pytest.mark.parametrize(
    ("objects", "count"),
    [
        ([node(gpus=FOUR, labels=SLICED), pod(on="gpu-1", gpus=TWO)], 1),
        ([node(gpus=FOUR, labels=SLICED), pod(gpus=TWO)], 1),
        ([node(gpus=FOUR, labels=SLICED), pod("a", on="gpu-1", gpus=ONE), pod("b", on="gpu-1", gpus=ONE)], 0),
        ([node(gpus=FOUR), pod(on="gpu-1", gpus=TWO)], 0),
        ([node(gpus=FOUR, labels=SLICED), node("gpu-2", gpus=FOUR), pod(gpus={"nvidia.com/gpu": 8})], 0),
        ([node(gpus=FOUR, labels=SLICED), pod(on="gpu-1", gpus=TWO, phase="Succeeded")], 0),
    ],
    ids=["bound", "waiting", "one-each", "whole", "whole-elsewhere", "finished"],
)
def test_more_than_one_share_for_a_pod_is_told(objects: list[Plain], count: int) -> None:
    assert len(findings("timeslice-request-gt-one", *objects)) == count


def test_several_shares_of_one_card_are_called_so() -> None:
    assert "one_card" in keys(
        only("timeslice-request-gt-one", node(gpus=FOUR, labels=SLICED), pod(on="gpu-1", gpus=TWO))
    )


def test_sharing_everywhere_matters_only_to_pods_that_want_whole_gpus() -> None:
    nodes = [node("gpu-1", gpus=FOUR, labels=SLICED), node("gpu-2", gpus=FOUR, labels=SLICED)]
    assert findings("timeslice-everywhere", *nodes, pod(on="gpu-1", gpus=ONE)) == []
    assert len(findings("timeslice-everywhere", *nodes, pod(on="gpu-1", gpus=TWO))) == 1
    unknown = node("gpu-3", gpus={}, labels=PRESENT)
    assert findings("timeslice-everywhere", *nodes, unknown, pod(on="gpu-1", gpus=TWO)) == []


@pytest.mark.parametrize(
    ("one", "count"),
    [
        (node(gpus=FOUR, labels=SLICED), 1),
        (node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4}, labels=SLICED), 1),
        (node(gpus=FOUR), 0),
        (node(gpus={"nvidia.com/mig-1g.5gb": 7}), 0),
    ],
    ids=["plain-name", "shared-name", "whole", "mig-names"],
)
def test_units_above_the_cards_are_information(one: Plain, count: int) -> None:
    found = findings("shared-gpu-counted-as-physical", one)
    assert [item.severity for item in found] == [Severity.INFO] * count


def test_free_slices_are_told_only_while_pods_want_another_shape() -> None:
    cut = node(gpus={"nvidia.com/mig-1g.5gb": 2})
    assert len(findings("mig-idle-slices", cut, pod(gpus=ONE))) == 1
    assert findings("mig-idle-slices", cut) == []
    assert findings("mig-idle-slices", cut, pod(gpus={"nvidia.com/mig-1g.5gb": 3})) == []
    assert findings("mig-idle-slices", cut, pod(gpus={"amd.com/gpu": 1})) == []
    taken = pod("a", on="gpu-1", gpus={"nvidia.com/mig-1g.5gb": 2})
    assert findings("mig-idle-slices", cut, taken, pod(gpus=ONE)) == []


# fairness


def quota(**hard: str) -> Plain:
    metadata = {"name": "gpus", "namespace": "ml"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


TEAMS = [node(gpus=FOUR), pod("a", namespace="vision", on="gpu-1", gpus=ONE), pod("b", namespace="speech", gpus=ONE)]


@pytest.mark.parametrize(
    ("more", "severity"),
    [
        ([], Severity.INFO),
        ([quota(**{"limits.cpu": "8"})], Severity.LOW),
        ([quota(**{"requests.nvidia.com/gpu": "2"})], None),
        ([pod("kueue-controller-manager-1", namespace="kueue-system")], None),
    ],
    ids=["not-read", "no-gpus-in-it", "gpu-quota", "queue"],
)
def test_teams_without_a_limit_are_told(more: list[Plain], severity: Severity | None) -> None:
    found = findings("no-gpu-quota", *TEAMS, *more)
    assert [item.severity for item in found] == ([] if severity is None else [severity])


def test_one_team_and_the_gpu_software_need_no_quota() -> None:
    plugin = pod("p", namespace="gpu-operator", on="gpu-1", gpus=ONE)
    assert findings("no-gpu-quota", node(gpus=FOUR), TEAMS[1], plugin) == []


def serving(name: str = "llm", **how: Any) -> dict[str, Any]:
    return pod(name, gpus=ONE, owner=("ReplicaSet", "llm-7f9"), **how)


def batch(name: str = "sweep", **how: Any) -> dict[str, Any]:
    return pod(name, gpus=ONE, owner=("Job", "sweep"), on="gpu-1", **how)


@pytest.mark.parametrize(
    ("objects", "count"),
    [
        ([node(), batch(), serving()], 1),
        ([node(), batch(priorityClassName="low"), serving()], 0),
        ([node(), serving("other", on="gpu-1"), serving()], 0),
        ([node(taints=[{"key": "sku", "effect": "NoSchedule"}]), batch(), serving()], 0),
        ([node(), node("gpu-2"), batch(), serving()], 0),
        ([node(), batch(), pod(gpus=ONE, owner=("Job", "next"))], 0),
    ],
    ids=["waits-for-batch", "priorities", "waits-for-serving", "wrong-taint", "free", "batch-waits"],
)
def test_priorities_are_asked_for_where_preemption_would_help(objects: list[Plain], count: int) -> None:
    assert len(findings("no-priority-classes", *objects)) == count


@pytest.mark.parametrize(
    ("objects", "count"),
    [
        ([labelled("gpu-1", "A10"), labelled("gpu-2", "H100"), pod(on="gpu-1", gpus=ONE)], 1),
        ([labelled("gpu-1", "A10"), labelled("gpu-2", "A10"), pod(on="gpu-1", gpus=ONE)], 0),
        ([labelled("gpu-1", "A10"), labelled("gpu-2", "H100", FOUR), pod(on="gpu-2", gpus=TWO)], 0),
        (
            [
                labelled("gpu-1", "A10"),
                labelled("gpu-2", "H100", taints=[{"key": "h100", "effect": "NoSchedule"}]),
                pod(on="gpu-1", gpus=ONE),
            ],
            0,
        ),
        ([labelled("gpu-1", "A10"), labelled("gpu-2", "H100", ready="False"), pod(on="gpu-1", gpus=ONE)], 0),
        ([labelled("gpu-1", "A10"), labelled("gpu-2", "H100"), pod(on="gpu-1", gpus=ONE, owner=("DaemonSet", "d"))], 0),
    ],
    ids=["any", "one-model", "too-large-for-one", "tainted", "dead", "daemon"],
)
def test_models_that_a_pod_may_land_on_are_worked_out(objects: list[Plain], count: int) -> None:
    assert len(findings("capability-mismatch", *objects)) == count


# GPUs held in vain


def test_failed_pods_that_the_kubelet_refused_are_told_by_owner() -> None:
    status = {"reason": "OutOfnvidia.com/gpu", "message": "no."}
    refused = [pod(f"j-{i}", on="gpu-1", gpus=ONE, phase="Failed", owner=("Job", "j"), status=status) for i in range(2)]
    assert only("out-of-gpu-reason", node(), *refused).value("pods") == ["ml/j-0", "ml/j-1"]
    assert findings("out-of-gpu-reason", node(), pod(on="gpu-1", phase="Failed", status={"reason": "OutOfcpu"})) == []


def with_init(count: int, restart: str | None = None) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(count)}
    init = {"name": "prep", "resources": {"limits": limits}, **({"restartPolicy": restart} if restart else {})}
    return pod("server", on="gpu-1", gpus=ONE, initContainers=[init])


def test_init_containers_that_reserve_more_than_is_used_are_told() -> None:
    found = only("init-container-gpu", node(gpus=FOUR), with_init(3))
    assert (found.value("reserved"), found.value("used"), found.value("container")) == (3, 1, "prep")
    assert findings("init-container-gpu", node(gpus=FOUR), with_init(1)) == []
    assert findings("init-container-gpu", node(gpus=FOUR), with_init(3, "Always")) == []


def test_a_daemon_set_counts_the_gpus_that_its_pods_hold() -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    item = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "warm", "namespace": "ml"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    pods = [pod("warm-1", on="gpu-1", gpus=ONE, owner=("DaemonSet", "warm")), pod("x", on="gpu-1", gpus=ONE)]
    assert only("gpu-daemonset-requests", node(gpus=FOUR), item, *pods).value("held") == 1


def test_a_reservation_without_fractions_leaks() -> None:
    label = {"runai-gpu-group": "g1"}
    held = pod("res", namespace="runai-reservation", on="gpu-1", gpus=ONE, labels=label)
    shared = pod("user", on="gpu-1", labels={"runai-gpu-group/g1": "g1"})
    assert len(findings("kai-reservation-leak", node(), held)) == 1
    assert findings("kai-reservation-leak", node(), held, shared) == []
    finished = {**shared, "status": {"phase": "Succeeded"}}
    assert len(findings("kai-reservation-leak", node(), held, finished)) == 1


@pytest.mark.parametrize(
    ("minutes", "parameters", "count"),
    [
        (20, None, 1),
        (10, None, 0),
        (20, "placeholderTimeoutInSeconds=3600", 0),
        (10, "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=60", 1),
    ],
)
def test_placeholders_are_idle_after_their_timeout(minutes: int, parameters: str | None, count: int) -> None:
    held = pod("tg-app-1", on="gpu-1", gpus=ONE, age=timedelta(minutes=minutes))
    held["metadata"]["annotations"] = {
        "yunikorn.apache.org/placeholder": "true",
        **({"yunikorn.apache.org/schedulingPolicyParameters": parameters} if parameters else {}),
    }
    assert len(findings("yunikorn-placeholder-idle", node(), held)) == count


# clouds without capacity, and groups that grow for the wrong pods


def test_a_refusal_for_backoff_is_told_without_the_status() -> None:
    asking = pod(gpus=ONE)
    said = "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 1 Insufficient nvidia.com/gpu"
    refusal = event("NotTriggerScaleUp", said, asking, component="cluster-autoscaler")
    objects = [node("cpu", gpus={}, labels={}), asking, refusal]
    assert only("ca-scale-up-backoff", *objects).severity == Severity.HIGH
    told = {item.rule for item in report(*objects).findings}
    assert not told & {"gpu-pod-pending", "scale-from-zero-unknown-gpu"}


@pytest.mark.parametrize(("minutes", "count"), [(10, 1), (120, 0)])
def test_karpenters_lack_of_capacity_counts_while_it_is_fresh(minutes: int, count: int) -> None:
    claim = {"kind": "NodeClaim", "metadata": {"name": "gpu-x"}}
    said = event(
        "InsufficientCapacityError", "no capacity", claim, component="karpenter", ago=timedelta(minutes=minutes)
    )
    assert len(findings("ca-scale-up-backoff", node("cpu", gpus={}, labels={}), pod(gpus=ONE), said)) == count


POOL = {**PRESENT, "eks.amazonaws.com/nodegroup": "ng-gpu"}
WEB = pod("web")


def grew(about: Plain) -> Plain:
    said = "pod triggered scale-up: [{eks-ng-gpu-0a1b 1->2 (max: 4)}]"
    return event("TriggeredScaleUp", said, about, component="cluster-autoscaler")


@pytest.mark.parametrize(
    ("objects", "count"),
    [
        ([node(labels=POOL), WEB, grew(WEB)], 1),
        ([node(labels=POOL, taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), WEB, grew(WEB)], 0),
        ([node(gpus={}, labels={"eks.amazonaws.com/nodegroup": "ng-gpu"}), WEB, grew(WEB)], 0),
        ([node(labels=POOL), grew(WEB)], 0),
    ],
    ids=["open", "tainted", "no-gpus", "pod-gone"],
)
def test_gpu_groups_that_grow_for_cpu_pods_are_told(objects: list[Plain], count: int) -> None:
    assert len(findings("cpu-overflow-to-gpu-group", *objects)) == count


def test_the_facts_of_these_tests_are_what_they_seem() -> None:
    assert cluster(node(gpus=FOUR, labels=SLICED)).gpu_nodes[0].physical_gpus == 1
