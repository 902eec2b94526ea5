"""What GPU workloads lack: shared memory, the fast network, shared volumes, honest requests, pinned images."""

from datetime import timedelta
from typing import Any

import pytest

from rules.checks.image_latest import floats
from rules.facts.network import is_fast_network, is_verbs_network
from rules.findings import Finding, Severity
from rules.words import render
from tests.rules.checks.kit import DATA as FILES
from tests.rules.checks.kit import (
    Plain,
    container_status,
    daemon_set,
    event,
    findings,
    keys,
    node,
    only,
    pod,
    report,
    sample,
    stamp,
)

EIGHT = {"nvidia.com/gpu": 8}
SHM = [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]


def with_shm(made: dict[str, Any], empty: Plain | None, *, memory: str | None = None) -> dict[str, Any]:
    """The pod with an emptyDir at /dev/shm, and a memory limit."""
    container = made["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "dshm", "mountPath": "/dev/shm"}]
    made["spec"]["volumes"] = [{"name": "dshm", "emptyDir": empty}]
    if memory:
        container["resources"]["limits"]["memory"] = memory
    return made


def names_of(found: Finding) -> set[str]:
    return {str(ref) for ref in found.objects}


class TestShmMissing:
    RULE = "shm-missing"

    def test_two_gpus_without_shared_memory(self) -> None:
        found = only(self.RULE, node(gpus=EIGHT), pod(on="gpu-1", gpus={"nvidia.com/gpu": 2}))
        assert (found.severity, found.value("gpus")) == (Severity.MEDIUM, 2)

    @pytest.mark.parametrize(
        "fine",
        [
            pod(on="gpu-1", gpus={"nvidia.com/gpu": 1}),
            pod(on="gpu-1", gpus=EIGHT, hostIPC=True),
            pod(on="gpu-1", gpus=EIGHT, env={"NCCL_SHM_DISABLE": "1"}),
            pod(on="gpu-1", gpus=EIGHT, phase="Succeeded"),
            pod(on="gpu-1", gpus=EIGHT, owner=("DaemonSet", "burn-in")),
            pod(on="gpu-1", gpus={"nvidia.com/mig-1g.5gb": 2}),
            with_shm(pod(on="gpu-1", gpus=EIGHT), {"medium": "Memory"}),
        ],
        ids=["one", "host-ipc", "disabled", "finished", "daemon", "mig", "mounted"],
    )
    def test_what_needs_none_or_has_some_is_left_alone(self, fine: Plain) -> None:
        assert findings(self.RULE, node(gpus=EIGHT), fine) == []

    def test_shares_of_one_gpu_do_not_work_together(self) -> None:
        labels = {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": "1",
            "nvidia.com/gpu.replicas": "4",
            "nvidia.com/gpu.sharing-strategy": "time-slicing",
            "nvidia.com/gpu.product": "Tesla-T4-SHARED",
        }
        shared = node(gpus={"nvidia.com/gpu": 4}, labels=labels)
        assert findings(self.RULE, shared, pod(on="gpu-1", gpus={"nvidia.com/gpu": 2})) == []

    def test_a_crash_for_want_of_it_is_high_and_the_crash_is_no_finding_of_its_own(self) -> None:
        said = "ncclSystemError. Last error: Error while creating shared memory segment /dev/shm/nccl-F9 (size 9637888)"
        status = container_status(waiting="CrashLoopBackOff", restarts=9, said=said)
        crashing = pod(on="gpu-1", gpus={"nvidia.com/gpu": 2}, image="serve/vllm:1", status=status)
        one = pod("one", on="gpu-1", gpus={"nvidia.com/gpu": 1}, image="serve/vllm:1")
        result = report(node(gpus=EIGHT), crashing, one)
        assert [item.rule for item in result.findings if item.rule in (self.RULE, "crashloop-gpu")] == [self.RULE]
        found = next(item for item in result.findings if item.rule == self.RULE)
        assert found.severity == Severity.HIGH
        assert {"crashed", "one_gpu_runs"} <= set(keys(found))
        assert "64 MB" in render(found, "en").summary

    def test_another_crash_is_told_beside_it(self) -> None:
        status = container_status(waiting="CrashLoopBackOff", restarts=9, said="KeyError: 'MODEL'")
        result = report(node(gpus=EIGHT), pod(on="gpu-1", gpus={"nvidia.com/gpu": 2}, status=status))
        found = {item.rule: item for item in result.findings}
        assert found[self.RULE].severity == Severity.MEDIUM
        assert found["crashloop-gpu"].severity == Severity.HIGH

    def test_an_empty_dir_on_disk_is_slow(self) -> None:
        found = only(self.RULE, node(gpus=EIGHT), with_shm(pod(on="gpu-1", gpus=EIGHT), {}))
        assert (found.remedy, found.severity, keys(found)) == ("disk", Severity.LOW, ["on_disk"])

    def test_pods_of_one_workload_are_one_trouble(self) -> None:
        pods = [pod(f"w-{n}", on="gpu-1", gpus={"nvidia.com/gpu": 2}, owner=("StatefulSet", "w")) for n in range(3)]
        assert len(only(self.RULE, node(gpus=EIGHT), *pods).objects) == 3


class TestShmLimit:
    RULE = "shm-limit-counts-memory"

    @pytest.mark.parametrize(
        ("empty", "memory", "remedy"),
        [
            ({"medium": "Memory"}, "64Gi", "default"),
            ({"medium": "Memory"}, None, "default"),
            ({"medium": "Memory", "sizeLimit": "64Gi"}, "64Gi", "too_large"),
            ({"medium": "Memory", "sizeLimit": "16Gi"}, "64Gi", None),
            ({"medium": "Memory", "sizeLimit": "16Gi"}, None, None),
            ({}, "64Gi", None),
        ],
    )
    def test_a_limit_must_be_there_and_fit(self, empty: Plain, memory: str | None, remedy: str | None) -> None:
        made = with_shm(pod(on="gpu-1", gpus=EIGHT), empty, memory=memory)
        found = findings(self.RULE, node(gpus=EIGHT), made)
        assert [item.remedy for item in found] == ([remedy] if remedy else [])
        assert all(item.severity == Severity.LOW for item in found)

    def test_an_oom_kill_is_host_memory(self) -> None:
        status = container_status(up=timedelta(minutes=5), restarts=2, said="x", ready=True)
        status["containerStatuses"][0]["lastState"]["terminated"]["reason"] = "OOMKilled"
        made = with_shm(pod(on="gpu-1", gpus=EIGHT, status=status), {"medium": "Memory"}, memory="64Gi")
        found = only(self.RULE, node(gpus=EIGHT), made)
        assert (found.severity, "killed" in keys(found)) == (Severity.HIGH, True)
        assert "not memory of the GPU" in render(found, "en").detail

    def test_an_evicted_pod_had_too_small_a_volume(self) -> None:
        made = with_shm(
            pod(on="gpu-1", gpus=EIGHT, phase="Failed"), {"medium": "Memory", "sizeLimit": "1Gi"}, memory="64Gi"
        )
        made["status"]["message"] = 'Usage of EmptyDir volume "dshm" exceeds the limit "1Gi".'
        found = only(self.RULE, node(gpus=EIGHT), made)
        assert (found.severity, found.remedy) == (Severity.HIGH, "too_small")


FABRIC = {"nvidia.com/gpu": 8, "rdma/ib": 1}


def worker(name: str, on: str | None, gpus: Plain = EIGHT, **more: Any) -> dict[str, Any]:
    made = pod(name, on=on, gpus=gpus, owner=("PyTorchJob", "pretrain"), **more)
    made["metadata"]["ownerReferences"][0]["apiVersion"] = "kubeflow.org/v1"
    return made


class TestFastNetwork:
    ASKS = "rdma-not-requested"
    LOCKS = "rdma-no-ipc-lock"

    @pytest.mark.parametrize(
        ("resource", "fast", "verbs"),
        [
            ("rdma/ib", True, True),
            ("rdma/hca_shared_devices_a", True, True),
            ("vpc.amazonaws.com/efa", True, False),
            ("nvidia.com/hostdev", True, True),
            ("nvidia.com/sriov-rdma-vf", True, True),
            ("nvidia.com/gpu", False, False),
            ("nvidia.com/gpu.shared", False, False),
            ("nvidia.com/mig-1g.5gb", False, False),
            ("nvidia.com/gpumem", False, False),
            ("nvidia.com/GA102GL_A10", False, False),
            ("cpu", False, False),
        ],
    )
    def test_network_cards_are_told_from_gpus(self, resource: str, fast: bool, verbs: bool) -> None:
        assert (is_fast_network(resource), is_verbs_network(resource)) == (fast, verbs)

    def test_a_worker_that_does_not_ask_slows_the_job(self) -> None:
        first, second = worker("p-0", "a", FABRIC), worker("p-1", "b")
        found = only(self.ASKS, node("a", gpus=FABRIC), node("b", gpus=FABRIC), first, second)
        assert {"Pod/ml/p-1", "PyTorchJob/ml/pretrain", "Node/b"} <= names_of(found)
        assert "Pod/ml/p-0" not in names_of(found)
        assert keys(found) == ["others_ask", "ipc_lock"]

    def test_efa_wants_huge_pages_and_no_locks(self) -> None:
        fabric = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}
        found = only(self.ASKS, node("a", gpus=fabric), node("b", gpus=fabric), worker("0", "a"), worker("1", "b"))
        assert (found.remedy, keys(found)) == ("efa", [])
        asking = [worker(name, name, fabric) for name in ("a", "b")]
        assert findings(self.LOCKS, node("a", gpus=fabric), node("b", gpus=fabric), *asking) == []

    @pytest.mark.parametrize(
        "others",
        [
            [worker("p-1", "b", hostNetwork=True, volumes=[{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}])],
            [worker("p-1", "b", resourceClaims=[{"name": "nic", "resourceClaimName": "nic"}])],
            [],
        ],
        ids=["host-devices", "claim", "alone"],
    )
    def test_other_ways_and_single_pods_are_left_alone(self, others: list[Plain]) -> None:
        objects = [node("a", gpus=FABRIC), node("b", gpus=FABRIC), worker("p-0", "a", FABRIC), *others]
        assert findings(self.ASKS, *objects) == []

    def test_a_node_without_the_fabric_offers_nothing_to_ask_for(self) -> None:
        objects = [node("a", gpus=FABRIC), node("b", gpus=EIGHT), worker("p-0", "a", FABRIC), worker("p-1", "b")]
        assert findings(self.ASKS, *objects) == []

    def test_small_workers_of_one_node_need_no_network(self) -> None:
        two = {"nvidia.com/gpu": 2}
        assert findings(self.ASKS, node("a", gpus=FABRIC), worker("p-0", "a", two), worker("p-1", "a", two)) == []

    def test_replicas_of_a_service_are_no_job(self) -> None:
        pods = [pod(name, on=name, gpus=EIGHT, owner=("StatefulSet", "serve")) for name in ("a", "b")]
        assert findings(self.ASKS, node("a", gpus=FABRIC), node("b", gpus=FABRIC), *pods) == []

    def test_a_rendezvous_point_makes_pods_a_job(self) -> None:
        pods = [
            pod(name, on=name, gpus=EIGHT, owner=("StatefulSet", "train"), env={"MASTER_ADDR": "train-0"})
            for name in ("a", "b")
        ]
        assert only(self.ASKS, node("a", gpus=FABRIC), node("b", gpus=FABRIC), *pods).value("workers") == 2

    @pytest.mark.parametrize(
        ("context", "locks"),
        [
            (None, False),
            ({"capabilities": {"add": ["IPC_LOCK"]}}, True),
            ({"capabilities": {"add": ["CAP_IPC_LOCK"]}}, True),
            ({"privileged": True}, True),
            ({"capabilities": {"add": ["NET_ADMIN"]}}, False),
        ],
    )
    def test_verbs_need_locked_memory(self, context: Plain | None, locks: bool) -> None:
        made = pod(on="a", gpus=FABRIC)
        made["spec"]["containers"][0]["securityContext"] = context
        assert (findings(self.LOCKS, node("a", gpus=FABRIC), made) == []) is locks


