"""When a GPU node is idle, since when, and what it costs."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from rules.policy import Policy
from rules.words import render
from tests.rules.checks.kit import NOW, Plain, event, findings, keys, node, only, pod, stamp
from tests.rules.scaling import KARPENTER, node_pool

RULE = "idle-gpu-node"
WEB = pod("web", namespace="shop", on="gpu-1")
EC2 = {"node.kubernetes.io/instance-type": "p5.48xlarge", "topology.kubernetes.io/region": "us-east-1"}


def test_a_node_without_any_gpu_pod_is_idle_since_its_creation_at_most() -> None:
    found = only(RULE, node(age=timedelta(days=3)), WEB)
    assert found.value("idle") == 3 * 86400
    assert found.value("cpu_pods") == ["shop/web"]
    assert {"since_creation", "cpu_pods", "price_unknown"} == set(keys(found))
    assert "for up to 3 days" in render(found, "en").summary


@pytest.mark.parametrize(
    "busy",
    [
        [node(), pod(on="gpu-1", gpus={"nvidia.com/gpu": 1})],
        [node(gpus={"nvidia.com/mig-1g.5gb": 7}), pod(on="gpu-1", gpus={"nvidia.com/mig-1g.5gb": 1})],
        [node(gpus={"nvidia.com/gpu.shared": 16}), pod(on="gpu-1", gpus={"nvidia.com/gpu.shared": 1})],
        [node(gpus={"amd.com/gpu": 64}), pod(on="gpu-1", gpus={"amd.com/gpu": 1})],
        [node(gpus={"gpu.intel.com/xe": 2}), pod(on="gpu-1", gpus={"gpu.intel.com/xe": 1})],
        [node(), pod(on="gpu-1", env={"NVIDIA_VISIBLE_DEVICES": "all"})],
        [node(), pod(on="gpu-1", gpus={"nvidia.com/gpu": 1}, phase="Pending")],
    ],
    ids=["whole", "mig", "shared", "amd", "intel", "visible-devices", "still-pulling"],
)
def test_a_node_of_which_any_part_is_held_is_not_idle(busy: list[Plain]) -> None:
    assert findings(RULE, *busy) == []


def test_a_dra_claim_holds_the_gpu() -> None:
    claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    assert findings(RULE, node(), pod(on="gpu-1", resourceClaims=[claim])) == []


def test_the_plugin_that_sees_every_gpu_holds_none() -> None:
    plugin = pod(
        "plugin-x", on="gpu-1", env={"NVIDIA_VISIBLE_DEVICES": "all"}, owner=("DaemonSet", "nvidia-device-plugin")
    )
    assert only(RULE, node(), plugin).value("cpu_pods") == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    only(RULE, node(), pod(on="gpu-1", gpus={"nvidia.com/gpu": 1}, phase=phase))


def test_idleness_is_counted_from_the_last_gpu_pod_that_is_still_listed() -> None:
    done = pod(
        on="gpu-1",
        gpus={"nvidia.com/gpu": 1},
        phase="Succeeded",
        status={
            "containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": stamp(timedelta(hours=5))}}}
            ]
        },
    )
    found = only(RULE, node(), done)
    assert found.value("idle") == 5 * 3600
    assert "since_release" in keys(found)


def test_a_pod_that_ended_within_the_grace_period_keeps_the_node_out() -> None:
    done = pod(
        on="gpu-1",
        gpus={"nvidia.com/gpu": 1},
        phase="Succeeded",
        status={
            "containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": stamp(timedelta(minutes=5))}}}
            ]
        },
    )
    assert findings(RULE, node(), done) == []


@pytest.mark.parametrize(
    "fresh",
    [
        node(age=timedelta(minutes=29)),
        node(ready="False"),
        node(ready="Unknown"),
        node(gpus={"nvidia.com/gpu": 0}),
        node(gpus={}),
        node(gpus={}, labels={"kubernetes.io/hostname": "cpu-1"}),
    ],
    ids=["young", "not-ready", "unknown", "zero", "no-resource", "cpu-node"],
)
def test_young_unready_and_gpu_less_nodes_are_not_idle(fresh: Plain) -> None:
    assert findings(RULE, fresh) == []


def test_the_grace_period_is_the_teams_to_choose() -> None:
    young = node(age=timedelta(minutes=20))
    assert len(findings(RULE, young, policy=Policy(idle_grace_seconds=600))) == 1
    assert findings(RULE, node(age=timedelta(days=2)), policy=Policy(idle_grace_seconds=3 * 86400)) == []


def taint(key: str, ago: timedelta, value: str | None = None) -> dict[str, Any]:
    return {"key": key, "effect": "NoSchedule", "timeAdded": stamp(ago), **({"value": value} if value else {})}


def test_a_node_that_is_being_removed_is_left_alone_unless_removal_is_stuck() -> None:
    leaving = str(int((NOW - timedelta(minutes=3)).timestamp()))
    assert findings(RULE, node(taints=[taint("ToBeDeletedByClusterAutoscaler", timedelta(0), leaving)])) == []
    assert findings(RULE, node(taints=[taint("karpenter.sh/disrupted", timedelta(minutes=3))])) == []
    only(RULE, node(taints=[taint("karpenter.sh/disrupted", timedelta(days=2))]))


def test_a_node_that_a_pod_is_about_to_take_is_not_idle() -> None:
    nominated = pod(gpus={"nvidia.com/gpu": 1}, status={"nominatedNodeName": "gpu-1"})
    young = pod(gpus={"nvidia.com/gpu": 1}, age=timedelta(minutes=1))
    assert findings(RULE, node(), nominated) == []
    assert findings(RULE, node(), young) == []


def test_waiting_pods_that_would_fit_are_to_be_solved_before_the_node_goes() -> None:
    found = only(RULE, node(), pod(gpus={"nvidia.com/gpu": 1}, schedulerName="volcano"))
    assert found.remedy == "pending"
    assert "pending_fits" in keys(found)


def test_waiting_pods_that_cannot_use_the_node_are_named() -> None:
    found = only(RULE, node(), pod(gpus={"nvidia.com/gpu": 8}))
    assert found.remedy == "default"
    assert "pending_elsewhere" in keys(found)


def test_a_cuda_image_without_a_request_is_pointed_out() -> None:
    found = only(RULE, node(), pod("job", on="gpu-1", image="nvidia/cuda:12.4.1-runtime-ubuntu22.04"))
    assert "cuda_without_request" in keys(found)


def test_what_keeps_an_autoscaler_away_is_named() -> None:
    found = only(
        RULE, node(annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}, unschedulable=True)
    )
    assert {"kept_by_annotation", "cordoned"} <= set(keys(found))


def test_an_expensive_node_weighs_more_and_shows_price_basis_and_age() -> None:
    found = only(
        RULE,
        node(
            gpus={"nvidia.com/gpu": 8},
            age=timedelta(hours=10),
            labels={"nvidia.com/gpu.present": "true", **EC2},
            providerID="aws:///us-east-1a/i-0123456789abcdef0",
        ),
    )
    assert found.severity == Severity.HIGH
    assert found.cost is not None
    assert found.cost.usd_so_far == pytest.approx(10 * found.cost.usd_hour, abs=0.01)
    said = render(found, "es")
    assert "por hora" in said.detail
    assert "i-0123456789abcdef0" in said.remedy


@pytest.mark.parametrize(
    ("labels", "provider_id", "remedy"),
    [
        ({"karpenter.sh/nodepool": "gpu"}, "aws:///us-east-1a/i-01", "karpenter"),
        ({"cloud.google.com/gke-nodepool": "a100"}, "gce://p/europe-west4-a/n", "gke"),
        ({"eks.amazonaws.com/nodegroup": "gpu"}, "aws:///us-east-1a/i-01", "aws"),
        ({"kubernetes.azure.com/agentpool": "gpu"}, "azure:///subscriptions/s/vm/0", "aks"),
        (
            {"doks.digitalocean.com/node-pool": "gpu", "doks.digitalocean.com/node-id": "n-1"},
            "digitalocean://5",
            "doks",
        ),
        ({"doks.digitalocean.com/node-pool": "gpu"}, "digitalocean://5", "default"),
        ({}, "k3s://gpu-1", "default"),
    ],
)
def test_the_remedy_is_the_providers_own(labels: dict[str, str], provider_id: str, remedy: str) -> None:
    found = only(RULE, node(labels={"nvidia.com/gpu.present": "true", **labels}, providerID=provider_id))
    assert found.remedy == remedy
    assert "unknown" not in render(found, "en").remedy


def test_without_pods_nothing_is_said_about_idleness() -> None:
    assert findings(RULE, node(), read=("Node",)) == []


def test_events_play_no_part() -> None:
    gone = pod("gone")
    only(RULE, node(), event("Killing", "Stopping container main", gone, component="kubelet"))


def test_what_keeps_it_beside_its_pods_is_told() -> None:
    found = only(RULE, node(labels=KARPENTER), node_pool(disruption={"consolidateAfter": "Never"}))
    assert "kept" in keys(found)
    assert "consolidateAfter: Never" in render(found, "en").detail
    assert "kept" not in keys(only(RULE, node(), WEB))
