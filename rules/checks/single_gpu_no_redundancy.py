"""One GPU node alone carries a service.

What:
    Exactly one ready node offers a GPU resource, a Deployment, StatefulSet or InferenceService serves from it, and no
    autoscaler is seen that would start another.

Why:
    Maintenance, an upgrade or a fault of this node is an outage of the service. That may be a fair price to pay, so
    this is information.

Fix:
    Nothing, if the outage is acceptable; else a second node, or an agreed way to start one.

Source:
    seeds S9, S28; https://github.com/ai-runway/airunway/issues/400.

Seeds: S9, S28
"""

from collections.abc import Iterator

from rules.checks._kit import found, names
from rules.checks._workloads import by_workload, serves
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node and cluster at most."""
    offering = [node for node in facts.gpu_nodes if any(item.allocatable for item in node.resources)]
    alive = [node for node in offering if node.ready is True]
    if len(alive) != 1:
        return
    node = alive[0]
    yield node.ref
    services = by_workload(facts, (pod for pod in node.gpu_pods if pod.phase == "Running" and serves(facts, pod)))
    if not services or _can_grow(facts, node):
        return
    yield found(
        Severity.INFO,
        node.ref,
        *services,
        identity=str(node.ref),
        node=node.name,
        services=names(services),
    )


def _can_grow(facts: ClusterFacts, node: NodeFacts) -> bool:
    manager, group = facts.scaling.manager(node), facts.scaling.group(node)
    return manager is not None and (group is None or group.maximum is None or group.maximum > 1)


RULE = Rule(
    id="single-gpu-no-redundancy",
    family="inference",
    severity=Severity.INFO,
    seeds=("S9", "S28"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
