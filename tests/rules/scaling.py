"""Autoscalers, node pools and disruption budgets for small clusters."""

from datetime import timedelta
from typing import Any

from tests.rules.checks.kit import Plain, pod, stamp

STATUS = """autoscalerStatus: Running
nodeGroups:
- name: {name}
  health: {{cloudProviderTarget: {target}, minSize: {minimum}, maxSize: 4}}
"""


def status(name: str = "eks-gpu-0ac1", *, target: int = 1, minimum: int = 0) -> Plain:
    text = STATUS.format(name=name, target=target, minimum=minimum)
    return config_map("cluster-autoscaler-status", {"status": text})


def config_map(name: str, data: dict[str, str]) -> Plain:
    meta = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def autoscaler(
    *flags: str, replicas: int = 1, image: str = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1"
) -> Plain:
    container = {"name": "main", "image": image, "command": ["./cluster-autoscaler", *flags]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ca", "namespace": "kube-system"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }


def budget(spec: Plain, status: Plain | None = None, name: str = "guard") -> Plain:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec},
        **({"status": status} if status else {}),
    }


def node_pool(name: str = "gpu", **spec: Any) -> Plain:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


KARPENTER = {
    "karpenter.sh/nodepool": "gpu",
    "karpenter.sh/initialized": "true",
    "nvidia.com/gpu.present": "true",
    "kubernetes.io/hostname": "gpu-1",
}
POOLED = {"eks.amazonaws.com/nodegroup": "gpu", "nvidia.com/gpu.present": "true"}


def node_claim(name: str = "gpu-x7k2q", *, on: str = "gpu-1", initialized: str = "True", **meta: Any) -> Plain:
    conditions = [{"type": "Registered", "status": "True"}, {"type": "Initialized", "status": initialized}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, **meta},
        "status": {"nodeName": on, "conditions": conditions},
    }


def deployment(name: str = "chat", *, replicas: int = 1) -> Plain:
    meta = {"name": name, "namespace": "ml"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": replicas}}


def replica(
    name: str = "chat-1", *, of: str = "chat", on: str = "gpu-1", gpus: int = 1, age: int = 10
) -> dict[str, Any]:
    """A pod of a Deployment that has run for ``age`` days."""
    ago = timedelta(days=age)
    return pod(
        name,
        on=on,
        gpus={"nvidia.com/gpu": gpus} if gpus else {},
        age=ago,
        owner=("ReplicaSet", f"{of}-6b8c7d9f5b"),
        labels={"pod-template-hash": "6b8c7d9f5b", "app": "a"},
        status={"startTime": stamp(ago)},
    )
