"""Workers of a multi-node job do not ask for the fast network that their nodes offer.

What:
    A job has two or more unfinished GPU pods that work together, and their nodes (for waiting pods: the GPU nodes that
    could take them) offer RDMA, InfiniBand or EFA devices. A worker asks for none, by resource, claim, attached network
    or privileged access to the host's devices, although it wants a whole node of at least 8 GPUs or its job runs on
    several nodes.

Why:
    Without the device, NCCL and RCCL fall back to TCP over the pod network, several times slower; all workers wait for
    the slowest, so one worker without it slows the whole job. Everything runs, so nothing complains.

Fix:
    Ask for the resource in every worker, together with what goes with it (IPC_LOCK; huge pages for EFA).

Source:
    seeds S20, S29; https://docs.coreweave.com/products/networking/hpc-interconnect/use-gpudirect-rdma;
    awsdocs/amazon-eks-user-guide latest/ug/ml/node-efa.adoc.

Seeds: S20, S29
"""

from collections.abc import Iterator

from rules.checks._devices import lacks_ipc_lock, reaches_fast_network
from rules.checks._gangs import Gang, gangs
from rules.checks._kit import found, names, note, of, short
from rules.checks._scheduling import selects
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.network import fast_network, fast_network_requests, is_verbs_network
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

BIG = 8


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per job."""
    fast_nodes = [node for node in facts.gpu_nodes if fast_network(node)]
    if not fast_nodes:
        return
    for gang in gangs(facts):
        yield gang.ref
        wide = len({pod.node_name for pod in gang.pods if pod.node_name}) > 1
        slow = [
            (pod, nodes)
            for pod in gang.pods
            if (wide or sum(pod.gpu_requests.values()) >= BIG)
            and not reaches_fast_network(pod)
            and (nodes := _nodes(facts, fast_nodes, pod))
        ]
        if slow:
            yield _finding(gang, slow)


def _nodes(facts: ClusterFacts, fast_nodes: list[NodeFacts], pod: PodFacts) -> list[NodeFacts]:
    """The pod's node, or those that it may come to, where all of them have the fast network; else none."""
    if pod.node_name is not None:
        return [node for node in fast_nodes if node.name == pod.node_name]
    spec = pod.pod.spec
    able = [
        node
        for node in facts.gpu_nodes
        if selects(spec, node.name, node.labels)
        and any(item.name in pod.gpu_requests and item.allocatable for item in node.resources)
    ]
    return able if able and all(fast_network(node) for node in able) else []


def _finding(gang: Gang, slow: list[tuple[PodFacts, list[NodeFacts]]]) -> Finding:
    pods = [pod for pod, _ in slow]
    offered = sorted({name for _, nodes in slow for node in nodes for name in fast_network(node)})
    asked = sorted({name for pod in gang.pods for name in fast_network_requests(pod.pod.spec)})
    bound = {node.ref for pod, nodes in slow for node in nodes if pod.node_name}
    resource = (asked or offered)[0]
    return found(
        Severity.MEDIUM,
        *(pod.ref for pod in pods),
        gang.ref,
        *sorted(bound),
        remedy="efa" if resource.endswith("/efa") else "default",
        notes=_notes(gang, pods, resource),
        identity=str(gang.ref),
        workload=short(gang.ref),
        kind=gang.ref.kind,
        pods=of(names(pod.ref for pod in pods)),
        offered=of(offered, "Node status.allocatable"),
        resource=resource,
        asked=of(asked, "requests of the other workers"),
        workers=of(len(gang.pods)),
    )


def _notes(gang: Gang, slow: list[PodFacts], resource: str) -> Iterator[Note]:
    others = [pod for pod in gang.pods if fast_network_requests(pod.pod.spec)]
    if others:
        yield note("others_ask", others=of(names(pod.ref for pod in others)))
    if is_verbs_network(resource) and all(lacks_ipc_lock(pod) for pod in slow):
        yield note("ipc_lock")


RULE = Rule(
    id="rdma-not-requested",
    family="network",
    severity=Severity.MEDIUM,
    seeds=("S20", "S29"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
