"""A GPU node is past its expiry, and a PodDisruptionBudget keeps it.

What:
    A Karpenter GPU node is older than ``expireAfter`` of its NodeClaim (or NodePool), and a budget that allows no
    disruption selects pods on it.

Why:
    The node should have been replaced: it keeps its old image, drivers and security patches, takes no new pods while it
    drains, and is paid.

Fix:
    Let the budget allow one pod to go, or delete the pod at a time that suits its users.

Source:
    seeds S23; https://github.com/kubernetes-sigs/karpenter/issues/1776; kubernetes-sigs/karpenter
    pkg/apis/v1/nodepool.go (expireAfter).

Seeds: S23
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, names, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.scale_down import movable
from rules.facts.scaling import seconds_of
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        expires, lives = _expires(facts, node), age(facts, node.since)
        if expires is None or lives is None or lives <= expires:
            continue
        here = {pod.ref for pod in movable(node)}
        budgets = [item for item in facts.budgets if item.blocks and any(pod.ref in here for pod in item.pods)]
        if not budgets:
            continue
        pods = sorted({pod.ref for item in budgets for pod in item.pods if pod.ref in here})
        yield found(
            Severity.MEDIUM,
            node.ref,
            *(item.ref for item in budgets),
            *pods,
            identity=str(node.ref),
            node=node.name,
            lives=seconds(lives, "metadata.creationTimestamp"),
            expire_after=seconds(expires, "expireAfter of the NodeClaim or NodePool"),
            budgets=names(item.ref for item in budgets),
            pods=names(pods),
            pod_namespace=pods[0].namespace,
            pod_name=pods[0].name,
        )


def _expires(facts: ClusterFacts, node: NodeFacts) -> float | None:
    claim, pool = facts.scaling.claims.get(node.name), facts.scaling.pool(node)
    stated = (claim.spec or {}).get("expireAfter") if claim else None
    if stated is not None:
        return seconds_of(stated)
    return pool.expire_after if pool else None


RULE = Rule(
    id="pdb-on-expired-node",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S23",),
    needs=("Node", "Pod", "PodDisruptionBudget"),
    check=check,
    doc=__doc__ or "",
)
