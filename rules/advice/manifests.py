"""Objects to start from where Kubernetes is advised.

What only the cluster at hand can tell is a placeholder that says so (``REPLACE-WITH-...``). Formats: built-in kinds of
Kubernetes; JobSet kubernetes-sigs/jobset v1alpha2, LocalQueue kubernetes-sigs/kueue v1beta1, ScaledObject kedacore/keda
v1alpha1 (definitions read 2026-12). Labels of GPUs: NVIDIA GPU feature discovery, AMD node labeller.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.advice.demand import Sized
from rules.advice.model import Demand, ManifestFile
from rules.advice.request import AdviceRequest
from rules.facts.offers import vendor_of
from rules.sharing.manifests import configuration

_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
_PRODUCTS = {"nvidia": "nvidia.com/gpu.product", "amd": "amd.com/gpu.product-name"}
_IMAGE = "registry.example.com/replace-with-image:1.0.0"
_PORT = 8000
_RENDEZVOUS = 29500
_METRIC = "replace_with_metric_of_waiting_requests"
DATA = "data"
QUEUE = "gpu-queue"


def manifests(request: AdviceRequest, size: Sized) -> tuple[ManifestFile, ...]:
    """The objects; empty where the maker of the GPU is not known, or where one model spans several nodes."""
    demand = size.demand
    if demand is None:
        return ()
    vendor = request.vendor or next((vendor_of(name) for name in demand.gpu), None)
    several = (request.nodes or 1) > 1
    if vendor not in _RESOURCES or (several and request.kind in ("inference", "notebook")):
        return ()
    return tuple(_all(request, size, demand, vendor))


def _all(request: AdviceRequest, size: Sized, demand: Demand, vendor: str) -> Iterator[ManifestFile]:
    several = (request.nodes or 1) > 1
    shared = request.storage == "shared" or (several and request.storage is None)
    stored = shared or request.storage == "block"
    if stored:
        yield _claim(shared=shared)
    if request.kind in ("batch", "fine-tune", "training"):
        yield _queue()
    for name, replicas, pod in _pods(request, size, demand, vendor):
        if stored:
            _mount(pod)
        if request.kind in ("inference", "notebook"):
            yield from _served(request, name, replicas, pod)
        elif several:
            yield _job_set(request, name, pod)
        else:
            yield _job(request, name, replicas, pod)


def _pods(
    request: AdviceRequest, size: Sized, demand: Demand, vendor: str
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Name, replicas and pod of every model; of the workload itself where no models were named."""
    several = (request.nodes or 1) > 1
    if size.plan is None or several:
        name = request.kind if not request.models else _dns(request.models[0].name)
        limits: dict[str, int | str] = {_RESOURCES[vendor]: demand.per_machine}
        yield (
            name,
            request.parallel or 1,
            _pod(request, vendor, limits, {}, fast=several and request.kind == "training"),
        )
        return
    for model, file in zip(size.plan.sizings, configuration(size.plan).pods, strict=True):
        spec = file.body["spec"]
        limits = dict(spec["containers"][0]["resources"]["limits"])
        if vendor == "amd":
            limits = {_RESOURCES["amd"]: next(iter(limits.values()))}
        yield file.body["metadata"]["name"], model.replicas, _pod(request, vendor, limits, spec.get("nodeSelector", {}))


def _pod(
    request: AdviceRequest,
    vendor: str,
    limits: Mapping[str, int | str],
    selector: Mapping[str, str],
    *,
    fast: bool = False,
) -> dict[str, Any]:
    """A pod with a GPU, room in /dev/shm for worker processes, and tolerations of the taints that GPU nodes carry."""
    tolerations: list[dict[str, Any]] = [{"key": _RESOURCES[vendor], "operator": "Exists", "effect": "NoSchedule"}]
    if request.interruptible:
        tolerations.append({"key": "REPLACE-WITH-SPOT-TAINT", "operator": "Exists", "effect": "NoSchedule"})
    wanted = dict(limits)
    container: dict[str, Any] = {"name": "main", "image": _IMAGE}
    if fast:
        wanted["replace-with-domain.example.com/rdma-device"] = 1
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    container["resources"] = {
        "requests": {"cpu": "4", "memory": "16Gi"},
        # quantities, as the API has them
        "limits": {"memory": "16Gi", **{name: str(count) for name, count in wanted.items()}},
    }
    container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - a mount point in a pod
    spec: dict[str, Any] = {
        "nodeSelector": {_PRODUCTS[vendor]: "REPLACE-WITH-GPU-PRODUCT", **selector},
        "tolerations": tolerations,
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}],
    }
    return {"runtimeClassName": "nvidia", **spec} if request.edge and vendor == "nvidia" else spec


def _mount(pod: dict[str, Any]) -> None:
    pod["containers"][0]["volumeMounts"].append({"name": DATA, "mountPath": "/data"})
    pod["volumes"].append({"name": DATA, "persistentVolumeClaim": {"claimName": DATA}})


