"""The device plugin's DaemonSet selects none of the GPU nodes that wait for it.

What:
    A DaemonSet of a device plugin wants no pod, although GPU nodes of its maker offer no GPU: its nodeSelector or
    affinity asks for labels that they do not carry. A DaemonSet that wants none because other nodes are meant, or that
    serves MPS, is left alone, and so is one whose nodes are kept from it by a taint or by feature discovery: those have
    rules of their own.

Why:
    "Desired 0" looks healthy everywhere. The nodes are paid and offer nothing.

Fix:
    Install node feature discovery, label the nodes, or widen the selector.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/315; NVIDIA/k8s-device-plugin deployments/helm values.yaml
    (affinity on feature.node.kubernetes.io/pci-10de.present, nvidia.com/gpu.present).

Seeds: S2, S3
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref, selector_labels, selects_node
from rules.checks._kit import found, names, note, of, short
from rules.checks._operator import paused_operands
from rules.checks._stack import Fault, broken_nodes, nfd_deadlocks
from rules.engine import Root, Rule, Symptom
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | Symptom | ObjectRef]:
    """Yield one finding per DaemonSet of a plugin that wants no pod while GPU nodes have none."""
    deadlocked = {node.name for _, stranded in nfd_deadlocks(facts, policy) for node, _ in stranded}
    idle: dict[ObjectRef, tuple[OtherObject, list[NodeFacts]]] = {}
    for node, cause in broken_nodes(facts, policy):
        if cause.fault == Fault.NOT_SELECTED and cause.daemon_set is not None and node.name not in deadlocked:
            idle.setdefault(daemon_ref(cause.daemon_set), (cause.daemon_set, []))[1].append(node)
    for ref, (item, nodes) in sorted(idle.items()):
        yield ref
        if _wanted(facts, item):
            continue
        finding = found(
            Severity.HIGH,
            ref,
            *(node.ref for node in nodes),
            identity=str(ref),
            notes=[note("on_nodes")],
            daemon_set=short(ref),
            daemon_set_namespace=ref.namespace,
            daemon_set_name=ref.name,
            nodes=of(names(node.ref for node in nodes)),
            node=nodes[0].name,
            selector=of(selector_labels(item), "spec.template.spec.nodeSelector, affinity"),
        )
        paused = all(paused_operands(node) for node in nodes)
        yield Symptom(finding, tuple(Root(node.ref, ("operands-paused",)) for node in nodes)) if paused else finding


def _wanted(facts: ClusterFacts, item: OtherObject) -> bool:
    """Whether the DaemonSet has nodes: by its status, else by the nodes that it selects."""
    desired = (item.status or {}).get("desiredNumberScheduled")
    return bool(desired) if isinstance(desired, int) else any(selects_node(item, node) for node in facts.nodes)


RULE = Rule(
    id="plugin-desired-zero",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
