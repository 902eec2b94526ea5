"""Feature discovery is kept off by the GPU taint, so the label that the device plugin waits for never comes.

What:
    GPU nodes offer no GPU and carry no label of node feature discovery (NFD). The plugin's DaemonSet (or the GPU
    Operator) selects nodes by such labels, so it wants no pod there. The NFD worker that would write them does not
    tolerate a taint of these nodes: the charts tolerate ``nvidia.com/gpu`` only with the value ``present``.

Why:
    Nothing fails: no pod, no event, a DaemonSet that wants zero pods. GPU pods wait for ever on nodes that are paid.

Fix:
    Let the NFD worker tolerate the taint, whatever its value.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/1934; NVIDIA/k8s-device-plugin deployments/helm values.yaml
    (nfd.worker.tolerations).

Seeds: S2, S3
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref, kept_off_by_taints, selects_node
from rules.checks._kit import found, names, note, of, short, tolerations
from rules.checks._stack import nfd_deadlocks
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per NFD worker that a taint keeps off GPU nodes without labels."""
    for worker, stranded in nfd_deadlocks(facts, policy):
        ref = daemon_ref(worker)
        yield ref
        nodes = [node for node, _ in stranded]
        plugins = {daemon_ref(cause.daemon_set) for _, cause in stranded if cause.daemon_set is not None}
        keys = {key for node in nodes if selects_node(worker, node) for key in kept_off_by_taints(worker, node)}
        yield found(
            Severity.HIGH,
            ref,
            *sorted(plugins),
            *(node.ref for node in nodes),
            identity=str(ref),
            notes=[note("on_nodes")],
            worker=short(ref),
            daemon_set_namespace=ref.namespace,
            daemon_set_name=ref.name,
            daemon_set=of(names(plugins)),
            nodes=of(names(node.ref for node in nodes)),
            taints=of(sorted(keys), "spec.taints of the nodes, spec.template.spec.tolerations"),
            tolerations=tolerations(keys),
        )


RULE = Rule(
    id="plugin-taint-deadlock-nfd",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
