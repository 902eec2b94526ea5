"""Pods wait for ever to be deleted on a node that does not answer.

What:
    A GPU pod was to be gone more than ten minutes ago (deletion time and grace period are over) and its node is not
    ready. Pods of one node are one finding.

Why:
    Only the kubelet of the node can confirm the end. Until then the GPU looks allocated, and a StatefulSet makes no
    replacement (high); a Deployment does (medium).

Fix:
    When the machine is certainly off, say so with the out-of-service taint or delete the pods by force.

Source:
    kubernetes/autoscaler cluster-autoscaler utils/drain/drain.go; kubernetes/api core/v1/well_known_taints.go
    (node.kubernetes.io/out-of-service).

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._dead import not_ready_for
from rules.checks._kit import age, found, names, note, of, owner_of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_LATE_SECONDS = 600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.nodes:
        yield node.ref
        if node.ready is not False:
            continue
        stuck = sorted((pod for pod in node.gpu_pods if _late(facts, pod)), key=lambda pod: pod.ref)
        if stuck:
            yield _finding(facts, node, stuck)


def _late(facts: ClusterFacts, pod: PodFacts) -> bool:
    """The deletion time that the API server sets holds the grace period already."""
    over = age(facts, pod.pod.metadata.deletionTimestamp)
    return over is not None and over >= _LATE_SECONDS and not pod.is_daemon


def _finding(facts: ClusterFacts, node: NodeFacts, pods: list[PodFacts]) -> Finding:
    blocked = [owner_of(pod) for pod in pods if pod.controller is not None and pod.controller.kind == "StatefulSet"]
    held = sum(sum(pod.gpu_requests.values()) for pod in pods)
    return found(
        Severity.HIGH if blocked else Severity.MEDIUM,
        *(pod.ref for pod in pods),
        node.ref,
        identity=str(node.ref),
        notes=[note("stateful", blocked=names(blocked))] if blocked else [],
        node=node.name,
        pods=of(names(pod.ref for pod in pods)),
        overdue=seconds(
            max(age(facts, pod.pod.metadata.deletionTimestamp) or 0 for pod in pods), "metadata.deletionTimestamp"
        ),
        lasts=seconds(not_ready_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
        held=of(held, "spec.containers[].resources"),
        pod_namespace=pods[0].ref.namespace,
        pod_name=pods[0].ref.name,
    )


RULE = Rule(
    id="terminating-pod-on-dead-node",
    family="health",
    severity=Severity.MEDIUM,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
