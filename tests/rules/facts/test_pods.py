"""Ways in which a pod holds a GPU, counted by the scheduler or not."""

from typing import Any

import msgspec
import pytest

from rules.facts.cluster import ClusterFacts
from rules.facts.objects import Event, OtherObject
from rules.findings import ObjectRef
from tests.rules.facts.make import cluster, container, node, other, pod

GPU_NODE = node(gpus={"nvidia.com/gpu": 4})
CPU_NODE = node("cpu")
SEES_ALL = container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
DEVICES = {"volumes": [{"name": "d", "hostPath": {"path": "/dev/nvidia0"}}]}


def claim_of(*pods: Any) -> list[str | None]:
    return [item.other_gpu_claim for item in cluster([GPU_NODE, CPU_NODE], pods).pods]


@pytest.mark.parametrize(
    ("one", "claim"),
    [
        (pod("a", container({"nvidia.com/gpumem": 3000})), "gpu-memory-resource"),
        (pod("a", container({"aliyun.com/gpu-mem": 8})), "gpu-memory-resource"),
        (pod("a", container({"volcano.sh/vgpu-number": 1})), "vgpu-resource"),
        (pod("a", container({"nvidia.com/GA102GL_A10": 1})), "passthrough-resource"),
        (pod("a", container({"microsoft.com/directx": 1})), "directx-resource"),
        (pod("a", container(), annotations={"gpu-fraction": "0.5"}), "fraction-annotation"),
        (pod("a", container(), annotations={"gpu-memory": "2000"}), "fraction-annotation"),
        (
            pod("a", container(), annotations={"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,3000,30:;"}),
            "hami-annotation",
        ),
        (pod("a", container(), annotations={"hami.io/vgpu-devices-allocated": ";"}), None),
        (pod("a", SEES_ALL), "visible-devices"),
        (pod("a", container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}])), "visible-devices"),
        (pod("a", container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])), None),
        (pod("a", container(env=[{"name": "NVIDIA_VISIBLE_DEVICES"}])), None),
        (pod("a", container(), spec=DEVICES), "device-mount"),
        (pod("a", SEES_ALL, owner="DaemonSet"), None),
        (pod("a", SEES_ALL, owner="ReplicaSet"), "visible-devices"),
        (pod("a", SEES_ALL, namespace="gpu-operator"), None),
        (pod("a", SEES_ALL, on="cpu"), None),
        (pod("a", SEES_ALL, on=None, phase="Pending"), None),
        (pod("a", container({"nvidia.com/gpu": 1}, env=SEES_ALL["env"])), None),
        (pod("a", container({"nvidia.com/hostdev": 1})), None),
        (pod("a", container({"gpu.intel.com/monitoring": 1})), None),
    ],
)
def test_a_gpu_may_be_held_without_a_request_that_the_scheduler_counts(one: Any, claim: str | None) -> None:
    assert claim_of(one) == [claim]


def test_maybe_holders_are_holders_until_they_finish() -> None:
    facts = cluster([GPU_NODE], [pod("a", SEES_ALL), pod("b", SEES_ALL, phase="Failed")])
    assert [item.holds_gpu for item in facts.pods] == [True, False]
    assert [item.ref.name for item in facts.nodes[0].gpu_pods] == ["a"]


def test_pending_gpu_pods_are_those_that_wait_for_a_node() -> None:
    wants = container({"nvidia.com/gpu": 1})
    gated = {"schedulingGates": [{"name": "example.com/quota"}]}
    facts = cluster(
        [GPU_NODE],
        [
            pod("bound", wants, phase="Pending"),
            pod("waits", wants, phase="Pending", on=None),
            pod("gated", wants, phase="Pending", on=None, spec=gated),
            pod("fraction", container(), phase="Pending", on=None, annotations={"gpu-fraction": "0.5"}),
            pod("cpu", container({"cpu": 1}), phase="Pending", on=None),
            pod("failed", wants, phase="Failed", on=None),
        ],
    )
    assert [item.ref.name for item in facts.pending_gpu_pods] == ["waits", "gated", "fraction"]
    assert [item.scheduling_gated for item in facts.pending_gpu_pods] == [False, True, False]


