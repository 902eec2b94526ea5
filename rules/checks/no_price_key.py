"""GPU nodes give nothing by which to look up their price.

What:
    A ready GPU node has neither an instance type (none, or a placeholder such as ``k3s``) nor a provider id of a cloud,
    and no contract price fits it.

Why:
    What idle GPUs cost is the argument that moves people. For owned or hand-joined machines no list has it, and a guess
    would be worse than nothing.

Fix:
    Give a price per hour for these nodes in the settings.

Source:
    seeds S23; kubernetes/api core/v1 well_known_labels.go; k3s writes ``k3s`` as instance type (public node listings).

Seeds: S23
"""

from collections.abc import Iterator

from rules.checks._kit import found, names
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_PLACEHOLDERS = frozenset({"", "k3s", "rke2", "unknown", "none", "bare-metal", "baremetal"})
_NO_CLOUD = ("k3s://", "rke2://", "kind://", "metal3://")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    nodes = []
    for node in facts.gpu_nodes:
        yield node.ref
        if node.ready is True and _without_key(node):
            nodes.append(node)
    if nodes:
        yield found(
            Severity.INFO,
            *refs(nodes),
            identity="gpu nodes without a price",
            nodes=names(refs(nodes)),
            products=sorted({node.product for node in nodes if node.product}),
            product=nodes[0].product or "GPU-MODEL",
        )


def _without_key(node: NodeFacts) -> bool:
    provider_id = (node.node.spec.providerID if node.node.spec else None) or ""
    nameless = (node.instance_type or "").lower() in _PLACEHOLDERS
    homeless = node.provider is None and (not provider_id or provider_id.startswith(_NO_CLOUD))
    return nameless and homeless and (node.price is None or node.price.basis != "contract")


RULE = Rule(
    id="no-price-key",
    family="billing",
    severity=Severity.INFO,
    seeds=("S23",),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