def _claim(*, shared: bool) -> ManifestFile:
    spec = {
        "accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"],
        "storageClassName": "replace-with-rwx-storage-class" if shared else "replace-with-storage-class",
        "resources": {"requests": {"storage": "100Gi"}},
    }
    return _file("pvc", "v1", "PersistentVolumeClaim", DATA, spec)


def _queue() -> ManifestFile:
    spec = {"clusterQueue": "replace-with-cluster-queue"}
    return _file("queue", "kueue.x-k8s.io/v1beta1", "LocalQueue", QUEUE, spec)


def _served(request: AdviceRequest, name: str, replicas: int, pod: dict[str, Any]) -> Iterator[ManifestFile]:
    container = pod["containers"][0]
    container["ports"] = [{"name": "http", "containerPort": _PORT}]
    container["readinessProbe"] = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 10}
    labels = {"app": name}
    scaled = request.kind == "inference" and bool(request.autoscaling or request.scale_to_zero)
    spec: dict[str, Any] = {} if scaled else {"replicas": replicas}
    spec |= {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    yield _file(f"deployment-{name}", "apps/v1", "Deployment", name, spec)
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    yield _file(f"service-{name}", "v1", "Service", name, {"selector": labels, "ports": ports})
    if scaled and request.scale_to_zero:
        yield _scaled_object(name, replicas)
    elif scaled:
        yield _autoscaler(name, replicas)


def _autoscaler(name: str, replicas: int) -> ManifestFile:
    """By requests that wait: CPU tells nothing of a GPU."""
    target = {"type": "AverageValue", "averageValue": "5"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 1,
        "maxReplicas": max(2, replicas * 2),
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": _METRIC}, "target": target}}],
    }
    return _file(f"hpa-{name}", "autoscaling/v2", "HorizontalPodAutoscaler", name, spec)


def _scaled_object(name: str, replicas: int) -> ManifestFile:
    """KEDA, which goes down to zero; a HorizontalPodAutoscaler of its own stays at one."""
    query = f"sum({_METRIC}{{app={name!r}}})".replace("'", '"')
    metadata = {"serverAddress": "http://replace-with-prometheus:9090", "query": query, "threshold": "5"}
    spec = {
        "scaleTargetRef": {"name": name},
        "minReplicaCount": 0,
        "maxReplicaCount": max(2, replicas * 2),
        "cooldownPeriod": 600,
        "triggers": [{"type": "prometheus", "metadata": metadata}],
    }
    return _file(f"scaledobject-{name}", "keda.sh/v1alpha1", "ScaledObject", name, spec)


def _job(request: AdviceRequest, name: str, replicas: int, pod: dict[str, Any]) -> ManifestFile:
    """Suspended until Kueue admits it; what spot takes away does not count as a failure."""
    spec: dict[str, Any] = {
        "suspend": True,
        "parallelism": replicas,
        "completions": replicas,
        "backoffLimit": 6 if request.interruptible else 3,
    }
    if request.interruptible:
        on = [{"type": "DisruptionTarget", "status": "True"}]
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": on}]}
    spec["template"] = {"spec": {"restartPolicy": "Never", **pod}}
    return _file(f"job-{name}", "batch/v1", "Job", name, spec, labels={"kueue.x-k8s.io/queue-name": QUEUE})


def _job_set(request: AdviceRequest, name: str, pod: dict[str, Any]) -> ManifestFile:
    """Kueue admits all workers or none, and a failure of one restarts them all."""
    nodes = request.nodes or 1
    container = pod["containers"][0]
    container["command"] = ["torchrun"]
    container["args"] = [
        f"--nnodes={nodes}",
        f"--nproc-per-node={request.gpus or 1}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={name}-workers-0-0.{name}:{_RENDEZVOUS}",
        "replace-with-training-script.py",
    ]
    job = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", **pod}},
    }
    spec = {
        "suspend": True,
        "network": {"enableDNSHostnames": True, "subdomain": name},
        "failurePolicy": {"maxRestarts": 10 if request.interruptible else 3},
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
    }
    labels = {"kueue.x-k8s.io/queue-name": QUEUE}
    return _file(f"jobset-{name}", "jobset.x-k8s.io/v1alpha2", "JobSet", name, spec, labels=labels)


def _file(
    file: str, version: str, kind: str, name: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> ManifestFile:
    metadata: dict[str, Any] = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return ManifestFile(f"{file}.yaml", {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": dict(spec)})


def _dns(name: str) -> str:
    """A name as Kubernetes takes it (RFC 1123 label), short enough for the pods of a JobSet."""
    clean = "".join(char if char.isascii() and char.isalnum() else "-" for char in name.lower())
    return clean.strip("-")[:30].strip("-") or "model"