def test_the_controller_is_the_owner_that_says_so() -> None:
    facts = cluster(
        [GPU_NODE], [pod("a", container(), owner="DaemonSet"), pod("b", container(), owner="Node"), pod("c")]
    )
    assert [item.is_daemon for item in facts.pods] == [True, True, False]


def result(device: str, pool: str = "n1", driver: str = "gpu.nvidia.com", *, admin: bool = False) -> dict[str, Any]:
    return {"driver": driver, "pool": pool, "device": device, **({"adminAccess": True} if admin else {})}


def claim(name: str, *results: dict[str, Any], **request: Any) -> OtherObject:
    wanted = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1, **request}
    status = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    spec = {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}
    return other("ResourceClaim", name, "resource.k8s.io/v1", namespace="default", spec=spec, status=status)


def device(name: str, kind: str = "gpu", *taints: dict[str, str]) -> dict[str, Any]:
    attributes = {
        "type": {"string": kind},
        "productName": {"string": "NVIDIA L40S"},
        "driverVersion": {"version": "580.126.20"},
        "cudaDriverVersion": {"version": "13.0.0"},
    }
    return {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": "46068Mi"}},
        "taints": list(taints),
    }


def resource_slice(
    name: str, *devices: dict[str, Any], driver: str = "gpu.nvidia.com", generation: int = 1
) -> OtherObject:
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": 1}
    spec = {"nodeName": "n1", "driver": driver, "pool": pool, "devices": list(devices)}
    return other("ResourceSlice", name, "resource.k8s.io/v1", spec=spec)


def claims(name: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}


def with_claims(one: Any, *found: OtherObject, slices: list[OtherObject] | None = None) -> ClusterFacts:
    others: dict[str, list[OtherObject]] = {"ResourceClaim": list(found)}
    if slices is not None:
        others["ResourceSlice"] = slices
    return cluster([node()], [one], others)


@pytest.mark.parametrize(
    ("found", "way", "devices"),
    [
        ([claim("c", result("gpu-0"))], "dra-claim", 1),
        ([claim("c", result("gpu-0"), result("gpu-1"))], "dra-claim", 2),
        ([claim("c", result("gpu-0", admin=True), result("gpu-1", admin=True))], None, None),
        ([claim("c", result("nic-0", driver="dra.net"))], None, None),
        ([claim("c", result("channel-0", driver="compute-domain.nvidia.com"))], None, None),
        ([claim("c", count=3)], "dra-claim", 3),
        ([claim("c", allocationMode="All")], "dra-claim", None),
        ([claim("c", adminAccess=True)], None, None),
        ([claim("c", deviceClassName="compute-domain-daemon.nvidia.com")], None, None),
        ([claim("c", deviceClassName="our-gpus")], "dra-claim", 1),
        ([], "dra-claim", None),
    ],
)
def test_claims_are_resolved_or_count_as_a_maybe(
    found: list[OtherObject], way: str | None, devices: int | None
) -> None:
    one = with_claims(pod("a", container(), spec=claims("c")), *found).pods[0]
    assert (one.other_gpu_claim, one.dra_devices) == (way, devices)


def test_a_claim_made_from_a_template_is_found_by_its_generated_name() -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "a-gpu-x"}]}
    bound = pod("a", container(), spec=spec, status=status)
    assert with_claims(bound, claim("a-gpu-x", result("gpu-0"), result("gpu-1"))).pods[0].dra_devices == 2

    template = other(
        "ResourceClaimTemplate",
        "t",
        "resource.k8s.io/v1",
        namespace="default",
        spec={
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}]}
            }
        },
    )
    waiting = pod("a", container(), spec=spec, on=None, phase="Pending")
    facts = cluster([node()], [waiting], {"ResourceClaimTemplate": [template], "ResourceClaim": []})
    assert [(item.other_gpu_claim, item.dra_devices) for item in facts.pending_gpu_pods] == [("dra-claim", 4)]


