"""GPU metrics name the exporter's pod instead of the workload.

What:
    A ServiceMonitor or PodMonitor scrapes a GPU exporter without ``honorLabels: true`` and without a relabelling of
    ``exported_pod``. Prometheus then writes the exporter into ``pod`` and ``namespace``, and the workload into
    ``exported_pod`` and ``exported_namespace``.

Why:
    Dashboards and idle reports by ``pod`` blame the exporter. Low: queries on ``exported_pod`` are right, and
    gpu-advisor asks for both.

Fix:
    Set ``honorLabels: true``, or use ``exported_pod`` in queries.

Source:
    https://github.com/NVIDIA/dcgm-exporter/issues/85; NVIDIA/gpu-operator deployments/gpu-operator/values.yaml
    (dcgmExporter.serviceMonitor.honorLabels); Prometheus documentation, scrape_config.

Seeds: S5, S23
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.checks._exporters import endpoints, scrapes_gpus
from rules.checks._kit import found, of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_KINDS = ("ServiceMonitor", "PodMonitor")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per monitor that renames the workload's labels."""
    for kind in _KINDS:
        for item in facts.of_kind(kind, "monitoring.coreos.com"):
            ref = ObjectRef(kind, item.metadata.namespace or "", item.metadata.name)
            yield ref
            if not scrapes_gpus(item) or not any(_renames(endpoint) for endpoint in endpoints(item)):
                continue
            operated = any(owner.kind == "ClusterPolicy" for owner in item.metadata.ownerReferences or ())
            yield found(
                Severity.LOW,
                ref,
                remedy="operator" if operated or _by_operator(facts, item) else "default",
                monitor=short(ref),
                kind=kind.lower(),
                monitor_namespace=ref.namespace,
                monitor_name=ref.name,
                honor_labels=of(False, "spec.endpoints[].honorLabels"),
            )


def _renames(endpoint: Mapping[str, Any]) -> bool:
    if endpoint.get("honorLabels"):
        return False
    rules = [*(endpoint.get("relabelings") or []), *(endpoint.get("metricRelabelings") or [])]
    return "exported_pod" not in str(rules)


def _by_operator(facts: ClusterFacts, item: OtherObject) -> bool:
    """The GPU Operator names its monitor so, in its own namespace."""
    if item.metadata.name != "nvidia-dcgm-exporter":
        return False
    namespaces = {(policy.status or {}).get("namespace") for policy in facts.of_kind("ClusterPolicy", "nvidia.com")}
    return item.metadata.namespace in namespaces


RULE = Rule(
    id="metrics-wrong-pod",
    family="health",
    severity=Severity.LOW,
    seeds=("S5", "S23"),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
