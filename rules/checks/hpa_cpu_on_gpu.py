"""A GPU workload is scaled by the load of its CPUs.

What:
    A HorizontalPodAutoscaler has only CPU or memory as its metrics (or none, which means CPU), and its target's pods
    ask for GPUs. What the target is, is read from the Deployment or StatefulSet, or from pods that it owns.

Why:
    The CPU of a server whose work is done by the GPU stays low however full the GPU is: it does not scale up when
    requests wait, and holds minReplicas when nobody asks. Each replica is a GPU that is paid for.

Fix:
    Scale by what the server itself measures (waiting or running requests, tokens) or by GPU metrics of the DCGM
    exporter, through KEDA or the Prometheus adapter; KEDA can also go to zero.

Source:
    seed S9; MicrosoftDocs/azure-aks-docs articles/aks/autoscale-gpu-workloads-with-keda.md; Kubernetes documentation,
    HorizontalPodAutoscaler v2.

Seeds: S9
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from rules.checks._devices import amounts
from rules.checks._kit import found, names, note, of, short
from rules.checks._workloads import by_workload, find
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.components import ref_of, template_of
from rules.facts.groups import mapping, text, whole
from rules.facts.objects import OtherObject, PodSpec
from rules.facts.resources import gpu_requests
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_HOST = frozenset({"cpu", "memory"})


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per autoscaler."""
    owned = by_workload(facts, (pod for pod in facts.gpu_pods if not pod.terminal and pod.gpu_requests))
    for item in facts.of_kind("HorizontalPodAutoscaler"):
        yield ref_of(item)
        spec = item.spec or {}
        metrics = list(_metrics(spec))
        target = mapping(spec.get("scaleTargetRef"))
        ref = ObjectRef(str(target.get("kind")), item.metadata.namespace or "", str(target.get("name")))
        pods = owned.get(ref) or _by_name(owned, ref)
        each = _gpus_each(find(facts, ref), pods)
        if not each or not metrics or not _HOST.issuperset(metrics):
            continue
        low, high = whole(spec.get("minReplicas", 1)), whole(spec.get("maxReplicas"))
        replicas = whole((item.status or {}).get("currentReplicas"))
        yield found(
            Severity.MEDIUM,
            ref_of(item),
            ref,
            notes=[note("keeps")] if low else (),
            hpa=short(ref_of(item)),
            namespace=ref.namespace,
            name=ref.name,
            target=short(ref),
            kind=ref.kind,
            metrics=of(sorted(set(metrics)), "spec.metrics"),
            asks=of(each, "requests of the pods"),
            min_replicas=of(low, "spec.minReplicas"),
            max_replicas=of(high, "spec.maxReplicas"),
            replicas=of(replicas, "status.currentReplicas"),
            pods=of(names(pod.ref for pod in pods)),
        )


def _metrics(spec: dict[str, Any]) -> Iterator[str]:
    """Names of the metrics; another kind of metric than one of a pod's own CPU or memory stands by its type."""
    metrics = spec.get("metrics")
    if not metrics:
        yield "cpu"  # autoscaling/v1 knows nothing else, and v2 without metrics takes 80 % of the CPU
        return
    for metric in metrics if isinstance(metrics, list) else ():
        kind = str(mapping(metric).get("type"))
        source = mapping(mapping(metric).get({"ContainerResource": "containerResource"}.get(kind, "resource")))
        yield text(source.get("name")) or kind


def _by_name(owned: dict[ObjectRef, list[PodFacts]], target: ObjectRef) -> list[PodFacts]:
    """Pods of a Deployment that was not read: those of ReplicaSets with its name and a hash."""
    for ref, pods in owned.items():
        same = ref.kind == "ReplicaSet" and ref.namespace == target.namespace
        if same and ref.name.rpartition("-")[0] == target.name:
            return pods
    return []


def _gpus_each(item: OtherObject | None, pods: list[PodFacts]) -> list[str]:
    """What one replica asks for; empty when that is no GPU."""
    if pods:
        return amounts(pods[:1])
    if item is None:
        return []
    try:
        spec = msgspec.convert(template_of(item), PodSpec)
    except msgspec.ValidationError:
        return []
    return [f"{name}: {amount}" for name, amount in sorted(gpu_requests(spec).items())]


RULE = Rule(
    id="hpa-cpu-on-gpu",
    family="inference",
    severity=Severity.MEDIUM,
    seeds=("S9",),
    needs=("Node", "Pod", "HorizontalPodAutoscaler"),
    check=check,
    doc=__doc__ or "",
)
