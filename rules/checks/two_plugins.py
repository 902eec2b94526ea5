"""Two device plugins serve the same GPUs of a node.

What:
    Pods of two DaemonSets of device plugins for the same maker run on one node: a plugin installed by hand beside the
    operator's, the provider's beside NVIDIA's, HAMi's beside NVIDIA's.

Why:
    Both register the same resource with the kubelet and overwrite each other: the number of GPUs changes, pods are
    rejected, sharing set up in one does not hold in the other. It works until one of them restarts.

Fix:
    Keep one, and keep the other off these nodes.

Source:
    https://docs.coreweave.com/products/cks/nodes/gpu-driver-management/gpu-driver-management-cks; Kubernetes v1.36.2
    pkg/kubelet/cm/devicemanager (a new registration replaces the endpoint).

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._components import Layer, maker_of_pod, pods_of
from rules.checks._kit import found, names, note, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pair (or more) of DaemonSets that meet on nodes."""
    met: dict[tuple[ObjectRef, ...], list[NodeFacts]] = {}
    for node in facts.gpu_nodes:
        yield node.ref
        by_maker: dict[str, set[ObjectRef]] = {}
        for pod in pods_of(node, Layer.PLUGIN):
            if pod.controller is not None and pod.phase == "Running":
                ref = ObjectRef("DaemonSet", pod.ref.namespace, pod.controller.name)
                by_maker.setdefault(maker_of_pod(pod) or "", set()).add(ref)
        for serving in by_maker.values():
            if len(serving) > 1:
                met.setdefault(tuple(sorted(serving)), []).append(node)
    for sets, nodes in sorted(met.items()):
        yield found(
            Severity.MEDIUM,
            *sets,
            *(node.ref for node in nodes),
            identity=" ".join(map(str, sets)),
            notes=[note("on_nodes")],
            plugins=of(names(sets)),
            nodes=of(names(node.ref for node in nodes)),
            node=nodes[0].name,
            resources=of(
                sorted({item.name for node in nodes for item in node.resources if item.origin == "kubelet"}),
                "status.capacity",
            ),
        )


RULE = Rule(
    id="two-plugins",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
