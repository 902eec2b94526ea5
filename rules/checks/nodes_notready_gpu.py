"""A GPU node is not ready and still in the pool.

What:
    The condition Ready of a GPU node has been False or Unknown for more than 30 minutes. Nodes that joined by hand and
    have been silent for more than a day are likely gone and have a rule of their own.

Why:
    The machine is billed and takes no work; GPU nodes are seldom repaired automatically.

Fix:
    Look at the kubelet; reboot or replace the machine.

Source:
    aws/karpenter-provider-aws pkg/cloudprovider/cloudprovider.go (repair policies); Kubernetes documentation, node
    status.

Seeds: S2, S3
"""

from collections.abc import Iterator

from rules.checks._dead import NOT_READY_SECONDS, heartbeat, is_ghost, not_ready_for, silent
from rules.checks._kit import cost_note, cost_of, found, moment, names, note, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per GPU node that is not ready."""
    for node in facts.gpu_nodes:
        yield node.ref
        lasts = not_ready_for(facts, node)
        if lasts is None or lasts < NOT_READY_SECONDS or is_ghost(facts, node):
            continue
        cost = cost_of(node.price, lasts)
        stranded = [pod.ref for pod in node.gpu_pods if not pod.is_daemon]
        yield found(
            Severity.HIGH,
            node.ref,
            remedy="silent" if silent(node) else "default",
            identity=str(node.ref),
            cost=cost,
            notes=[*_notes(node, stranded), cost_note(cost)],
            node=node.name,
            lasts=seconds(lasts, "status.conditions[type=Ready].lastTransitionTime"),
            reason=of(_reason(node), "status.conditions[type=Ready].reason"),
            heartbeat=moment(heartbeat(node), "status.conditions[type=Ready].lastHeartbeatTime"),
            gpu=of(node.product),
            instance_type=of(node.instance_type),
            pods=of(names(stranded)),
        )


def _reason(node: NodeFacts) -> str | None:
    conditions = (node.node.status.conditions or []) if node.node.status else []
    return next((item.reason for item in conditions if item.type == "Ready"), None)


def _notes(node: NodeFacts, stranded: list[ObjectRef]) -> Iterator[Note]:
    yield note("silent" if silent(node) else "reports")
    if stranded:
        yield note("stranded")


RULE = Rule(
    id="nodes-notready-gpu",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2", "S3"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
