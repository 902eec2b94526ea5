"""A pod asks for an RDMA device and may not lock the memory that RDMA needs.

What:
    A GPU pod asks for a device that programs reach through InfiniBand verbs (``rdma/*``, network cards under
    ``nvidia.com``, ``mellanox.com``, ``openshift.io``), and none of its containers is privileged or has the capability
    IPC_LOCK. EFA and GKE's networks do not need it.

Why:
    RDMA registers memory with the card and locks it. Where the runtime limits locked memory (``ulimit -l``, 64 KB or
    8 MB by default), the registration fails with "Cannot allocate memory", or NCCL falls back to TCP.

Fix:
    Add the capability IPC_LOCK.

Source:
    seed S20; Mellanox/network-operator example/README.md; Mellanox/k8s-rdma-shared-dev-plugin example.

Seeds: S20
"""

from collections.abc import Iterator

from rules.checks._devices import lacks_ipc_lock
from rules.checks._kit import found, names, of, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.network import fast_network_requests, is_verbs_network
from rules.findings import Finding, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding]:
    """Yield one finding per workload."""
    unlocked = facts.gpu_pods_where("memory not locked", _unlocked)
    for workload, pods in by_workload(facts, unlocked).items():
        resources = sorted({name for pod in pods for name in fast_network_requests(pod.pod.spec)})
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in pods),
            identity=str(workload),
            workload=short(workload),
            kind=workload.kind,
            pods=of(names(pod.ref for pod in pods)),
            resources=of(resources, "spec.containers[].resources"),
        )


def _unlocked(pod: PodFacts) -> bool:
    if not (pod.gpu_requests or pod.dra_devices):
        return False
    return any(map(is_verbs_network, fast_network_requests(pod.pod.spec))) and lacks_ipc_lock(pod)


RULE = Rule(
    id="rdma-no-ipc-lock",
    family="network",
    severity=Severity.MEDIUM,
    seeds=("S20",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
    alone="Pod",
)
