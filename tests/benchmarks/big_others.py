"""The other kinds of the big cluster: events, controllers, volumes, budgets, classes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.benchmarks.big_pods import EVERYWHERE, ON_GPU_NODES, REPLICAS, TEAMS, Planned, numbers, owner_of, plan
from tests.benchmarks.big_text import Object, ago, digest, suffix, uid

Make = Callable[[int, int], Iterator[Object]]


def _meta(name: str, number: int, family: int, namespace: str | None = None, **more: Any) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **where,
        "uid": uid(number, family),
        "resourceVersion": str(4_000_000 + number),
        "creationTimestamp": ago(86_400 * 30 + number % 86_400),
        **more,
    }


def _events(nodes: int, pods: int) -> Iterator[Object]:
    for pod in plan(nodes, pods):
        if pod.look == "waiting":
            says = "0/5000 nodes are available: 4000 Insufficient nvidia.com/gpu."
            yield _event(pod, "FailedScheduling", says, "default-scheduler")
        elif pod.look == "crashing":
            yield _event(pod, "BackOff", "Back-off restarting failed container main", "kubelet")
        elif pod.look == "web" and pod.number % 40 == 0:
            yield _event(pod, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet")


def _event(pod: Planned, reason: str, says: str, component: str) -> Object:
    involved = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": uid(pod.number, 2),
                "apiVersion": "v1"}  # fmt: skip
    name = f"{pod.name}.{digest(pod.number)[:16]}"
    times = {"firstTimestamp": ago(3000), "lastTimestamp": ago(pod.number % 600)}
    source = {"component": component}
    meta = _meta(name, pod.number, 4, pod.namespace)
    return {"metadata": meta, "involvedObject": involved, "reason": reason, "message": says, "source": source, **times,
            "count": 1 + pod.number % 90, "type": "Warning", "eventTime": None, "reportingComponent": component,
            "reportingInstance": ""}  # fmt: skip


def _template(app: str, containers: list[Object]) -> Object:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, "serviceAccountName": app}}


def _daemon_sets(nodes: int, pods: int) -> Iterator[Object]:
    everywhere = [("kube-system", app, nodes) for app in EVERYWHERE]
    gpu = [("gpu-operator", app, -(-nodes // 5)) for app in ON_GPU_NODES]
    for number, (namespace, app, count) in enumerate([*everywhere, *gpu]):
        image = f"602401143452.dkr.ecr.us-east-1.amazonaws.com/apps/{app}:v2.{len(app)}.0"
        scheduled = {"currentNumberScheduled": count, "desiredNumberScheduled": count, "numberReady": count,
                     "numberAvailable": count, "numberMisscheduled": 0, "updatedNumberScheduled": count}  # fmt: skip
        selector = {"matchLabels": {"app": app}}
        yield {
            "metadata": _meta(app, number, 5, namespace, labels={"app": app}),
            "spec": {"selector": selector, "template": _template(app, [{"name": "main", "image": image}])},
            "status": scheduled,
        }


def _workloads(nodes: int, pods: int) -> Iterator[tuple[int, Planned]]:
    """The first pod of every owner that is no DaemonSet."""
    seen: set[tuple[str, str]] = set()
    for pod in plan(nodes, pods):
        key = (pod.namespace, owner_of(pod))
        if pod.look != "daemon" and key not in seen:
            seen.add(key)
            yield len(seen), pod


def _replicated(nodes: int, pods: int) -> Iterator[tuple[int, Planned]]:
    yield from ((number, pod) for number, pod in _workloads(nodes, pods) if pod.look not in ("cron", "finished"))


def _replicas(pod: Planned) -> Object:
    template = _template(pod.app, [{"name": "main", "image": f"registry.example.com/{pod.app}:1"}])
    count = 4 if pod.gpus else REPLICAS
    return {"spec": {"replicas": count, "selector": {"matchLabels": {"app": pod.app}}, "template": template},
            "status": {"replicas": count, "readyReplicas": count, "availableReplicas": count}}  # fmt: skip


def _applications(nodes: int, pods: int) -> Iterator[tuple[int, Planned]]:
    """The first pod of every application that is replicated; several ReplicaSets of one are its generations."""
    seen: set[tuple[str, str]] = set()
    for _, pod in _replicated(nodes, pods):
        key = (pod.namespace, pod.app)
        if key not in seen:
            seen.add(key)
            yield len(seen), pod


def _deployments(nodes: int, pods: int) -> Iterator[Object]:
    for number, pod in _applications(nodes, pods):
        yield {"metadata": _meta(pod.app, number, 6, pod.namespace), **_replicas(pod)}


def _replica_sets(nodes: int, pods: int) -> Iterator[Object]:
    for number, pod in _replicated(nodes, pods):
        name = owner_of(pod)
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": pod.app,
                     "uid": uid(number, 6), "controller": True}  # fmt: skip
        yield {"metadata": _meta(name, number, 7, pod.namespace, ownerReferences=[reference]), **_replicas(pod)}


def _jobs(nodes: int, pods: int) -> Iterator[Object]:
    for number, pod in _workloads(nodes, pods):
        if pod.look in ("cron", "finished"):
            template = _template(pod.app, [{"name": "main", "image": f"registry.example.com/{pod.app}:1"}])
            done = {"type": "Complete", "status": "True", "lastTransitionTime": ago(pod.number % 280)}
            spec = {"completions": 1, "parallelism": 1, "backoffLimit": 6, "template": template}
            status = {"succeeded": 1, "conditions": [done], "completionTime": ago(pod.number % 280)}
            yield {"metadata": _meta(owner_of(pod), number, 8, pod.namespace), "spec": spec, "status": status}


def _stateful_sets(nodes: int, pods: int) -> Iterator[Object]:
    for number in range(TEAMS):
        template = _template("postgres", [{"name": "main", "image": "docker.io/library/postgres:17"}])
        spec = {"replicas": 3, "serviceName": "postgres", "template": template}
        yield {"metadata": _meta("postgres", number, 9, f"team-{number:02d}"), "spec": spec, "status": {"replicas": 3}}


def _claims(nodes: int, pods: int) -> Iterator[Object]:
    for number in range(numbers(nodes, pods).plain // 40):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Gi"}},
                "storageClassName": "gp3", "volumeName": f"pvc-{uid(number, 10)}"}  # fmt: skip
        meta = _meta(f"data-{number}", number, 10, f"team-{number % TEAMS:02d}")
        yield {"metadata": meta, "spec": spec, "status": {"phase": "Bound", "capacity": {"storage": "100Gi"}}}


def _volumes(nodes: int, pods: int) -> Iterator[Object]:
    for number in range(numbers(nodes, pods).plain // 40):
        claim = {"kind": "PersistentVolumeClaim", "namespace": f"team-{number % TEAMS:02d}", "name": f"data-{number}"}
        source = {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{suffix(number, 10)}", "fsType": "ext4"}
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "100Gi"}, "claimRef": claim, "csi": source,
                "storageClassName": "gp3", "persistentVolumeReclaimPolicy": "Delete"}  # fmt: skip
        yield {"metadata": _meta(f"pvc-{uid(number, 10)}", number, 11), "spec": spec, "status": {"phase": "Bound"}}


def _budgets(nodes: int, pods: int) -> Iterator[Object]:
    for number, pod in _applications(nodes, pods):
        if number % 4 == 0:
            spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": pod.app}}}
            status = {"disruptionsAllowed": 1, "currentHealthy": 12, "desiredHealthy": 11, "expectedPods": 12}
            yield {"metadata": _meta(pod.app, number, 12, pod.namespace), "spec": spec, "status": status}


def _autoscalers(nodes: int, pods: int) -> Iterator[Object]:
    for number, pod in _applications(nodes, pods):
        if number % 10 == 0:
            spec = {"minReplicas": 2, "maxReplicas": 20,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": pod.app}}  # fmt: skip
            yield {
                "metadata": _meta(pod.app, number, 13, pod.namespace),
                "spec": spec,
                "status": {"currentReplicas": 12},
            }


def _storage_classes(nodes: int, pods: int) -> Iterator[Object]:
    for number, (name, driver) in enumerate((("gp3", "ebs.csi.aws.com"), ("efs", "efs.csi.aws.com"))):
        more = {"parameters": {"type": name}, "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer"}
        yield {"metadata": _meta(name, number, 14), "provisioner": driver, **more}


def _quotas(nodes: int, pods: int) -> Iterator[Object]:
    for number in range(TEAMS):
        hard = {"requests.nvidia.com/gpu": str(64 + number)}
        status = {"hard": hard, "used": {"requests.nvidia.com/gpu": "12"}}
        yield {"metadata": _meta("gpus", number, 15, f"team-{number:02d}-ml"), "spec": {"hard": hard}, "status": status}


def _priorities(nodes: int, pods: int) -> Iterator[Object]:
    for number, (name, value) in enumerate((("system-node-critical", 2000001000), ("training", 1000))):
        yield {"metadata": _meta(name, number, 16), "value": value}


def _policies(nodes: int, pods: int) -> Iterator[Object]:
    spec = {"driver": {"enabled": True, "version": "570.133.20"}, "toolkit": {"enabled": True}}
    yield {"metadata": _meta("cluster-policy", 1, 17), "spec": spec, "status": {"state": "ready"}}


OTHERS: Mapping[str, tuple[str, Make]] = {
    "Event": ("v1", _events),
    "DaemonSet": ("apps/v1", _daemon_sets),
    "Deployment": ("apps/v1", _deployments),
    "ReplicaSet": ("apps/v1", _replica_sets),
    "StatefulSet": ("apps/v1", _stateful_sets),
    "Job": ("batch/v1", _jobs),
    "PersistentVolumeClaim": ("v1", _claims),
    "PersistentVolume": ("v1", _volumes),
    "PodDisruptionBudget": ("policy/v1", _budgets),
    "HorizontalPodAutoscaler": ("autoscaling/v2", _autoscalers),
    "StorageClass": ("storage.k8s.io/v1", _storage_classes),
    "ResourceQuota": ("v1", _quotas),
    "PriorityClass": ("scheduling.k8s.io/v1", _priorities),
    "ClusterPolicy": ("nvidia.com/v1", _policies),
}
"""apiVersion and maker, by kind."""
