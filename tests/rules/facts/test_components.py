"""Which GPU software a cluster has: seen, absent only where all that would show it was read, and whether it works."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rules.facts.cluster import ClusterFacts, build
from rules.facts.components import Role, component_rows, is_component
from rules.facts.decode import decode_objects
from rules.facts.storage import can_share, storage_drivers
from rules.findings import Unreadable
from tests.rules.checks.kit import NOW, Plain, daemon_set, node, pod, prices

DATA = Path(__file__).parents[3] / "rules/data/components.json"
ALL = ("Node", "Pod", "Event", "DaemonSet", "Deployment", "StatefulSet", "CustomResourceDefinition")


def cluster(
    *objects: Plain, read: tuple[str, ...] = ALL, api_groups: list[str] | None = None, absent: tuple[str, ...] = ()
) -> ClusterFacts:
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    found = decode_objects(listed, "test")
    return build(
        "test",
        NOW,
        nodes=found.nodes,
        pods=found.pods,
        events=found.events,
        others=found.others,
        read_kinds={*found.kinds, *read},
        prices=prices(),
        unreadable=[Unreadable(kind, "not-found", "no such resource") for kind in absent],
        api_groups=api_groups,
    )


def workload(kind: str, name: str, namespace: str = "ops", *, image: str = "x/y:1", **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
        "status": status,
    }


def test_every_row_has_source_and_date_and_stands_on_one_line() -> None:
    tables = json.loads(DATA.read_text())
    rows = [row for table in tables.values() for row in table]
    assert all(row["source"] and row["as_of"] for row in rows)
    assert len(DATA.read_text().splitlines()) == len(rows) + 2 * len(tables) + 2
    idents = [row.id for row in component_rows()]
    assert len(set(idents)) == len(idents)
    drivers = [row.driver for row in storage_drivers()]
    assert len(set(drivers)) == len(drivers)


def test_every_role_has_a_component() -> None:
    assert {row.role for row in component_rows()} == set(Role)


@pytest.mark.parametrize(
    ("name", "image", "ident"),
    [
        ("nvidia-device-plugin-daemonset", "x", "nvidia_device_plugin"),
        ("nvdp-nvidia-device-plugin", "x", "nvidia_device_plugin"),
        ("plugin", "registry.example.com/nvidia/k8s-device-plugin:v0.20.0", "nvidia_device_plugin"),
        ("nvdp-nvidia-device-plugin-mps-control-daemon", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "mps_daemon"),
        ("default-device-plugin", "rocm/k8s-device-plugin:latest", "amd_device_plugin"),
        ("nvidia-dcgm-exporter", "x", "dcgm_exporter"),
        ("default-metrics-exporter", "rocm/device-metrics-exporter:v1.5.0", "amd_metrics_exporter"),
        ("nvidia-driver-daemonset-9.6.20261020-0", "x", "gpu_operator_driver"),
        ("cluster-autoscaler-aws-cluster-autoscaler", "x", "cluster_autoscaler"),
        ("my-scheduler", "volcanosh/vc-scheduler:v1.12", "volcano"),
        ("efa-aws-efa-k8s-device-plugin", "x", "efa_plugin"),
        ("dra-driver-nvidia-gpu-kubelet-plugin", "x", "nvidia_dra"),
        ("train-with-volcano", "ml/volcano-tests:1", None),
        ("mykueue", "team/kueue-demo:1", None),
    ],
)
def test_workloads_are_told_by_name_and_image_path(name: str, image: str, ident: str | None) -> None:
    assert is_component(name, None, [image]) == ident


def test_a_workload_shows_its_component_and_its_health() -> None:
    facts = cluster(
        workload("Deployment", "kueue-controller-manager", readyReplicas=1),
        workload("Deployment", "jobset-controller-manager", readyReplicas=0),
        workload("DaemonSet", "nvidia-dcgm-exporter", desiredNumberScheduled=3, numberReady=2),
        workload("DaemonSet", "nvidia-device-plugin-mps-control-daemon", desiredNumberScheduled=0, numberReady=0),
    )
    found = facts.components
    assert [found[ident].healthy for ident in ("kueue", "jobset", "dcgm_exporter", "mps_daemon")] == [
        True,
        False,
        False,
        None,
    ]
    assert [str(ref) for ref in found["jobset"].troubled] == ["Deployment/ops/jobset-controller-manager"]
    assert found.has("gang-scheduler") is True
    assert [item.name for item in found.present(Role.GANG_SCHEDULER)] == ["Kueue"]


def test_absent_needs_everything_that_would_show_it() -> None:
    assert cluster(node()).components.has("gang-scheduler") is False
    assert cluster(node(), read=("Node", "Pod")).components.has("gang-scheduler") is None
    assert cluster(node(), read=("Node", "Pod", "DaemonSet")).components["dcgm_exporter"].present is False
    assert cluster(node(), read=("Node", "Pod")).components["dcgm_exporter"].present is None


def test_the_groups_that_a_server_serves_tell_without_reading_definitions() -> None:
    read = ("Node", "Pod", "DaemonSet", "Deployment")
    served = cluster(node(), read=read, api_groups=["apps", "kueue.x-k8s.io", "kubeflow.org"]).components
    assert served["kueue"].present is True
    assert served["volcano"].present is False
    # kubeflow.org is served for notebooks as well.
    assert served["kubeflow_trainer_v1"].present is None
    assert cluster(node(), read=read, api_groups=["apps"]).components.has("training-operator") is False


def test_api_services_of_a_snapshot_tell_the_groups() -> None:
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.kueue.x-k8s.io"},
        "spec": {"group": "kueue.x-k8s.io", "version": "v1beta1"},
    }
    found = cluster(node(), service, read=("Node", "Pod", "DaemonSet", "Deployment")).components
    assert (found["kueue"].present, found["volcano"].present) == (True, False)


def test_kinds_of_a_shared_group_tell_by_being_listed_or_not_found() -> None:
    read, groups = ("Node", "Pod", "DaemonSet", "Deployment"), ["kubeflow.org", "scheduling.k8s.io"]
    listed = cluster(node(), read=(*read, "MPIJob"), api_groups=groups).components
    assert listed["mpi_operator"].present is True
    kinds = ("MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")
    missing = cluster(node(), read=read, api_groups=groups, absent=kinds).components
    assert missing.has("training-operator") is False
    assert missing.has("gang-scheduler") is False


def test_a_definition_shows_a_component_of_a_shared_group() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "mpijobs.kubeflow.org"},
        "spec": {"names": {"kind": "MPIJob"}},
    }
    found = cluster(definition).components
    assert found["mpi_operator"].present is True
    assert found["kubeflow_trainer_v1"].present is False


def test_pods_show_it_where_workloads_were_not_read() -> None:
    scheduler = pod(
        "volcano-scheduler-6d8f9c7b5-x2x2x", on="cpu-1", owner=("ReplicaSet", "volcano-scheduler-6d8f9c7b5")
    )
    found = cluster(node(), scheduler, read=("Node", "Pod")).components["volcano"]
    assert found.present is True
    assert [ref.kind for ref in found.shown_by] == ["Pod"]


def test_pods_without_an_owner_are_told_by_their_own_name() -> None:
    for name in ("kueue-controller-manager", "kueue-controller-manager-6d8f9c7b5-x2x2x"):
        assert cluster(node(), pod(name, on="cpu-1")).components["kueue"].present is True


def test_a_scheduler_that_placed_a_pod_is_there_and_one_that_was_only_asked_for_is_not() -> None:
    placed = pod(on="gpu-1", schedulerName="yunikorn")
    waiting = pod(schedulerName="yunikorn")
    assert cluster(node(), placed).components["yunikorn"].present is True
    assert cluster(node(), waiting).components["yunikorn"].present is False


def test_what_providers_run_elsewhere_is_never_said_to_be_absent() -> None:
    assert cluster(node()).components["cluster_autoscaler"].present is None
    labelled = node(labels={"karpenter.sh/nodepool": "gpu"})
    assert cluster(labelled).components["karpenter"].present is True


@pytest.mark.parametrize(("state", "healthy"), [("ready", True), ("notReady", False), ("ignored", None)])
def test_an_operator_says_how_it_is(state: str, healthy: bool | None) -> None:
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "status": {"state": state},
    }
    found = cluster(policy).components["gpu_operator"]
    assert (found.present, found.healthy) == (True, healthy)


def test_a_failing_pod_makes_a_component_unhealthy() -> None:
    status = {
        "containerStatuses": [{"name": "m", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    }
    crashing = pod("mpi-operator-abc", on="cpu-1", owner=("ReplicaSet", "mpi-operator-7c9d8f6b54"), status=status)
    assert cluster(node(), crashing, read=("Node", "Pod")).components["mpi_operator"].healthy is False


def test_a_daemon_set_without_status_says_nothing_of_its_health() -> None:
    assert cluster(daemon_set("nvidia-dcgm-exporter", "x")).components["dcgm_exporter"].healthy is None


@pytest.mark.parametrize(
    ("driver", "rwx"),
    [
        ("efs.csi.aws.com", True),
        ("ebs.csi.aws.com", False),
        ("rook-ceph.cephfs.csi.ceph.com", True),
        ("openshift-storage.rbd.csi.ceph.com", False),
        ("cluster.local/nfs-subdir-external-provisioner", True),
        ("csi.trident.netapp.io", None),
        ("csi.example.com", None),
        (None, None),
    ],
)
def test_drivers_tell_whether_nodes_can_share_a_volume(driver: str | None, rwx: bool | None) -> None:
    assert can_share(driver) is rwx


def claim(modes: list[str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ml"},
        "spec": {"accessModes": modes, **spec},
    }


def test_a_claim_has_the_driver_of_its_volume_before_that_of_its_class() -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1"},
        "spec": {"nfs": {"server": "192.0.2.1", "path": "/data"}},
    }
    [by_class] = cluster(claim(["ReadWriteMany"], storageClassName="gp3"), storage_class).claims.values()
    assert (by_class.driver, by_class.rwx, by_class.asks_for_many) == ("ebs.csi.aws.com", False, True)
    [by_volume] = cluster(
        claim(["ReadWriteOnce"], storageClassName="gp3", volumeName="pv-1"), storage_class, volume
    ).claims.values()
    assert (by_volume.driver, by_volume.rwx, by_volume.asks_for_many) == ("nfs", True, False)
    [unknown] = cluster(claim(["ReadWriteOnce"], storageClassName="gp3")).claims.values()
    assert (unknown.driver, unknown.rwx) == (None, None)
