"""Multi-node jobs of which a part runs and a part cannot start."""

import msgspec

from rules.checks._kit import age
from rules.checks._pending import Waiting, waiting
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import WorkloadGroup
from rules.policy import Policy


class Partial(msgspec.Struct, frozen=True, kw_only=True):
    """A job half scheduled, without anything that starts all of it or none.

    Attributes:
        running: members that have a node and hold a GPU.
        stuck: members that have waited for a node for longer than the grace period.
        queues: why those wait.
        waited: seconds since the last of them was created.
    """

    group: WorkloadGroup
    running: tuple[PodFacts, ...]
    stuck: tuple[PodFacts, ...]
    queues: tuple[Waiting, ...]
    waited: float


def partial_gangs(facts: ClusterFacts, policy: Policy) -> tuple[Partial, ...]:
    """All of them; one for which nodes are on their way is left out."""
    grace = policy.pending_grace_seconds
    return facts.remember(f"partial gangs after {grace} s", lambda: _partial_gangs(facts, policy))


def _partial_gangs(facts: ClusterFacts, policy: Policy) -> tuple[Partial, ...]:
    queue_of = {ref: queue for queue in waiting(facts, policy) for ref in queue.refs}
    found = []
    for group in facts.workload_groups:
        running = tuple(pod for pod in group.pods if pod.holds_gpu)
        stuck = tuple(pod for pod in group.pods if pod.ref in queue_of)
        queues = tuple({queue_of[pod.ref].identity: queue_of[pod.ref] for pod in stuck}.values())
        if group.gang is not None or not running or not stuck:
            continue
        if any(queue.diagnosis.cause in ("gated", "scale_up") for queue in queues):
            continue
        waited = min(age(facts, pod.pod.metadata.creationTimestamp) or 0.0 for pod in stuck)
        found.append(Partial(group=group, running=running, stuck=stuck, queues=queues, waited=waited))
    return tuple(found)


def gpus_of(pods: tuple[PodFacts, ...]) -> dict[str, int]:
    """GPUs that the pods ask for, by resource."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.gpu_requests.items():
            total[name] = total.get(name, 0) + amount
    return total
