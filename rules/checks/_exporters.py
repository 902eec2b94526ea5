"""Exporters of GPU metrics: where they run and how they are set up.

Sources: NVIDIA/dcgm-exporter deployment/values.yaml, NVIDIA/gpu-operator deployments/gpu-operator/values.yaml,
ROCm/device-metrics-exporter, Kubernetes manifests of their charts; read in the second half of 2026.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.objects import OtherObject

from ._components import owner_name, template_of

_DCGM = re.compile(r"dcgm-exporter")
_ANY = re.compile(r"dcgm-exporter|(?:device-)?metrics-exporter|xpumd|gpu-metrics")


def exporter_sets(facts: ClusterFacts) -> Iterator[OtherObject]:
    """DaemonSets of NVIDIA's dcgm-exporter."""
    for item in facts.others.get("DaemonSet", ()):
        images = " ".join(str(container.get("image", "")) for container in template_of(item).get("containers") or [])
        if _DCGM.search(item.metadata.name) or _DCGM.search(images):
            yield item


def splits_shared(template: Mapping[str, Any]) -> bool:
    """Whether an exporter's pod spec asks for one series per pod on shared GPUs (``KUBERNETES_VIRTUAL_GPUS``)."""
    for container in template.get("containers") or []:
        arguments = " ".join(map(str, [*(container.get("args") or []), *(container.get("command") or [])]))
        if "kubernetes-virtual-gpus" in arguments:
            return True
        for variable in container.get("env") or []:
            if variable.get("name") == "KUBERNETES_VIRTUAL_GPUS":
                return "valueFrom" in variable or str(variable.get("value", "")).lower() in ("true", "1")
    return False


def exports_gpus(pods: Iterable[PodFacts]) -> bool:
    """Whether one of the pods is an exporter of GPU metrics."""
    told: set[str | None] = {None}
    for pod in pods:
        name = owner_name(pod)
        if name not in told:
            told.add(name)
            if _ANY.search(name):
                return True
        for item in (pod.pod.spec.containers if pod.pod.spec else None) or ():
            if item.image not in told:
                told.add(item.image)
                if _ANY.search(item.image or ""):
                    return True
    return False


def scrapes_gpus(item: OtherObject) -> bool:
    """Whether a ServiceMonitor or PodMonitor is about an exporter of GPU metrics."""
    spec = item.spec or {}
    labels = ((spec.get("selector") or {}).get("matchLabels") or {}).values()
    ports = [str(endpoint.get("port", "")) for endpoint in endpoints(item)]
    return any(_ANY.search(text) for text in (item.metadata.name, *map(str, labels), *ports))


def endpoints(item: OtherObject) -> list[Mapping[str, Any]]:
    """Endpoints of a ServiceMonitor or PodMonitor."""
    spec = item.spec or {}
    listed = spec.get("endpoints") or spec.get("podMetricsEndpoints")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
