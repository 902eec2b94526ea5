"""A pod that does not run keeps its GPUs reserved.

What:
    A pod is bound to a node and asks for GPUs, and one of its containers crashes again and again, or its image cannot
    be pulled, or its container cannot be made; more than five restarts, or half an hour old. What explains it wholly is
    told instead: shared memory that it died for want of, a GPU of another maker, a node without a working driver.

Why:
    The scheduler has given the GPUs away until the pod is deleted. They are paid for and nobody uses them, while the
    node counts as busy and other pods may wait.

Fix:
    Read the log of the last run and mend what it says; until then scale the workload to zero.

Source:
    seeds S19, S23; Kubernetes v1.36.2 pkg/kubelet/container/sync_result.go, pkg/kubelet/images/types.go (the reasons).

Seeds: S19, S23
"""

from collections.abc import Iterator

from rules.checks._components import Trouble, trouble
from rules.checks._devices import amounts, shm_crash
from rules.checks._kit import age, found, names, note, of, seconds, short
from rules.checks._workloads import by_workload, nodes_of
from rules.engine import Root, Rule, Symptom
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

RESTARTS = 5
OLD_SECONDS = 1800.0
_PULL = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName"})
_CREATE = frozenset({"CreateContainerError", "CreateContainerConfigError", "RunContainerError", "StartError"})
_POD_ROOTS = ("gpu-of-another-vendor",)
_NODE_ROOTS = (
    "allocatable-zero-driver",
    "driver-library-mismatch",
    "node-image-without-driver",
    "nodes-notready-gpu",
    "ghost-node",
)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | Symptom | ObjectRef]:
    """Yield one finding or symptom per workload."""
    failing: dict[ObjectRef, Trouble] = {}
    pods: list[PodFacts] = []
    for pod in facts.gpu_pods_where("trouble", trouble):
        yield pod.ref
        if pod.node_name is None or not (pod.gpu_requests or pod.dra_devices):
            continue
        bad = trouble(pod)
        old = age(facts, pod.pod.metadata.creationTimestamp)
        if bad and (bad.restarts > RESTARTS or (old is not None and old > OLD_SECONDS)):
            failing[pod.ref] = bad
            pods.append(pod)
    for workload, members in by_workload(facts, pods).items():
        finding = _finding(facts, workload, members, failing)
        roots = tuple(_roots(facts, members))
        yield Symptom(finding, roots) if roots else finding


def _finding(
    facts: ClusterFacts, workload: ObjectRef, pods: list[PodFacts], failing: dict[ObjectRef, Trouble]
) -> Finding:
    worst = max((failing[pod.ref] for pod in pods), key=lambda bad: bad.restarts)
    ages = [age(facts, pod.pod.metadata.creationTimestamp) for pod in pods]
    nodes = nodes_of(facts, pods)
    return found(
        Severity.HIGH,
        *(pod.ref for pod in pods),
        *(node.ref for node in nodes),
        remedy="pull" if worst.reason in _PULL else "create" if worst.reason in _CREATE else "default",
        notes=_notes(worst, facts),
        identity=str(workload),
        workload=short(workload),
        kind=workload.kind,
        pods=of(names(pod.ref for pod in pods)),
        pod_namespace=worst.pod.namespace,
        pod_name=worst.pod.name,
        container=worst.container,
        reason=of(worst.reason, "status.containerStatuses[].state"),
        restarts=of(worst.restarts, "status.containerStatuses[].restartCount"),
        held=of(amounts(pods), "requests of the pods"),
        oldest=seconds(max((item for item in ages if item is not None), default=None), "metadata.creationTimestamp"),
        nodes=of([node.name for node in nodes]),
    )


def _notes(worst: Trouble, facts: ClusterFacts) -> Iterator[Note]:
    if worst.message:
        said = " ".join(worst.message.split())
        yield note("said", said=of(said if len(said) <= 200 else f"…{said[-199:]}"))
    if facts.pending_gpu_pods:
        yield note("others_wait", others=of(names(pod.ref for pod in facts.pending_gpu_pods)))


def _roots(facts: ClusterFacts, pods: list[PodFacts]) -> Iterator[Root]:
    for pod in pods:
        yield Root(pod.ref, (*_POD_ROOTS, "shm-missing") if shm_crash(pod) else _POD_ROOTS)
    for node in nodes_of(facts, pods):
        yield Root(node.ref, _NODE_ROOTS)


RULE = Rule(
    id="crashloop-gpu",
    family="health",
    severity=Severity.HIGH,
    seeds=("S19", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
    alone="Pod",
)
