"""Health of GPU nodes: dead ones, bad hardware, rejected pods, MIG, DRA, labels and metrics."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import Severity
from rules.words import render
from tests.rules.checks.kit import (
    NOW,
    Plain,
    container_status,
    daemon_set,
    event,
    findings,
    keys,
    node,
    only,
    pod,
    stamp,
)

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
ONE = {"nvidia.com/gpu": 1}
AWS: dict[str, Any] = {"providerID": "aws:///eu-west-1a/i-0123456789abcdef0"}


@pytest.mark.parametrize(
    ("ready", "ago", "where", "expected"),
    [
        ("Unknown", timedelta(minutes=20), AWS, None),
        ("Unknown", 2 * DAY, AWS, "nodes-notready-gpu"),
        ("False", 2 * DAY, {}, "nodes-notready-gpu"),
        ("Unknown", 2 * HOUR, {}, "nodes-notready-gpu"),
        ("Unknown", 2 * DAY, {}, "ghost-node"),
        ("Unknown", 2 * DAY, {"providerID": "k3s://gpu-1"}, "ghost-node"),
        ("True", 2 * DAY, {}, None),
    ],
)
def test_a_dead_node_is_billed_or_a_ghost_never_both(
    ready: str, ago: timedelta, where: dict[str, Any], expected: str | None
) -> None:
    dead = node(ready=ready, ready_for=ago, **where)
    said = [rule for rule in ("nodes-notready-gpu", "ghost-node") if findings(rule, dead)]
    assert said == ([expected] if expected else [])
    if expected == "ghost-node":
        assert only("ghost-node", dead).cost is None


def terminating(late: timedelta, owner: tuple[str, str] = ("ReplicaSet", "llm-5f")) -> dict[str, Any]:
    made = pod("llm", on="gpu-1", gpus=ONE, owner=owner)
    made["metadata"]["deletionTimestamp"] = stamp(late)
    return made


def test_a_pod_that_cannot_end_blocks_a_stateful_set() -> None:
    dead = node(ready="Unknown", ready_for=HOUR)
    assert only("terminating-pod-on-dead-node", dead, terminating(HOUR)).severity == Severity.MEDIUM
    found = only("terminating-pod-on-dead-node", dead, terminating(HOUR, ("StatefulSet", "llm")))
    assert (found.severity, keys(found)) == (Severity.HIGH, ["stateful"])
    assert findings("terminating-pod-on-dead-node", dead, terminating(timedelta(minutes=5))) == []
    assert findings("terminating-pod-on-dead-node", node(), terminating(HOUR)) == []


@pytest.mark.parametrize(
    ("kind", "status", "bad"),
    [
        ("AcceleratedHardwareReady", "False", True),
        ("AcceleratedHardwareReady", "True", False),
        ("XidCriticalError", "True", True),
        ("XIDErrors", "Unknown", False),
        ("GPUMissing", "True", True),
        ("NVLinkStatusInactive", "True", True),
        ("AMDGPUProblem", "True", True),
        ("SysLogsXIDError", "True", True),
        ("GpuThermalWatch", "True", True),
        ("GPUHealthy", "False", True),
        ("acme.com/gpu-fault", "True", True),
        ("KernelDeadlock", "True", False),
        ("VMEventScheduled", "True", False),
        ("MemoryPressure", "True", False),
    ],
)
def test_conditions_are_told_by_what_they_name(kind: str, status: str, bad: bool) -> None:
    judged = node(conditions=[{"type": kind, "status": status, "lastTransitionTime": stamp(DAY)}])
    assert bool(findings("accelerated-hw-not-ready", judged)) is bad


def test_what_keeps_pods_off_a_sick_node_is_named_and_a_flapping_link_weighs_less() -> None:
    xid = {"type": "XIDErrors", "status": "True", "lastTransitionTime": stamp(DAY)}
    assert "open" in keys(only("accelerated-hw-not-ready", node(conditions=[xid])))
    assert "fenced" in keys(only("accelerated-hw-not-ready", node(conditions=[xid], unschedulable=True)))
    flapping = {**xid, "type": "IBLinkFlapping"}
    assert only("accelerated-hw-not-ready", node(conditions=[flapping])).severity == Severity.MEDIUM


def rejected(name: str, ago: timedelta, owner: str = "rag-5d9") -> dict[str, Any]:
    status = {"reason": "UnexpectedAdmissionError", "message": "Allocate failed due to no healthy devices present"}
    return pod(name, on="gpu-1", gpus=ONE, phase="Failed", age=ago, owner=("ReplicaSet", owner), status=status)


def software(born: timedelta) -> dict[str, Any]:
    return pod(
        "nvidia-container-toolkit-daemonset-x",
        namespace="gpu-operator",
        on="gpu-1",
        age=born,
        owner=("DaemonSet", "nvidia-container-toolkit-daemonset"),
        status=container_status(up=born, ready=True),
    )


def test_rejected_pods_are_a_pile_or_the_work_of_a_roll_out() -> None:
    three = [rejected(f"rag-{index}", timedelta(hours=index + 3)) for index in range(3)]
    pile = only("unexpected-admission-pileup", node(), *three)
    assert (pile.value("amount"), pile.severity) == (3, Severity.HIGH)
    assert findings("operator-rollout-kills-pods", node(), *three) == []
    assert only("operator-rollout-kills-pods", node(), *three, software(HOUR)).value("pods") == [
        "ml/rag-0",
        "ml/rag-1",
        "ml/rag-2",
    ]
    assert findings("unexpected-admission-pileup", node(), *three, software(HOUR)) == []
    only("unexpected-admission-pileup", node(), *three, software(DAY))


def test_rejected_pods_of_different_owners_are_no_pile() -> None:
    apart = [rejected(f"rag-{index}", HOUR, owner=f"rag-{index}") for index in range(3)]
    assert findings("unexpected-admission-pileup", node(), *apart) == []


def test_a_lost_gpu_is_told_by_a_pod_or_a_recent_event() -> None:
    said = "error creating nvml.Device 2: nvml: GPU is lost"
    plugin = pod("nvidia-device-plugin-x", on="gpu-1", owner=("DaemonSet", "nvidia-device-plugin"))
    crashing = {**plugin, "status": {"phase": "Running", **container_status(waiting="CrashLoopBackOff", said=said)}}
    only("gpu-lost-whole-node", node(), crashing)
    note = event("GPULost", "GPU 3 has fallen off the bus", node(), component="node-problem-detector")
    only("gpu-lost-whole-node", node(), note)
    old = event("GPULost", "GPU 3 has fallen off the bus", node(), component="npd", ago=3 * DAY)
    assert findings("gpu-lost-whole-node", node(), old) == []


def stamped(ago: timedelta, **more: Any) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gfd.timestamp": str(int((NOW - ago).timestamp()))}
    return node(labels=labels, **more)


def discovery(on: str, **status: Any) -> dict[str, Any]:
    return pod(f"gfd-{on}", on=on, owner=("DaemonSet", "gpu-feature-discovery"), status=container_status(**status))


def test_an_old_stamp_alone_is_normal() -> None:
    assert findings("stale-gfd-labels", stamped(90 * DAY)) == []
    assert findings("stale-gfd-labels", stamped(90 * DAY), discovery("gpu-1", up=DAY, ready=True)) == []


def test_labels_are_stale_where_discovery_fails_though_it_runs_elsewhere() -> None:
    elsewhere = [node("gpu-2"), discovery("gpu-2", up=DAY, ready=True)]
    assert keys(only("stale-gfd-labels", stamped(90 * DAY), *elsewhere)) == ["discovery_absent"]
    failing = discovery("gpu-1", waiting="CrashLoopBackOff", restarts=9)
    assert keys(only("stale-gfd-labels", stamped(90 * DAY), failing, *elsewhere)) == ["discovery_failing"]
    assert findings("stale-gfd-labels", stamped(HOUR), *elsewhere) == []


def mig(state: str, gpus: dict[str, int] | None = None, **labels: str) -> dict[str, Any]:
    wanted = {"nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/mig.config.state": state, **labels}
    return node(gpus={"nvidia.com/gpu": 0} if gpus is None else gpus, labels=wanted)


def test_a_layout_that_failed_names_the_pods_that_hold_the_card() -> None:
    assert only("mig-config-failed", mig("failed")).remedy == "default"
    held = only("mig-config-failed", mig("failed", {"nvidia.com/gpu": 1}), pod("train", on="gpu-1", gpus=ONE))
    assert (held.remedy, held.severity) == ("held", Severity.MEDIUM)
    assert findings("mig-config-failed", mig("success")) == []
    assert findings("mig-config-failed", mig("pending")) == []
    invalid = mig("success", None, **{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"})
    assert only("mig-config-failed", invalid).remedy == "invalid"


def layouts(name: str, *known: str) -> Plain:
    text = "version: v1\nmig-configs:\n" + "".join(f"  {layout}: []\n" for layout in known)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ops"},
        "data": {"c": text},
    }


def test_a_layout_must_stand_in_the_map_that_the_policy_names() -> None:
    named = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"migManager": {"config": {"name": "mine"}}},
    }
    maps = [layouts("mine", "all-disabled"), layouts("default-mig-parted-config", "all-1g.5gb")]
    assert findings("mig-custom-config-missing", mig("failed"), *maps) == []
    only("mig-custom-config-missing", mig("failed"), named, *maps)
    assert findings("mig-custom-config-missing", mig("failed"), named) == []
    assert findings("mig-custom-config-missing", mig("failed"), named, *maps, layouts("gpu-1-mig-config", "x")) == []
    broken = {**layouts("mine"), "data": {"c": "mig-configs: [*nothing"}}
    assert findings("mig-custom-config-missing", mig("failed"), broken) == []


def slice_of(devices: list[dict[str, Any]], name: str = "s", generation: int = 1, wanted: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "nodeName": "gpu-1",
            "driver": "gpu.nvidia.com",
            "pool": {"name": "gpu-1", "generation": generation, "resourceSliceCount": wanted},
            "devices": devices,
        },
    }


TAINTED = {"name": "gpu-1", "taints": [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    assert only("dra-device-tainted", node(), slice_of([TAINTED])).value("taints") == ["gpu.nvidia.com/xid=79"]
    healed = slice_of([{"name": "gpu-1"}], name="t", generation=2)
    assert findings("dra-device-tainted", node(), slice_of([TAINTED]), healed) == []
    beta = slice_of([{"name": "gpu-1", "basic": {"taints": TAINTED["taints"]}}])
    only("dra-device-tainted", node(), beta)


def test_an_incomplete_pool_offers_nothing() -> None:
    found = only("dra-slice-missing", node(gpus={}), slice_of([{"name": "gpu-0"}], wanted=2))
    assert "incomplete" in keys(found)


def test_gpus_are_handed_out_twice_only_without_a_mapping() -> None:
    whole = slice_of([{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}])
    assert only("dra-and-plugin-both", node(), whole).severity == Severity.MEDIUM
    assert findings("dra-and-plugin-both", node(gpus={}), whole) == []
    mapped = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"extendedResourceName": "nvidia.com/gpu"},
    }
    assert findings("dra-and-plugin-both", node(), whole, mapped) == []


def plugin(**more: Any) -> dict[str, Any]:
    return pod(
        "nvidia-device-plugin-x",
        namespace="kube-system",
        on="gpu-1",
        image="nvidia/k8s-device-plugin:v0.19.3",
        owner=("DaemonSet", "nvidia-device-plugin"),
        status=container_status(up=DAY, ready=True),
        **more,
    )


def test_a_class_that_the_plugin_needs_is_missed_in_pods_that_do_not_ask_for_it() -> None:
    silent = pod("comfy", on="gpu-1", gpus=ONE)
    rule = "runtimeclass-missing"
    found = only(rule, node(), plugin(runtimeClassName="nvidia"), silent)
    assert (found.severity, keys(found)) == (Severity.MEDIUM, ["running"])
    assert findings(rule, node(), plugin(), silent) == []
    assert (
        findings(rule, node(), plugin(runtimeClassName="nvidia", env={"DEVICE_LIST_STRATEGY": "cdi-cri"}), silent) == []
    )
    toolkit = daemon_set("nvidia-container-toolkit-daemonset", "nvidia/k8s/container-toolkit:v1.19.0")
    assert findings(rule, node(), plugin(runtimeClassName="nvidia"), silent, toolkit) == []
    asking = pod("comfy", on="gpu-1", gpus=ONE, runtimeClassName="nvidia")
    assert findings(rule, node(), plugin(runtimeClassName="nvidia"), asking) == []


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ('failed to create containerd task: no runtime for "nvidia" is configured', "handler"),
        ('pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found', "absent"),
    ],
)
def test_events_tell_of_a_class_without_handler_or_object(said: str, remedy: str) -> None:
    refused = pod("comfy", on="gpu-1", gpus=ONE)
    found = only("runtimeclass-missing", node(), refused, event("Failed", said, refused, component="kubelet"))
    assert (found.remedy, found.severity) == (remedy, Severity.HIGH)


def monitor(endpoint: dict[str, Any], name: str = "dcgm-exporter") -> Plain:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": "monitoring"},
        "spec": {"endpoints": [{"port": "metrics", **endpoint}], "selector": {"matchLabels": {"app": name}}},
    }


def test_a_monitor_that_keeps_or_restores_the_pod_is_right() -> None:
    only("metrics-wrong-pod", monitor({}))
    assert findings("metrics-wrong-pod", monitor({"honorLabels": True})) == []
    restored = {"metricRelabelings": [{"sourceLabels": ["exported_pod"], "targetLabel": "pod"}]}
    assert findings("metrics-wrong-pod", monitor(restored)) == []
    assert findings("metrics-wrong-pod", monitor({}, name="node-exporter")) == []


def exporter(**env: str) -> dict[str, Any]:
    made = daemon_set("dcgm-exporter", "nvidia/k8s/dcgm-exporter:4.6.0")
    variables = [{"name": key, "value": value} for key, value in env.items()]
    made["spec"]["template"]["spec"]["containers"][0]["env"] = variables
    return made


def shared(name: str = "gpu-1") -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.count": "1",
    }
    return node(name, gpus={"nvidia.com/gpu": 4}, labels={"nvidia.com/gpu.present": "true", **labels})


def test_an_exporter_tells_pods_on_shared_gpus_apart_only_when_told_to() -> None:
    only("metrics-shared-attribution", shared(), exporter())
    assert findings("metrics-shared-attribution", shared(), exporter(KUBERNETES_VIRTUAL_GPUS="true")) == []
    assert findings("metrics-shared-attribution", node(), exporter()) == []


def test_no_exporter_is_said_once_and_never_guessed() -> None:
    plugin_set = daemon_set("nvidia-device-plugin", "nvidia/k8s-device-plugin:v0.19.3")
    found = only("dcgm-absent", node(), shared("gpu-2"), plugin_set)
    assert [ref.name for ref in found.objects] == ["gpu-1", "gpu-2"]
    assert (found.value("gpu_nodes"), found.severity) == (2, Severity.LOW)
    grown = only("dcgm-absent", node(), node("gpu-3"), shared("gpu-2"), plugin_set)
    assert grown.fingerprint == found.fingerprint, "the same trouble while nodes come and go"
    assert "shared" in keys(found)
    assert findings("dcgm-absent", node(), plugin_set, exporter()) == []
    assert findings("dcgm-absent", node()) == []
    operated = node(labels={"nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.dcgm-exporter": "true"})
    assert findings("dcgm-absent", operated, plugin_set) == []
    seen = pod("dcgm-exporter-5k2x8", on="gpu-1", owner=("DaemonSet", "dcgm-exporter"))
    assert findings("dcgm-absent", node(), plugin_set, seen) == []
    amd = node(gpus={"amd.com/gpu": 8}, labels={"feature.node.kubernetes.io/amd-gpu": "true"})
    assert "nvidia" not in render(only("dcgm-absent", amd, plugin_set), "en").remedy
