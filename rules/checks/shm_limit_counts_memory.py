"""Shared memory of a GPU pod has no size limit of its own, or one that its memory limit cannot hold.

What:
    A container with GPUs mounts an emptyDir in memory at ``/dev/shm`` that has no ``sizeLimit``, or one as large as the
    container's memory limit or larger. Pods whose volume was too small for what they wrote (the kubelet's eviction,
    ``Usage of EmptyDir volume ... exceeds the limit``) are named as well.

Why:
    What is written to such a volume is memory of the container that wrote it. Without a limit it grows until the
    container is killed for its own memory limit (OOMKilled), which looks like a leak in the program; without a memory
    limit it can take the node's memory from everybody. Low; high once pods have been killed or evicted.

Fix:
    Set a sizeLimit, and a memory limit that holds the program and the volume.

Source:
    seed S10; https://github.com/kubernetes/kubernetes/issues/28272; Kubernetes documentation, volumes, emptyDir.

Seeds: S10
"""

from collections.abc import Iterator

from rules.checks._devices import SharedMemory, gpu_containers, mebi, shared_memory
from rules.checks._kit import Value, found, names, note, of, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts import marks
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.objects import Container
from rules.findings import Finding, Severity
from rules.policy import Policy

_EVICTED = "exceeds the limit"
_VOLUME = "EmptyDir volume"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding]:
    """Yield one finding per workload."""
    boundless = {pod.ref: pod for pod in facts.gpu_pods_where("boundless shared memory", _boundless)}
    for pod in facts.gpu_pods:
        if (pod.gpu_requests or pod.dra_devices) and not pod.is_daemon and _evicted(facts, pod):
            boundless[pod.ref] = pod
    for workload, pods in by_workload(facts, boundless.values()).items():
        evicted = [pod for pod in pods if _evicted(facts, pod)]
        killed = [pod for pod in pods if _oom(pod)]
        worst = next(filter(None, map(_worst, pods)), None)
        container, mount = worst or (next(gpu_containers(pods[0])), None)
        limit = mebi((container.resources.limits or {}).get("memory")) if container.resources else None
        notes = [note("evicted", evicted=of(names(pod.ref for pod in evicted)))] if evicted else []
        if killed:
            notes.append(note("killed", killed=of(names(pod.ref for pod in killed))))
        if limit is None:
            notes.append(note("no_memory_limit"))
        remedy = "too_small" if evicted and worst is None else "too_large" if mount and mount.size_mib else "default"
        yield found(
            Severity.HIGH if evicted or killed else Severity.LOW,
            *(pod.ref for pod in pods),
            remedy=remedy,
            notes=[note(remedy), *notes] if remedy != "default" else notes,
            identity=str(workload),
            workload=short(workload),
            kind=workload.kind,
            pods=of(names(pod.ref for pod in pods)),
            container=of(container.name),
            volume=of(mount.volume if mount else None, "spec.volumes[].emptyDir"),
            size_limit=Value(mount.size_mib if mount else None, "MiB", "spec.volumes[].emptyDir.sizeLimit"),
            memory_limit=Value(limit, "MiB", "spec.containers[].resources.limits.memory"),
        )


def _boundless(pod: PodFacts) -> bool:
    return bool(pod.gpu_requests or pod.dra_devices) and _worst(pod) is not None


def _worst(pod: PodFacts) -> tuple[Container, SharedMemory] | None:
    """The first GPU container whose shared memory has no limit, or more than its own memory."""
    spec = pod.pod.spec
    for container in gpu_containers(pod) if spec else ():
        mount = shared_memory(spec, container) if spec else None
        if mount is None or mount.kind != "memory":
            continue
        limit = mebi((container.resources.limits or {}).get("memory")) if container.resources else None
        if mount.size_mib is None or (limit is not None and mount.size_mib >= limit):
            return container, mount
    return None


def _evicted(facts: ClusterFacts, pod: PodFacts) -> bool:
    events = facts.events_of(pod.ref)
    if not events and not pod.marks & marks.SPEAKS:
        return False
    messages = [pod.pod.status.message if pod.pod.status else None]
    messages += [event.message or event.note for event in events]
    return any(text and _VOLUME in text and _EVICTED in text for text in messages)


def _oom(pod: PodFacts) -> bool:
    for status in (pod.pod.status.containerStatuses if pod.pod.status else None) or ():
        for state in (status.state, status.lastState):
            if state and state.terminated and state.terminated.reason == "OOMKilled":
                return True
    return False


RULE = Rule(
    id="shm-limit-counts-memory",
    family="training",
    severity=Severity.LOW,
    seeds=("S10",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
    alone="Pod",
)
