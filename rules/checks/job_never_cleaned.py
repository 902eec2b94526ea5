"""The GPU work of a pod is over and another container keeps its GPU; or finished Jobs pile up.

What:
    A pod runs on although every container that asked for a GPU has ended for good: a sidecar goes on. Or five or more
    GPU Jobs of a namespace ended more than a day ago, have no ``ttlSecondsAfterFinished``, and no CronJob that would
    clean up after them.

Why:
    A pod holds its GPUs until all of its containers have ended, whatever they do: the first is certain waste, and
    medium. Finished Jobs hold nothing, but their pods fill lists and the API server: low.

Fix:
    Make the sidecar an init container with ``restartPolicy: Always``, which ends with the pod; give Jobs a TTL.

Source:
    seeds S11, S23; kubernetes/component-helpers resource/helpers.go (a running pod counts in full);
    kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished and pods/sidecar-containers.

Seeds: S11, S23
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

from rules.checks._kit import age, found, gpus, names, note, seconds, short
from rules.checks._running import gpu_containers, gpu_work_ended
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.objects import OtherObject
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

MANY = 5
OLD_SECONDS = 24 * 3600
GRACE_SECONDS = 600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pod that goes on, and one per namespace where Jobs pile up."""
    for pod, ended in chain.from_iterable(map(_ended, facts.gpu_nodes)):
        yield pod.ref
        over = age(facts, ended)
        if over is not None and over >= GRACE_SECONDS:
            yield found(
                Severity.MEDIUM,
                pod.ref,
                notes=[note("sidecar", over=seconds(over, "status.containerStatuses[].state.terminated"))],
                remedy="sidecar",
                what=short(pod.ref),
                gpus=gpus(sum(pod.gpu_requests.values())),
                ended=gpu_containers(pod),
                running=_running(pod),
                pod_namespace=pod.ref.namespace,
                pod_name=pod.ref.name,
            )
    yield from _piles(facts)


def _ended(node: NodeFacts) -> list[tuple[PodFacts, datetime]]:
    """Pods of which the part that asked for a GPU is over, and since when."""
    return node.remember(
        "ended GPU work",
        lambda: [(pod, ended) for pod in node.gpu_pods if (ended := gpu_work_ended(pod)) is not None],
    )


def _running(pod: PodFacts) -> list[str]:
    statuses = (pod.pod.status.containerStatuses if pod.pod.status else None) or ()
    return [item.name for item in statuses if item.state and item.state.running]


def _piles(facts: ClusterFacts) -> Iterator[Finding]:
    piles: dict[str, list[ObjectRef]] = {}
    for job in facts.of_kind("Job", "batch"):
        if _left_behind(facts, job):
            namespace = job.metadata.namespace or ""
            piles.setdefault(namespace, []).append(ObjectRef("Job", namespace, job.metadata.name))
    for namespace, jobs in sorted(piles.items()):
        if len(jobs) >= MANY:
            yield found(
                Severity.LOW,
                *sorted(jobs),
                identity=f"jobs of {namespace}",
                notes=[note("pile", jobs=names(jobs))],
                what=namespace,
                namespace=namespace,
            )


def _left_behind(facts: ClusterFacts, job: OtherObject) -> bool:
    spec, status = job.spec or {}, job.status or {}
    if spec.get("ttlSecondsAfterFinished") is not None or job.metadata.ownerReferences:
        return False
    ended = [
        item.get("lastTransitionTime")
        for item in status.get("conditions") or ()
        if item.get("type") in ("Complete", "Failed") and item.get("status") == "True"
    ]
    since = _moment(ended[0]) if ended else None
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    limits = [(item.get("resources") or {}).get("limits") or {} for item in containers]
    gpu = any(gpu_name(name) for item in limits for name in item)
    return gpu and (age(facts, since) or 0) > OLD_SECONDS


def _moment(stamp: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(stamp)).astimezone(UTC)
    except ValueError:
        return None


RULE = Rule(
    id="job-never-cleaned",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S11", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
