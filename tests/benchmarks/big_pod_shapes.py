"""What pods of the big cluster look like, as text with holes."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from tests.benchmarks.big_nodes import POOLS
from tests.benchmarks.big_text import Object, managed, shape

Look = Literal["daemon", "running", "waiting", "crashing", "finished", "web", "worker", "sidecar", "cron"]
GPU_APPS = ("trainer", "llm-serve", "embedder", "asr", "notebook", "diffusion", "reranker", "finetune")

_IMAGES = {
    "trainer": "nvcr.io/nvidia/pytorch:24.05-py3",
    "llm-serve": "vllm/vllm-openai:v0.10.2",
    "embedder": "ghcr.io/huggingface/text-embeddings-inference:1.7",
    "asr": "registry.example.com/speech/asr:3.1.0-cu128",
    "notebook": "quay.io/jupyter/pytorch-notebook:cuda12-2025-06-02",
    "diffusion": "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
    "reranker": "nvidia/cuda:12.4.1-runtime-ubuntu22.04",
    "finetune": "nvcr.io/nvidia/nemo:25.04",
}
_DRIVER_OLD = "CUDA error: CUDA driver version is insufficient for CUDA runtime version"
_NO_NODE = (
    "0/5000 nodes are available: 4000 Insufficient nvidia.com/gpu, 1000 node(s) didn't match Pod's node selector."
)
_NODE_TROUBLE = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")


@cache
def pod_text(app: str, look: Look, gpus: int, variant: int) -> tuple[str, str]:
    """The text of a pod and the image of its first container."""
    image = _IMAGES.get(app) or f"602401143452.dkr.ecr.us-east-1.amazonaws.com/apps/{app}:v2.{len(app)}.0"
    text = _text(look, gpus, variant).replace("%(image)s", image)
    return text.replace("%(repository)s", image.rpartition(":")[0]), image


@cache
def _text(look: Look, gpus: int, variant: int) -> str:
    spec = _spec(look, gpus, variant)
    status = _status(look, spec)
    labels = {
        "app": "%(app)s",
        "app.kubernetes.io/name": "%(app)s",
        "app.kubernetes.io/part-of": "%(team)s",
        "app.kubernetes.io/managed-by": "Helm",
        "cost-center": "cc-%(team)s",
        "team": "%(team)s",
        **({"controller-revision-hash": "%(hash)s"} if look == "daemon" else {"pod-template-hash": "%(hash)s"}),
    }
    annotations = {
        "checksum/config": "%(digest)s",
        "prometheus.io/port": "8080",
        "prometheus.io/scrape": "true",
        **({"kubectl.kubernetes.io/restartedAt": "%(rolled)s"} if look == "web" else {}),
    }
    owner = {"daemon": ("apps/v1", "DaemonSet"), "cron": ("batch/v1", "Job"), "finished": ("batch/v1", "Job")}
    version, kind = owner.get(look, ("apps/v1", "ReplicaSet"))
    reference = {"apiVersion": version, "kind": kind, "name": "%(owner)s", "uid": "%(owner_uid)s"}
    references = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    given = {"metadata": {"annotations": annotations, "labels": labels, "ownerReferences": references}, "spec": spec}
    metadata = {
        "name": "%(name)s",
        "generateName": "%(owner)s-",
        "namespace": "%(namespace)s",
        "uid": "%(uid)s",
        "resourceVersion": "%(version)s",
        "generation": 1,
        "creationTimestamp": "%(created)s",
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": references,
        "managedFields": [
            managed("kube-controller-manager", given),
            *([] if look == "waiting" else [managed("kubelet", {"status": status}, status=True)]),
        ],
    }
    text = shape({"metadata": metadata, "spec": spec, "status": status})
    return text.replace('"%(restarts)s"', "%(restarts)s")


def _spec(look: Look, gpus: int, variant: int) -> Object:
    token = "kube-api-access-%(token)s"
    mounts: list[Object] = [
        {"name": "config", "mountPath": "/etc/app"},
        {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]
    if gpus:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    containers = [_container("main", "%(image)s", _resources(look, gpus, variant), mounts)]
    if look == "sidecar":
        few = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
        containers.append(_container("istio-proxy", "docker.io/istio/proxyv2:1.27.1", few, mounts[1:], main=False))
    selector, affinity = _where(look, variant)
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": "%(app)s-config", "defaultMode": 420}},
            *([{"name": "shm", "emptyDir": {"medium": "Memory"}}] if gpus else []),
            _token_volume(token),
        ],
        "containers": containers,
        "restartPolicy": "Never" if look in ("cron", "finished") else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        **({"nodeSelector": selector} if selector else {}),
        "serviceAccountName": "%(app)s",
        "serviceAccount": "%(app)s",
        **({} if look == "waiting" else {"nodeName": "%(node)s"}),
        **({"hostNetwork": True} if look == "daemon" else {}),
        "securityContext": {},
        **({"affinity": affinity} if affinity else {}),
        "schedulerName": "default-scheduler",
        "tolerations": _tolerations(look, gpus, variant),
        **({"priorityClassName": "system-node-critical", "priority": 2000001000} if look == "daemon" else {}),
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _resources(look: Look, gpus: int, variant: int) -> Object:
    if not gpus:
        cpu, memory = {"daemon": ("50m", "64Mi"), "cron": ("500m", "1Gi")}.get(look, ("250m", "512Mi"))
        return {"limits": {"memory": memory}, "requests": {"cpu": cpu, "memory": memory}}
    amounts = {"cpu": str(4 * gpus + variant % 7), "memory": f"{32 * gpus + variant // 7}Gi"}
    return {"limits": {**amounts, "nvidia.com/gpu": str(gpus)}, "requests": {**amounts, "nvidia.com/gpu": str(gpus)}}


def _where(look: Look, variant: int) -> tuple[dict[str, str], Object]:
    if look == "daemon":
        field = {"key": "metadata.name", "operator": "In", "values": ["%(node)s"]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        return {}, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if look != "waiting":
        return {}, {}
    pool = POOLS[variant % len(POOLS)]
    match variant % 4:
        case 0:
            return {"nvidia.com/gpu.product": pool.product}, {}
        case 1:
            return {"node.kubernetes.io/instance-type": pool.instance}, {}
        case 2:
            wanted = {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": [str(20_000 + 100 * variant)]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
            return {}, {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {}, {}


def _tolerations(look: Look, gpus: int, variant: int) -> list[Object]:
    if look == "daemon":
        return [
            {"operator": "Exists"},
            *(
                {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
                for name, effect in zip(_NODE_TROUBLE, ["NoExecute"] * 2 + ["NoSchedule"] * 4, strict=True)
            ),
        ]
    short = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    usual = [{"key": f"node.kubernetes.io/{name}", **short} for name in _NODE_TROUBLE[:2]]
    if gpus and variant % 9 != 8:
        return [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, *usual]
    return usual


def _container(
    name: str, image: str, resources: Object, mounts: list[dict[str, Any]], *, main: bool = True
) -> dict[str, Any]:
    def probe(path: str, every: int) -> Object:
        get = {"path": path, "port": 8080, "scheme": "HTTP"}
        return {"httpGet": get, "timeoutSeconds": 1, "periodSeconds": every, "successThreshold": 1,
                "failureThreshold": 3}  # fmt: skip

    plain = (("LOG_LEVEL", "info"), ("OTEL_SERVICE_NAME", "%(app)s"), ("OMP_NUM_THREADS", "8"))
    fields = (("POD_NAME", "metadata.name"), ("NODE_NAME", "spec.nodeName"))
    return {
        "name": name,
        "image": image,
        "args": ["--config", "/etc/app/config.yaml", "--log-level", "info"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            *({"name": key, "value": value} for key, value in plain[: 3 if main else 1]),
            *(
                {"name": key, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
                for key, path in fields
            ),
        ],
        "resources": resources,
        "volumeMounts": mounts,
        **({"readinessProbe": probe("/ready", 5)} if main else {}),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _token_volume(name: str) -> Object:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def _status(look: Look, spec: Mapping[str, Any]) -> Object:
    def condition(name: str, *, true: bool = True, **more: str) -> Object:
        times = {"lastProbeTime": None, "lastTransitionTime": "%(started)s"}
        return {"type": name, "status": "True" if true else "False", **times, **more}

    if look == "waiting":
        return {
            "phase": "Pending",
            "conditions": [condition("PodScheduled", true=False, reason="Unschedulable", message=_NO_NODE)],
            "qosClass": "Burstable",
        }
    over, crashing = look in ("finished", "cron"), look == "crashing"
    why: dict[str, Any] = {"reason": "PodCompleted"} if over else {"reason": "ContainersNotReady"} if crashing else {}
    why_done: dict[str, Any] = {"reason": "PodCompleted"} if over else {}
    ready = not over and not crashing
    statuses = [
        {
            "name": container["name"],
            **_state(look),
            "ready": ready,
            "restartCount": "%(restarts)s",
            "image": container["image"],
            "imageID": "%(repository)s@sha256:%(digest)s"
            if number == 0
            else f"docker.io/istio/proxyv2@sha256:{'5' * 64}",
            "containerID": f"containerd://{'%(sidecar)s' if number else '%(container)s'}",
            "started": ready,
        }
        for number, container in enumerate(spec["containers"])
    ]
    return {
        "phase": "Succeeded" if over else "Running",
        "conditions": [
            condition("PodReadyToStartContainers", true=not over),
            condition("Initialized", **why_done),
            condition("Ready", true=ready, **why),
            condition("ContainersReady", true=ready, **why),
            condition("PodScheduled"),
        ],
        "hostIP": "%(host_ip)s",
        "hostIPs": [{"ip": "%(host_ip)s"}],
        "podIP": "%(ip)s",
        "podIPs": [{"ip": "%(ip)s"}],
        "startTime": "%(started)s",
        "containerStatuses": statuses,
        "qosClass": "Burstable",
    }


def _state(look: Look) -> Object:
    ended = {"startedAt": "%(started)s", "finishedAt": "%(recently)s", "containerID": "containerd://%(container)s"}
    if look in ("finished", "cron"):
        return {"state": {"terminated": {"exitCode": 0, "reason": "Completed", **ended}}, "lastState": {}}
    if look == "crashing":
        says = "back-off 5m0s restarting failed container=main"
        return {
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": says}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": _DRIVER_OLD, **ended}},
        }
    return {"state": {"running": {"startedAt": "%(started)s"}}, "lastState": {}}
