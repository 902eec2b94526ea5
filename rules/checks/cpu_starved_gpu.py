"""GPUs are free, but the CPU or memory of their node is used up.

What:
    A GPU pod has waited longer than the grace period, and on the nodes nearest to fitting it only CPU, memory or
    another resource is missing, which the node would have were it not for other pods. What a node never has is no
    starvation: then the pod asks for too much.

Why:
    The GPU is paid and stranded: pods without a GPU, or GPU pods with generous CPU requests, took what it needs. High.

Fix:
    Keep CPU pods off GPU nodes with a taint, and size CPU and memory requests by the share of GPUs that a pod takes.

Source:
    seeds S14, S23; kubernetes v1.36.2 pkg/scheduler/framework/plugins/noderesources/fit.go.

Seeds: S14, S23
"""

from collections.abc import Iterator
from decimal import Decimal

from rules.checks._kit import found, names, note, of
from rules.checks._pending import about, by_nodes
from rules.checks._scheduling import Fit, Obstacle, free
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.resources import all_requests, parse_quantity
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        if queue.diagnosis.cause != Obstacle.OTHER_RESOURCE or not queue.first.gpu_requests:
            continue
        lacking_something = queue.diagnosis.nearest.where(lambda group: group.lacking)
        starved = [item for item in lacking_something if _could_fit(queue.first, item)]
        if not starved:
            continue
        nodes = [item.node for item in starved]
        lacking = sorted({name for item in starved for name in item.lacking})
        takers = [pod for node in nodes for pod in _takers(node, lacking)]
        without = [pod for pod in takers if not pod.gpu_requests]
        yield found(
            Severity.HIGH,
            *queue.refs,
            *(node.ref for node in nodes),
            remedy="default" if without else "gpu_pods",
            identity=queue.identity,
            notes=[note("takers", takers=names(pod.ref for pod in without or takers))] if takers else [],
            **about(facts, queue),
            lacking=of(lacking, "allocatable minus requests of unfinished pods"),
            nodes=of(names(node.ref for node in nodes)),
            node=nodes[0].name,
            free=sum(free(node, name) for node in nodes for name in queue.first.gpu_requests),
        )


def _could_fit(pod: PodFacts, seen: Fit) -> bool:
    status = seen.node.node.status
    whole = (status.allocatable if status else None) or {}
    wanted = all_requests(pod.pod.spec) if pod.pod.spec else {}
    return all(wanted.get(name, Decimal(1)) <= (parse_quantity(whole.get(name, 0)) or 0) for name in seen.lacking)


def _takers(node: NodeFacts, lacking: list[str]) -> list[PodFacts]:
    """Pods that take most of what is missing, the largest first; those that come with the node are left out."""

    def taken(pod: PodFacts) -> Decimal:
        requests = all_requests(pod.pod.spec) if pod.pod.spec else {}
        return max((requests.get(name, Decimal(0)) for name in lacking), default=Decimal(0))

    pods = [pod for pod in node.pods if not pod.is_daemon and taken(pod)]
    return sorted(pods, key=lambda pod: (-taken(pod), pod.ref))[:5]


RULE = Rule(
    id="cpu-starved-gpu",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S14", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
