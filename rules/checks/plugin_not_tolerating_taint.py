"""The device plugin does not tolerate a taint of GPU nodes, so it never runs on them.

What:
    A DaemonSet of a device plugin selects GPU nodes that offer no GPU, and misses a toleration for one of their taints,
    and no other plugin serves them. Other GPU DaemonSets that the same taint keeps off are named.

Why:
    Charts tolerate ``nvidia.com/gpu`` (NVIDIA) or nothing (AMD's static manifest). A taint of your own or of the
    provider (spot pools) keeps the plugin off, silently: no pod, no event, and GPU pods wait for ever.

Fix:
    Add the toleration to the DaemonSet; pods that want the GPU are a different matter.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/421; NVIDIA/k8s-device-plugin deployments/helm values.yaml;
    ROCm/k8s-device-plugin k8s-ds-amdgpu-dp.yaml.

Seeds: S2, S5
"""

from collections.abc import Iterator

from rules.checks._components import Layer, daemon_ref, daemon_sets, kept_off_by_taints, selects_node
from rules.checks._kit import found, names, note, of, short, tolerations
from rules.checks._stack import barred_plugins
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per DaemonSet of a plugin that taints keep off nodes which never had it."""
    for item, barred in barred_plugins(facts, policy, registered=False):
        ref = daemon_ref(item)
        yield ref
        keys = sorted({key for _, cause in barred for key in cause.taints})
        nodes = [node for node, _ in barred]
        others = _also_kept_off(facts, nodes, ref)
        doubtful = all(node.gpu_evidence == "user-label" for node in nodes)
        yield found(
            Severity.MEDIUM if doubtful else Severity.HIGH,
            ref,
            *(node.ref for node in nodes),
            identity=str(ref),
            notes=[note("on_nodes"), *([note("others", others=others)] if others else [])],
            daemon_set=short(ref),
            daemon_set_namespace=ref.namespace,
            daemon_set_name=ref.name,
            nodes=of(names(node.ref for node in nodes)),
            taints=of(keys, "spec.taints of the nodes, spec.template.spec.tolerations"),
            tolerations=tolerations(keys),
        )


def _also_kept_off(facts: ClusterFacts, nodes: list[NodeFacts], plugin: ObjectRef) -> list[str]:
    """Further DaemonSets of the GPU software that select these nodes and that a taint keeps off."""
    return names(
        daemon_ref(item)
        for item, _ in daemon_sets(facts, Layer)
        if daemon_ref(item) != plugin
        and any(selects_node(item, node) and kept_off_by_taints(item, node) for node in nodes)
    )


RULE = Rule(
    id="plugin-not-tolerating-taint",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S5"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
