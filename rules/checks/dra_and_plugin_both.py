"""The same GPUs are handed out by the device plugin and by a DRA driver.

What:
    A node has allocatable GPUs from the device plugin and publishes whole GPUs of the same maker in a ResourceSlice,
    and no DeviceClass maps the resource name to DRA (``extendedResourceName``).

Why:
    Neither side knows what the other has given away: two pods get the same GPU. Medium while nobody holds a GPU in one
    of the ways, high when pods hold GPUs in both.

Fix:
    Decide per node: switch the plugin off there, or the DRA driver's GPU part.

Source:
    kubernetes-sigs/dra-driver-nvidia-gpu deployments/helm templates/validation.yaml; ROCm/gpu-operator
    docs/dra/dra-driver.md; kubernetes/api resource/v1 types.go.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per maker whose GPUs are handed out twice."""
    if any((item.spec or {}).get("extendedResourceName") for item in facts.of_kind("DeviceClass")):
        return
    makers: dict[str, list[NodeFacts]] = {}
    for node in facts.gpu_nodes:
        yield node.ref
        plugin = {item.vendor for item in node.resources if item.origin == "kubelet" and item.allocatable}
        whole = {item.vendor for item in node.resources if item.origin == "dra" and item.form == "device"}
        for vendor in plugin & whole:
            makers.setdefault(vendor, []).append(node)
    for maker, nodes in sorted(makers.items()):
        both = [node.ref for node in nodes if _held_both_ways(node, maker)]
        yield found(
            Severity.HIGH if both else Severity.MEDIUM,
            *(node.ref for node in nodes),
            remedy=maker if maker in ("nvidia", "amd") else "default",
            identity=maker,
            notes=[note("on_nodes"), *([note("both", both=names(both))] if both else [])],
            nodes=of(names(node.ref for node in nodes)),
            node=nodes[0].name,
            resources=of(
                sorted({item.name for node in nodes for item in node.resources if item.vendor == maker}),
                "status.allocatable, ResourceSlice",
            ),
        )


def _held_both_ways(node: NodeFacts, maker: str) -> bool:
    origins = {item.origin for item in node.resources if item.vendor == maker and item.requested}
    return len(origins) == 2


RULE = Rule(
    id="dra-and-plugin-both",
    family="sharing",
    severity=Severity.MEDIUM,
    seeds=("S2",),
    needs=("Node", "Pod", "ResourceSlice"),
    check=check,
    doc=__doc__ or "",
)
