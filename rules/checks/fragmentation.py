"""GPUs enough are free for a waiting pod, but no single node has them.

What:
    The pod asks for several GPUs and has waited longer than the grace period. The nodes that it may use (ready,
    selected, tolerated, healthy and large enough) have together at least as many free as it asks for, and none has
    them alone. Free GPUs that it may not use do not count: broken, cordoned or tainted nodes cannot be defragmented.

Why:
    GPUs stand idle and the pod waits at the same time; one node must empty by chance. High.

Fix:
    Move the small pods together, and let the scheduler fill nodes up (``MostAllocated``) instead of spreading.

Source:
    seeds S14, S23; kubernetes v1.36.2 pkg/scheduler/framework/plugins/noderesources.

Seeds: S14, S23
"""

from collections.abc import Iterator

from rules.checks._kit import found, holders, names, of
from rules.checks._pending import about, by_nodes
from rules.checks._scheduling import free
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        name = queue.resource
        if name is None or len(queue.first.gpu_requests) != 1:
            continue
        wanted = queue.first.gpu_requests[name]
        if wanted < 2 or queue.fits.has_free:
            continue
        usable = queue.fits.full.nodes
        spare = {node.name: free(node, name) for node in usable if free(node, name)}
        if sum(spare.values()) < wanted:
            continue
        nodes = [node for node in usable if node.name in spare]
        best = max(nodes, key=lambda node: (spare[node.name], node.name))
        yield found(
            Severity.HIGH,
            *queue.refs,
            *(node.ref for node in nodes),
            identity=queue.identity,
            **about(facts, queue),
            wanted=wanted,
            free_total=of(sum(spare.values()), "allocatable minus requests of unfinished pods"),
            most_free=spare[best.name],
            spread=of([f"{node}: {amount}" for node, amount in sorted(spare.items())]),
            node=best.name,
            holders=of(names(pod.ref for pod in holders(best))),
        )


RULE = Rule(
    id="fragmentation",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S14", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