def storage_class(name: str, provisioner: str) -> Plain:
    metadata = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": provisioner,
    }


def claim(*modes: str, storage: str = "gp3", **spec: Any) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ml"},
        "spec": {"accessModes": list(modes), "storageClassName": storage, **spec},
    }


DATA = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
EBS, NFS = storage_class("gp3", "ebs.csi.aws.com"), storage_class("nfs", "nfs.csi.k8s.io")


class TestVolumes:
    RWO = "rwo-multi-node"
    CLASS = "no-rwx-class"
    NODES = (node("a", gpus=EIGHT), node("b", gpus=EIGHT))

    def two(self, second: str | None = "b", phase: str = "Pending") -> list[Plain]:
        return [
            worker("p-0", "a", volumes=DATA, phase="Running"),
            worker("p-1", second, volumes=DATA, phase=phase),
        ]

    def test_one_node_at_a_time(self) -> None:
        found = only(self.RWO, *self.NODES, EBS, claim("ReadWriteOnce"), *self.two())
        assert found.severity == Severity.HIGH
        assert {"PersistentVolumeClaim/ml/data", "Pod/ml/p-0", "Pod/ml/p-1"} <= names_of(found)

    def test_many_on_a_block_driver_is_only_a_wish(self) -> None:
        found = only(self.RWO, *self.NODES, EBS, NFS, claim("ReadWriteMany"), *self.two())
        assert ("only_a_wish" in keys(found), found.remedy, found.value("shared_class")) == (True, "class", "nfs")

    def test_a_waiting_worker_that_cannot_fit_beside_the_first_counts(self) -> None:
        assert only(self.RWO, *self.NODES, EBS, claim("ReadWriteOnce"), *self.two(second=None)).objects

    @pytest.mark.parametrize(
        "objects",
        [
            [EBS, claim("ReadWriteMany", storage="csi-unknown")],
            [NFS, claim("ReadWriteMany", storage="nfs")],
            [NFS, claim("ReadWriteOnce", storage="nfs")],
            [EBS, claim("ReadWriteOnce", volumeMode="Block")],
        ],
        ids=["unknown-driver", "shared", "driver-shares-anyway", "raw-block"],
    )
    def test_what_may_work_is_left_alone(self, objects: list[Plain]) -> None:
        assert findings(self.RWO, *self.NODES, *objects, *self.two()) == []

    def test_pods_that_all_run_prove_that_it_works(self) -> None:
        unknown = claim("ReadWriteOnce", storage="other")
        assert findings(self.RWO, *self.NODES, unknown, *self.two(phase="Running")) == []

    def test_without_claims_it_is_not_judged(self) -> None:
        result = report(*self.NODES, EBS, *self.two())
        assert self.RWO in {item.rule for item in result.skipped_rules}

    def test_a_job_without_a_class_to_share(self) -> None:
        found = only(self.CLASS, *self.NODES, EBS, *self.two())
        assert {"StorageClass/gp3", "PyTorchJob/ml/pretrain"} <= names_of(found)
        assert found.severity == Severity.LOW

    @pytest.mark.parametrize("extra", [NFS, storage_class("x", "csi.example.com")], ids=["shared", "unknown"])
    def test_a_class_that_shares_or_may_is_enough(self, extra: Plain) -> None:
        assert findings(self.CLASS, *self.NODES, EBS, extra, *self.two()) == []

    def test_a_shared_volume_made_by_hand_is_enough(self) -> None:
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {"csi": {"driver": "fsx.csi.aws.com"}},
        }
        assert findings(self.CLASS, *self.NODES, EBS, volume, *self.two()) == []

    def test_without_multi_node_jobs_nobody_misses_it(self) -> None:
        assert findings(self.CLASS, *self.NODES, EBS, pod(on="a", gpus=EIGHT)) == []