def test_a_class_of_ones_own_is_a_gpu_class_when_it_selects_a_gpu_driver() -> None:
    def device_class(driver: str) -> OtherObject:
        expression = f"device.driver == '{driver}'"
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        return other("DeviceClass", "ours", "resource.k8s.io/v1", spec=spec)

    one = pod("a", container(), spec=claims("c"))
    wanted = claim("c", deviceClassName="ours")
    for driver, way in (("gpu.amd.com", "dra-claim"), ("dra.net", None)):
        facts = cluster([node()], [one], {"ResourceClaim": [wanted], "DeviceClass": [device_class(driver)]})
        assert facts.pods[0].other_gpu_claim == way


def test_a_node_with_published_devices_is_a_gpu_node() -> None:
    broken = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    noted = {"key": "gpu.nvidia.com/xid", "value": "43", "effect": "None"}
    slices = [
        resource_slice("old", *(device(f"gpu-{number}") for number in range(9))),
        resource_slice("s1", device("gpu-0"), device("gpu-1", "gpu", broken), generation=2),
        resource_slice("s2", device("gpu-2", "gpu", noted), device("gpu-0-mig-1g.5gb-0", "mig"), generation=2),
        resource_slice("nics", device("nic-0"), driver="dra.net"),
    ]
    one = pod("a", container(), spec=claims("c"))
    held = claim("c", result("gpu-0"), result("gpu-1", admin=True))
    unused = claim("left-over", result("gpu-2"))
    facts = with_claims(one, held, unused, slices=slices).nodes[0]
    assert (facts.gpu_evidence, facts.vendor, facts.product) == ("resource", "nvidia", "NVIDIA L40S")
    assert (facts.physical_gpus, facts.gpu_memory_mib) == (3, 46068)
    assert (facts.driver_version, facts.cuda_ceiling) == ("580.126.20", "13.0")
    assert [(item.name, item.form, item.capacity, item.allocatable, item.requested) for item in facts.resources] == [
        ("gpu.nvidia.com", "device", 3, 2, 2),
        ("gpu.nvidia.com/mig", "mig", 1, 1, 0),
    ]
    assert {item.origin for item in facts.resources} == {"dra"}


def test_slices_of_the_beta_api_are_read_too() -> None:
    beta = {"name": "gpu-0", "basic": {"attributes": {"productName": {"string": "NVIDIA A100"}}}}
    facts = with_claims(pod("a", container()), slices=[resource_slice("s", beta)]).nodes[0]
    assert (facts.product, facts.physical_gpus) == ("NVIDIA A100", 1)


def event(name: str, **fields: Any) -> Event:
    return msgspec.convert({"metadata": {"name": name}, **fields}, Event)


def test_events_of_both_apis_are_found_by_object_oldest_first() -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    events = [
        event("late", involvedObject=about, lastTimestamp="2026-11-30T08:00:00Z", message="late"),
        event("series", regarding=about, series={"lastObservedTime": "2026-11-30T07:00:00.5Z"}, note="series"),
        event("early", involvedObject=about, firstTimestamp="2026-11-30T06:00:00Z"),
        event("never", involvedObject=about),
        event("node", involvedObject={"kind": "Node", "name": "n1"}, eventTime="2026-11-30T06:00:00.000001Z"),
        event("nothing"),
    ]
    facts = cluster([node()], events=events)
    pod_ref, node_ref = ObjectRef("Pod", "default", "a"), ObjectRef("Node", "", "n1")
    assert [item.metadata.name for item in facts.events_of(pod_ref)] == ["never", "early", "series", "late"]
    assert [item.metadata.name for item in facts.events_of(node_ref)] == ["node"]
    assert facts.events_of(ObjectRef("Pod", "default", "b")) == ()


def test_objects_are_looked_up_by_name_and_group() -> None:
    pools = [other("NodePool", "k", "karpenter.sh/v1"), other("NodePool", "c", "compute.coreweave.com/v1alpha1")]
    facts = cluster([GPU_NODE], [pod("a", container())], {"NodePool": pools})
    assert facts.node("n1") is facts.nodes[0]
    assert facts.node("n2") is None
    assert facts.pod("default", "a") is facts.pods[0]
    assert facts.pods_on("n1") == facts.nodes[0].pods
    assert facts.pods_on("n2") == ()
    assert [item.metadata.name for item in facts.of_kind("NodePool", "karpenter.sh")] == ["k"]
    assert len(facts.of_kind("NodePool")) == 2
    assert facts.knows("NodePool")
    assert not facts.knows("Job")
