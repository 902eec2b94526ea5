"""One part of the GPU software misses a toleration that its siblings have, so GPU nodes run without it.

What:
    A DaemonSet of the GPU software (driver, toolkit, validator, feature discovery, metrics, MIG manager ...) selects
    GPU nodes and does not tolerate one of their taints, while the device plugin of the same namespace does. The plugin
    itself has rules of its own.

Why:
    Without driver or toolkit the node offers no GPU (high); without exporter, feature discovery or MIG manager it has
    no metrics, no labels, no partitions (medium). A known fault of operators that were not installed by Helm.

Fix:
    Set the tolerations for all parts at once (``daemonsets.tolerations`` of the ClusterPolicy).

Source:
    https://github.com/NVIDIA/gpu-operator/issues/2717; NVIDIA/gpu-operator deployments/gpu-operator/values.yaml.

Seeds: S2, S5
"""

import re
from collections.abc import Iterator

from rules.checks._components import Layer, daemon_ref, daemon_sets, kept_off_by_taints, layer_of_set, selects_node
from rules.checks._kit import found, names, note, of, short, tolerations
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_OPERAND = re.compile(
    r"feature-discovery$|dcgm|metrics-exporter|operator-validator|mig-manager|node-status-exporter|mps-control-daemon"
    r"|node-labell?er|device-config-manager"
)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per DaemonSet that a taint keeps off GPU nodes which its siblings tolerate."""
    plugins = [item for item, _ in daemon_sets(facts, [Layer.PLUGIN])]
    for item in facts.others.get("DaemonSet", ()):
        layer = layer_of_set(item)
        siblings = [plugin for plugin in plugins if plugin.metadata.namespace == item.metadata.namespace]
        if not siblings or layer in (Layer.PLUGIN, Layer.DRA) or not (layer or _OPERAND.search(item.metadata.name)):
            continue
        ref = daemon_ref(item)
        yield ref
        nodes: list[ObjectRef] = []
        keys: set[str] = set()
        for node in facts.gpu_nodes:
            taints = kept_off_by_taints(item, node)
            if not taints or not selects_node(item, node):
                continue
            if any(selects_node(plugin, node) and not kept_off_by_taints(plugin, node) for plugin in siblings):
                nodes.append(node.ref)
                keys.update(taints)
        if nodes:
            yield _finding(item, layer, nodes, keys)


def _finding(item: OtherObject, layer: Layer | None, nodes: list[ObjectRef], keys: set[str]) -> Finding:
    ref = daemon_ref(item)
    return found(
        Severity.HIGH if layer in (Layer.DRIVER, Layer.TOOLKIT) else Severity.MEDIUM,
        ref,
        *nodes,
        identity=str(ref),
        notes=[note("on_nodes")],
        daemon_set=short(ref),
        daemon_set_namespace=ref.namespace,
        daemon_set_name=ref.name,
        nodes=of(names(nodes)),
        taints=of(sorted(keys), "spec.taints of the nodes, spec.template.spec.tolerations"),
        tolerations=tolerations(keys),
    )


RULE = Rule(
    id="operand-without-toleration",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S5"),
    needs=("Node", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
