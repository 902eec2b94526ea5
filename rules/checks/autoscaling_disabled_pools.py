"""Nobody scales the GPU nodes down.

What:
    The provider's label or pool object says that the pool of a GPU node is of fixed size, or the cluster has neither
    cluster-autoscaler nor Karpenter. The latter is said only when it was looked for: Deployments were read, and with
    providers that run the autoscaler out of sight its status ConfigMap as well.

Why:
    A GPU node that is not needed any more stays until a person removes it. Low where the nodes are rented by the hour;
    information where they are machines of the team's own or a pool of fixed size by contract.

Fix:
    Switch on autoscaling with a minimum of 0, or agree on who removes idle nodes, and when.

Source:
    seeds S23, S24; oracle-terraform-modules/terraform-oci-oke (label of the node); docs.coreweave.com (targetNodes).

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note
from rules.checks._nodes import refs
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.scaling import karpenter_pool
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_REMEDY = {"oci": "oke", "coreweave": "coreweave", "aws": "aws"}


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    fixed, alone = [], []
    for node in facts.gpu_nodes:
        yield node.ref
        if karpenter_pool(node) is not None:
            continue
        if facts.scaling.switched_off(node):
            fixed.append(node)
        elif facts.scaling.absent and node.ready is True:
            alone.append(node)
    nodes = fixed or alone
    if not nodes:
        return
    yield found(
        Severity.INFO if all(_own(facts, node) for node in nodes) else Severity.LOW,
        *refs(nodes),
        identity="gpu nodes without autoscaling",
        notes=[note("fixed" if fixed else "nobody")],
        remedy=_REMEDY.get(nodes[0].provider or "", "default"),
        nodes=names(refs(nodes)),
        pools=sorted({node.pool for node in nodes if node.pool}),
        pool=nodes[0].pool or "POOL",
    )


def _own(facts: ClusterFacts, node: NodeFacts) -> bool:
    return node.provider is None or node.pool in facts.scaling.fixed_pools


RULE = Rule(
    id="autoscaling-disabled-pools",
    family="billing",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
