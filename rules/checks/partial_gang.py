"""A multi-node job is half scheduled: its running pods hold GPUs and wait for those that find no node.

What:
    Of one JobSet, training job (PyTorchJob, MPIJob ...), LeaderWorkerSet replica, Ray cluster or Volcano job some pods
    run with GPUs and others have waited for a node longer than the grace period, and nothing starts all or none:
    default scheduler, no PodGroup, no Kueue.

Why:
    The workers that run stand at a barrier: paid GPUs compute nothing, and two such jobs can starve each other. High;
    medium for a Ray cluster, which can work with fewer workers.

Fix:
    Free the GPUs by suspending the job, then start it through a gang scheduler (Kueue, Volcano, coscheduling, KAI).

Source:
    seeds S10, S29; https://github.com/kubeflow/trainer/issues/948.

Seeds: S10, S29
"""

from collections.abc import Iterator

from rules.checks._kit import cost_note, found, gpus, names, note, of, seconds
from rules.checks._partial import Partial, gpus_of, partial_gangs
from rules.checks._scheduling import Obstacle
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.groups import TRAINING_KINDS
from rules.findings import Cost, Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per half scheduled job."""
    for item in partial_gangs(facts, policy):
        ref = item.group.ref
        yield ref
        cost = _cost(facts, item)
        yield found(
            Severity.MEDIUM if ref.kind == "RayCluster" else Severity.HIGH,
            ref,
            *(pod.ref for pod in (*item.running, *item.stuck)),
            remedy=_remedy(ref.kind),
            identity=f"{ref} {item.group.part}".strip(),
            cost=cost,
            notes=_notes(item, cost),
            job=f"{ref.kind} {ref.namespace}/{ref.name}",
            job_kind=ref.kind.lower(),
            job_namespace=ref.namespace,
            job_name=ref.name,
            running=of(names(pod.ref for pod in item.running)),
            stuck=of(names(pod.ref for pod in item.stuck)),
            expected=of(item.group.expected, "spec of the job"),
            gpus_held=gpus(sum(gpus_of(item.running).values())),
            gpus_missing=gpus(sum(gpus_of(item.stuck).values())),
            waited=seconds(item.waited, "metadata.creationTimestamp"),
        )


def _remedy(kind: str) -> str:
    if kind in TRAINING_KINDS:
        return "run_policy"
    return "suspend" if kind in ("JobSet", "RayCluster") else "default"


def _notes(item: Partial, cost: Cost | None) -> Iterator[Note]:
    nearest = [queue.diagnosis.nearest for queue in item.queues]
    kinds = {kind for view in nearest for kind in view.kinds}
    if kinds:
        at = names(node.ref for view in nearest for node in view.nodes)
        yield note("in_the_way", at=at, obstacles=[str(kind) for kind in Obstacle if kind in kinds])
    if cost is not None:
        yield cost_note(cost)


def _cost(facts: ClusterFacts, item: Partial) -> Cost | None:
    """What the GPUs that wait cost: the share of their nodes' price; None when a price or a number is unknown."""
    rate, basis = 0.0, None
    for pod in item.running:
        node = facts.node(pod.node_name or "")
        held = sum(pod.gpu_requests.values())
        if node is None or node.price is None or not node.physical_gpus or node.sharing.mode not in (None, "none"):
            return None
        rate += node.price.usd_hour * min(held / node.physical_gpus, 1)
        basis = basis or node.price
    if basis is None:
        return None
    return Cost(round(rate, 4), round(rate * item.waited / 3600, 2), basis.basis, basis.as_of, basis.source)


RULE = Rule(
    id="partial-gang",
    family="training",
    severity=Severity.HIGH,
    seeds=("S10", "S29"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
