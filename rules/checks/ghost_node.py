"""A node is listed whose machine is probably gone.

What:
    A GPU node has been silent (Ready is Unknown) for more than a day, and it joined by hand: its provider id is empty
    or made up by k3s, RKE2 or kind, so that no cloud controller removes the Node when the machine goes.

Why:
    Capacity and pods are counted that do not exist, and a bill cannot be concluded from it. Low: nothing else is broken
    by the entry itself; pods that are stuck on it have a rule of their own.

Fix:
    Look whether the machine exists; if not, delete the Node.

Source:
    Kubernetes documentation, node leases and node controller.

Seeds: S2, S3
"""

from collections.abc import Iterator

from rules.checks._dead import heartbeat, is_ghost, not_ready_for
from rules.checks._kit import found, moment, names, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per silent node that joined by hand."""
    for node in facts.gpu_nodes:
        yield node.ref
        if not is_ghost(facts, node):
            continue
        provider_id = node.node.spec.providerID if node.node.spec else None
        yield found(
            Severity.LOW,
            node.ref,
            identity=str(node.ref),
            node=node.name,
            lasts=seconds(not_ready_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
            heartbeat=moment(heartbeat(node), "status.conditions[type=Ready].lastHeartbeatTime"),
            provider_id=of(provider_id or "–", "spec.providerID"),
            pods=of(names(pod.ref for pod in node.pods if not pod.is_daemon)),
        )


RULE = Rule(
    id="ghost-node",
    family="health",
    severity=Severity.LOW,
    seeds=("S2", "S3"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
