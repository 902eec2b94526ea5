"""Metrics of shared GPUs cannot be told apart by pod.

What:
    Nodes share GPUs by time-slicing or MPS, a dcgm-exporter serves them, and it is not set up to write a series per pod
    on shared GPUs (``KUBERNETES_VIRTUAL_GPUS``). Where no exporter runs, the rule dcgm-absent says so.

Why:
    Of the pods on a shared GPU only one gets the series, or none: use per pod, and so idle pods, cannot be told.

Fix:
    Set ``KUBERNETES_VIRTUAL_GPUS=true`` on the exporter; then each pod gets a series of its own (with the values of the
    whole GPU).

Source:
    https://github.com/NVIDIA/dcgm-exporter/issues/151; NVIDIA/dcgm-exporter README.md.

Seeds: S15, S17, S23
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref, kept_off_by_taints, selects_node, template_of
from rules.checks._exporters import exporter_sets, splits_shared
from rules.checks._kit import found, names, note, of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per exporter that serves shared GPUs without splitting them."""
    shared = [
        node
        for node in facts.gpu_nodes
        if node.sharing.mode in ("time-slicing", "mps") and (node.sharing.replicas or 2) > 1 and node.vendor == "nvidia"
    ]
    for item in exporter_sets(facts):
        ref = daemon_ref(item)
        yield ref
        if splits_shared(template_of(item)):
            continue
        nodes = [node for node in shared if selects_node(item, node) and not kept_off_by_taints(item, node)]
        if not nodes:
            continue
        yield found(
            Severity.LOW,
            ref,
            *(node.ref for node in nodes),
            identity=str(ref),
            notes=[note("on_nodes")],
            daemon_set=short(ref),
            daemon_set_namespace=ref.namespace,
            daemon_set_name=ref.name,
            nodes=of(names(node.ref for node in nodes)),
            mode=of(sorted({str(node.sharing.mode) for node in nodes}), nodes[0].sharing.source),
        )


RULE = Rule(
    id="metrics-shared-attribution",
    family="sharing",
    severity=Severity.LOW,
    seeds=("S15", "S17", "S23"),
    needs=("Node", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
