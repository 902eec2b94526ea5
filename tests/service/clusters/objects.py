"""Small objects for tests that need exact ones."""

from typing import Any

Object = dict[str, Any]


def node(name: str, labels: dict[str, str] | None = None, *, gpus: int = 8) -> Object:
    capacity = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": "2026-11-20T10:00:00Z", "labels": labels or {}},
        "spec": {"providerID": f"aws:///us-east-1a/{name}"},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-30T10:00:00Z"}],
        },
    }


def pod(name: str, *, on: str | None = None, gpus: int = 1, namespace: str = "default") -> Object:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-30T09:00:00Z"},
        "spec": {
            "containers": [{"name": "main", "image": "nvcr.io/nvidia/pytorch:24.05-py3", "resources": resources}],
            **({"nodeName": on} if on else {}),
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def event(name: str, reason: str, *, about: str = "waiting", kind: str = "Warning") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "type": kind,
        "reason": reason,
        "message": f"{reason} happened",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": about},
        "lastTimestamp": "2026-11-30T09:30:00Z",
    }


def daemon_set(name: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "gpu-operator"},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"desiredNumberScheduled": 2, "numberReady": 2},
    }


def claim(name: str) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {
            "allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "pool": "a", "device": "gpu-0"}]}}
        },
    }


def small_cluster() -> list[Object]:
    """Two nodes, three pods, two events that matter and two that do not, a DaemonSet and a claim."""
    return [
        node("gpu-a", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
        node("gpu-b"),
        pod("busy-1", on="gpu-a"),
        pod("busy-2", on="gpu-a", namespace="team-b"),
        pod("waiting"),
        event("e1", "FailedScheduling"),
        event("e2", "NotTriggerScaleUp", kind="Normal"),
        event("e3", "Pulled", about="busy-1", kind="Normal"),
        event("e4", "Scheduled", about="busy-1", kind="Normal"),
        daemon_set("nvidia-device-plugin"),
        claim("claim-1"),
    ]