FOUR = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "4"}


class TestBypass:
    RULE = "visible-devices-bypass"

    def test_the_pod_its_victims_and_a_caveat_on_free_gpus(self) -> None:
        ws = node("ws", gpus={"nvidia.com/gpu": 4}, labels=FOUR)
        sneaky = pod("test", on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"})
        found = only(self.RULE, ws, sneaky, pod("model", on="ws", gpus={"nvidia.com/gpu": 1}))
        assert names_of(found) == {"Pod/ml/test", "Node/ws", "Pod/ml/model"}
        assert (found.severity, found.value("free"), found.value("gpus_seen")) == (Severity.HIGH, 3, 4)
        assert "may be in use" in render(found, "en").detail

    @pytest.mark.parametrize(
        "fine",
        [
            pod(on="ws", env={"NVIDIA_VISIBLE_DEVICES": "void"}),
            pod(on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"}, gpus={"nvidia.com/gpu": 1}),
            pod(on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"}, owner=("DaemonSet", "exporter")),
            pod(on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"}, phase="Succeeded"),
            pod("dcgm-exporter", on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"}, namespace="monitoring"),
            pod("x", on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"}, namespace="gpu-operator"),
        ],
        ids=["void", "asks", "daemon", "finished", "exporter", "operator"],
    )
    def test_honest_pods_and_gpu_software_are_left_alone(self, fine: Plain) -> None:
        assert findings(self.RULE, node("ws", labels=FOUR), fine) == []

    def test_gke_does_not_heed_the_variable(self) -> None:
        gke = node("ws", providerID="gce://project/zone/ws")
        assert findings(self.RULE, gke, pod(on="ws", env={"NVIDIA_VISIBLE_DEVICES": "all"})) == []

    def test_device_files_have_their_own_remedy(self) -> None:
        mounting = pod(on="ws", volumes=[{"name": "d", "hostPath": {"path": "/dev/nvidia0"}}])
        found = only(self.RULE, node("ws"), mounting)
        assert (found.remedy, found.severity) == ("mount", Severity.MEDIUM)


class TestCudaImage:
    RULE = "cuda-image-without-request"
    CUDA = "registry.example.com/nvidia/cuda:12.4.1-base-ubuntu22.04"

    def test_beside_a_pod_that_gets_its_gpu_by_the_default_runtime(self) -> None:
        objects = [node(), pod("model", on="gpu-1", gpus={"nvidia.com/gpu": 1}), pod("x", on="gpu-1", image=self.CUDA)]
        found = only(self.RULE, *objects)
        assert (found.severity, keys(found)) == (Severity.LOW, ["runtime_default"])

    @pytest.mark.parametrize(
        "fine",
        [
            pod(on="gpu-1", image="apps/web:1", runtimeClassName="nvidia"),
            pod(on="gpu-1", image=CUDA),
            pod(on="gpu-1", image=CUDA, runtimeClassName="nvidia", env={"NVIDIA_VISIBLE_DEVICES": "void"}),
            pod(on="gpu-1", image=CUDA, runtimeClassName="nvidia", gpus={"nvidia.com/gpu": 1}),
            pod(on="gpu-1", image=CUDA, runtimeClassName="nvidia", namespace="gpu-operator"),
            pod(on="gpu-1", image=CUDA, runtimeClassName="nvidia", owner=("DaemonSet", "burn")),
        ],
        ids=["no-cuda", "no-runtime", "void", "asks", "operator", "daemon"],
    )
    def test_others_are_left_alone(self, fine: Plain) -> None:
        assert findings(self.RULE, node(), fine) == []

    def test_an_amd_node_has_no_nvidia_runtime(self) -> None:
        amd = node(gpus={"amd.com/gpu": 1}, labels={"feature.node.kubernetes.io/amd-gpu": "true"})
        assert findings(self.RULE, amd, pod(on="gpu-1", image=self.CUDA, runtimeClassName="nvidia")) == []


class TestCrashLoop:
    RULE = "crashloop-gpu"

    @pytest.mark.parametrize(
        ("reason", "restarts", "old", "remedy"),
        [
            ("CrashLoopBackOff", 9, 60, "default"),
            ("CrashLoopBackOff", 2, 3600, "default"),
            ("ImagePullBackOff", 0, 3600, "pull"),
            ("CreateContainerConfigError", 0, 3600, "create"),
            ("CrashLoopBackOff", 2, 60, None),
            ("ContainerCreating", 0, 3600, None),
        ],
    )
    def test_after_some_restarts_or_half_an_hour(
        self, reason: str, restarts: int, old: int, remedy: str | None
    ) -> None:
        status = container_status(waiting=reason, restarts=restarts)
        failing = pod(on="gpu-1", gpus={"nvidia.com/gpu": 1}, age=timedelta(seconds=old), status=status)
        found = findings(self.RULE, node(), failing)
        assert [item.remedy for item in found] == ([remedy] if remedy else [])

    def test_a_pod_without_a_gpu_holds_none(self) -> None:
        status = container_status(waiting="CrashLoopBackOff", restarts=50)
        assert findings(self.RULE, node(), pod(on="gpu-1", status=status)) == []

    def test_what_it_holds_is_said_in_the_units_of_the_resource(self) -> None:
        status = container_status(waiting="CrashLoopBackOff", restarts=50)
        slices = node(gpus={"nvidia.com/mig-1g.5gb": 7})
        found = only(self.RULE, slices, pod(on="gpu-1", gpus={"nvidia.com/mig-1g.5gb": 2}, status=status))
        assert found.value("held") == ["nvidia.com/mig-1g.5gb: 2"]


class TestImages:
    LATEST = "image-latest"
    SLOW = "image-pull-slow"

    @pytest.mark.parametrize(
        ("image", "answer"),
        [
            ("studio/comfyui", True),
            ("studio/comfyui:latest", True),
            ("registry.example.com:5000/comfyui", True),
            ("registry.example.com:5000/comfyui:1", False),
            ("comfyui:1.2", False),
            (f"comfyui@sha256:{'a' * 64}", False),
            (f"comfyui:latest@sha256:{'a' * 64}", False),
        ],
    )
    def test_references_without_a_version(self, image: str, answer: bool) -> None:
        assert floats(image) is answer

    def test_a_workload_is_named_with_what_runs_now(self) -> None:
        digest = f"comfyui@sha256:{'b' * 64}"
        status = {"containerStatuses": [{"name": "main", "ready": True, "imageID": digest}]}
        running = pod(on="gpu-1", gpus={"nvidia.com/gpu": 1}, image="comfyui", status=status)
        found = only(self.LATEST, node(), running)
        assert (found.remedy, found.value("digest"), found.severity) == ("digest", digest, Severity.LOW)

    def test_pods_without_a_gpu_are_not_judged(self) -> None:
        assert findings(self.LATEST, node(), pod(on="gpu-1", image="web:latest")) == []

    def test_gpu_software_and_the_object_that_sets_it(self) -> None:
        config = {
            "apiVersion": "amd.com/v1alpha1",
            "kind": "DeviceConfig",
            "metadata": {"name": "default", "namespace": "kube-system"},
            "spec": {"devicePlugin": {"devicePluginImage": "rocm/k8s-device-plugin:latest"}},
        }
        plugin = daemon_set("default-device-plugin", "rocm/k8s-device-plugin:latest")
        plugin["metadata"]["ownerReferences"] = [{"kind": "DeviceConfig", "name": "default", "controller": True}]
        found = only(self.LATEST, node(), config, plugin)
        assert names_of(found) == {
            "DeviceConfig/kube-system/default",
            "DaemonSet/kube-system/default-device-plugin",
        }

    def pulling(self, *, ago: timedelta = timedelta(minutes=12)) -> dict[str, Any]:
        status = container_status(waiting="ContainerCreating")
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(ago)}]
        return pod(on="new", gpus={"nvidia.com/gpu": 1}, image="serve/llm:3", phase="Pending", status=status)

    def holder(self, size: int = 18_000_000_000) -> Plain:
        old = node("old")
        old["status"]["images"] = [{"names": ["serve/llm:3"], "sizeBytes": size}]
        return old

    def test_gigabytes_while_the_gpu_waits(self) -> None:
        found = only(self.SLOW, self.holder(), node("new"), self.pulling())
        assert (found.value("size"), found.value("waited")) == (16.8, 720)

    def test_small_images_young_pods_and_other_reasons_are_left_alone(self) -> None:
        assert findings(self.SLOW, self.holder(2_000_000_000), node("new"), self.pulling()) == []
        assert findings(self.SLOW, self.holder(), node("new"), self.pulling(ago=timedelta(minutes=2))) == []
        waiting = self.pulling()
        mount = event("FailedMount", "timed out waiting for the condition", waiting, component="kubelet")
        assert findings(self.SLOW, self.holder(), node("new"), waiting, mount) == []
        assert findings(self.SLOW, node("old"), node("new"), self.pulling()) == []


def scaler(*metrics: Plain, version: str = "autoscaling/v2", **spec: Any) -> Plain:
    return {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "minReplicas": 1,
            "maxReplicas": 4,
            **({"metrics": list(metrics)} if metrics else {}),
            **spec,
        },
    }


CPU = {"type": "Resource", "resource": {"name": "cpu"}}
QUEUE = {"type": "External", "external": {"metric": {"name": "waiting"}}}
CONTAINER = {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "main"}}


class TestScaling:
    RULE = "hpa-cpu-on-gpu"

    @pytest.mark.parametrize(
        ("autoscaler", "found"),
        [
            (scaler(CPU), True),
            (scaler(CPU, CONTAINER), True),
            (scaler(), True),
            (scaler(version="autoscaling/v1", targetCPUUtilizationPercentage=80), True),
            (scaler(QUEUE), False),
            (scaler(CPU, QUEUE), False),
        ],
    )
    def test_only_host_metrics_are_wrong(self, autoscaler: Plain, found: bool) -> None:
        serving = pod(
            "llm-6b7d9c5f44-abcde", on="gpu-1", gpus={"nvidia.com/gpu": 1}, owner=("ReplicaSet", "llm-6b7d9c5f44")
        )
        assert bool(findings(self.RULE, node(), serving, autoscaler)) is found

    def test_a_target_without_gpus_is_left_alone(self) -> None:
        web = pod("llm-6b7d9c5f44-abcde", on="gpu-1", owner=("ReplicaSet", "llm-6b7d9c5f44"))
        assert findings(self.RULE, node(), web, scaler(CPU)) == []


IN_SAMPLES = {
    ("amd-mi300x", "image-latest"): {
        "DeviceConfig/kube-amd-gpu/default",
        "DaemonSet/kube-amd-gpu/default-device-plugin",
    },
    ("amd-mi300x", "shm-missing"): {"Pod/serve/bigmodel-0"},
    ("aks-t4-timeslicing", "hpa-cpu-on-gpu"): {
        "HorizontalPodAutoscaler/apps/sd-inference",
        "Deployment/apps/sd-inference",
    },
    ("broken-driver-not-ready", "shm-missing"): {"Pod/apps/vision-4gpu-0"},
    ("coreweave-h100-infiniband", "rdma-not-requested"): {
        "Pod/train/pretrain-7b-worker-0",
        "PyTorchJob/train/pretrain-7b",
        "Node/g0a1c53",
    },
    ("dra-1-35", "shm-missing"): {"Pod/train/pair-train-l8w2z"},
    ("eks-managed-spot-ondemand", "image-latest"): {"Pod/training/finetune-llama-run7"},
    ("eks-managed-spot-ondemand", "shm-missing"): {"Pod/training/finetune-llama-run7"},
    ("k3s-joined-vms-no-operator", "image-latest"): {
        "Deployment/apps/comfyui",
        "Pod/apps/comfyui-7c5d8f9b6c-r4k2x",
    },
    ("k3s-joined-vms-no-operator", "visible-devices-bypass"): {
        "Pod/apps/transcode-all-gpus",
        "Node/vm-gpu-4090-01",
        "Pod/apps/comfyui-7c5d8f9b6c-r4k2x",
    },
    ("karpenter-idle-bill", "shm-limit-counts-memory"): {"Pod/research/ray-exp-gpu-worker-7k2xq"},
    ("oke-a10-a100-pools", "crashloop-gpu"): {"Pod/speech/asr-0", "Node/192.0.2.91"},
    ("oke-a10-a100-pools", "shm-limit-counts-memory"): {"Pod/research/nccl-pretrain-worker-0"},
    ("18-eight-h100-seven-allocatable", "shm-missing"): {"Pod/llm/eval-small", "Pod/llm/sft-70b-0"},
    ("26-cuda-pod-without-a-gpu-request", "visible-devices-bypass"): {
        "Pod/sandbox/gpu-resource-test",
        "Node/ws-gpu-3",
        "Pod/prod/fraud-model-0",
    },
    ("27-two-gpu-server-crashes-one-gpu-server-runs", "shm-missing"): {
        "Pod/serve/opt-tp2-6b7d9c5f44-9zkqv",
        "Node/l4x2-node",
    },
    ("29-gpu-node-stays-with-no-users", "image-latest"): {
        "Deployment/default/comfyui",
        "Pod/default/comfyui-6cd777d4f-2hp4z",
    },
}
OURS = {
    "crashloop-gpu",
    "cuda-image-without-request",
    "hpa-cpu-on-gpu",
    "image-latest",
    "image-pull-slow",
    "no-rwx-class",
    "rdma-no-ipc-lock",
    "rdma-not-requested",
    "rwo-multi-node",
    "shm-limit-counts-memory",
    "shm-missing",
    "visible-devices-bypass",
}


def test_what_these_rules_say_of_the_samples_is_exactly_this() -> None:
    paths = [*sorted((FILES / "clusters").glob("*.json")), *sorted((FILES / "cases").iterdir())]
    said: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        for found in sample(path)[1].findings:
            if found.rule in OURS:
                said.setdefault((path.stem, found.rule), set()).update(names_of(found))
    assert said == IN_SAMPLES
