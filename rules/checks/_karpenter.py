"""What rules ask of Karpenter's nodes and NodePools.

Source: kubernetes-sigs/karpenter pkg/apis/v1 and pkg/controllers/nodeclaim/lifecycle/initialization.go;
aws/karpenter-provider-aws and Azure/karpenter-provider-azure pkg/apis (labels); read in the second half of 2026.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.resources import gpu_name
from rules.facts.scaling import KarpenterPool
from rules.findings import ObjectRef

_GPU_KEY = re.compile(r"/instance-gpu-|/sku-gpu-|/instance-accelerator-|gpu\.present$|gpu\.product$")
_FAMILY_KEY = re.compile(r"/(?:instance|sku)-(?:family|category)$")
_GPU_FAMILY = re.compile(r"(?:g|p)(?:\d+[a-z]*)?\Z|gr\d+\Z|n(?:[cdv]\w*)?\Z", re.IGNORECASE)
_GPU_TYPE = re.compile(r"(?:g|gr|p)\d+[a-z]*\.|Standard_N[CDV]", re.IGNORECASE)


def claim_ref(facts: ClusterFacts, node: NodeFacts) -> ObjectRef | None:
    """The node's NodeClaim."""
    claim = facts.scaling.claims.get(node.name)
    return ObjectRef("NodeClaim", "", claim.metadata.name) if claim else None


def condition(facts: ClusterFacts, node: NodeFacts, name: str) -> Mapping[str, Any] | None:
    """A condition of the node's NodeClaim; None when there is none or claims were not read."""
    claim = facts.scaling.claims.get(node.name)
    found = ((claim.status or {}).get("conditions") or ()) if claim else ()
    return next((item for item in found if item.get("type") == name), None)


def stuck_startup_taints(facts: ClusterFacts, node: NodeFacts) -> tuple[str, ...]:
    """Startup taints of the NodePool or NodeClaim that are still on the node."""
    pool, claim = facts.scaling.pool(node), facts.scaling.claims.get(node.name)
    wanted = set(pool.startup_taints if pool else ())
    if claim is not None:
        wanted |= {str(item.get("key")) for item in (claim.spec or {}).get("startupTaints") or ()}
    taints = (node.node.spec.taints if node.node.spec else None) or []
    return tuple(dict.fromkeys(taint.key for taint in taints if taint.key in wanted))


def pool_nodes(facts: ClusterFacts, pool: KarpenterPool) -> list[NodeFacts]:
    """GPU nodes of a NodePool."""
    return [node for node in facts.gpu_nodes if facts.scaling.pool(node) is pool]


def requirements(pool: KarpenterPool) -> Iterator[tuple[str, str, list[str]]]:
    """Key, operator and values of what the NodePool demands of its nodes, its fixed labels included."""
    template = (pool.item.spec or {}).get("template") or {}
    for item in (template.get("spec") or {}).get("requirements") or ():
        yield str(item.get("key")), str(item.get("operator")), [str(value) for value in item.get("values") or ()]
    for key, value in ((template.get("metadata") or {}).get("labels") or {}).items():
        yield key, "In", [str(value)]


def wants_gpus(pool: KarpenterPool) -> bool:
    """Whether the NodePool is meant for GPU nodes: by its requirements or by a taint named like a GPU resource."""
    if any(gpu_name(key) for key in pool.taints):
        return True
    for key, operator, values in requirements(pool):
        if operator in ("Exists", "Gt") and _GPU_KEY.search(key):
            return True
        if operator == "In" and values:
            if _GPU_KEY.search(key) and values != ["0"]:
                return True
            if _FAMILY_KEY.search(key) and all(_GPU_FAMILY.match(value) for value in values):
                return True
            if key == "node.kubernetes.io/instance-type" and all(_GPU_TYPE.match(value) for value in values):
                return True
    return False
