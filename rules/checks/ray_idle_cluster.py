"""A RayCluster keeps its GPU workers whether there is work or not.

What:
    A RayCluster older than a day has GPU workers that it never gives up: its worker group has ``minReplicas`` of one or
    more and ``enableInTreeAutoscaling`` is not on; or the RayJob that made it is over and does not shut it down. A
    cluster that is suspended, or that a RayService or a running RayJob owns, is left alone.

Why:
    The workers hold their GPUs until somebody deletes the cluster. After a finished job that is certain waste, and
    medium. Else whether they work cannot be seen from objects: it is suspicious at most, and low.

Fix:
    Switch on autoscaling with ``minReplicas: 0``, or delete the cluster when the work is done.

Source:
    seeds S23, S24; ray-project/kuberay ray-operator apis/ray/v1.

Seeds: S23, S24
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.checks._kit import age, found, gpus, names, note, of, seconds, short
from rules.checks._workloads import find
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import whole
from rules.facts.objects import OtherObject
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LONG_SECONDS = 24 * 3600
_OVER = ("SUCCEEDED", "FAILED", "STOPPED")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per RayCluster."""
    workers: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        name = (pod.pod.metadata.labels or {}).get("ray.io/cluster")
        if name and pod.holds_gpu:
            workers.setdefault((pod.ref.namespace, name), []).append(pod)
    for item in facts.of_kind("RayCluster", "ray.io"):
        ref = ObjectRef("RayCluster", item.metadata.namespace or "", item.metadata.name)
        yield ref
        pods = workers.get((ref.namespace, ref.name), [])
        owner, over = _owner(facts, item)
        lives, spec = age(facts, item.metadata.creationTimestamp), item.spec or {}
        wasted = over and bool(pods)
        kept = owner is None and not spec.get("suspend") and (lives or 0) >= LONG_SECONDS and _never_shrinks(item, pods)
        if not wasted and not kept:
            continue
        yield found(
            Severity.MEDIUM if wasted else Severity.LOW,
            ref,
            *([owner] if owner else []),
            identity=str(ref),
            remedy="job" if wasted else "default",
            notes=[note("over" if wasted else "suspicious")],
            cluster=short(ref),
            owner=of(short(owner) if owner else None, "metadata.ownerReferences"),
            gpus=gpus(_gpus(item, pods)),
            pods=names(pod.ref for pod in pods),
            lives=seconds(lives, "metadata.creationTimestamp"),
            namespace=ref.namespace,
            name=ref.name,
        )


def _owner(facts: ClusterFacts, item: OtherObject) -> tuple[ObjectRef | None, bool]:
    """The RayJob or RayService that owns the cluster, and whether it is a job that is over and leaves it."""
    own = next((ref for ref in item.metadata.ownerReferences or () if ref.kind in ("RayJob", "RayService")), None)
    if own is None:
        return None, False
    ref = ObjectRef(own.kind, item.metadata.namespace or "", own.name)
    job = find(facts, ref) if own.kind == "RayJob" else None
    status, spec = (job.status or {}, job.spec or {}) if job else ({}, {})
    over = status.get("jobStatus") in _OVER or status.get("jobDeploymentStatus") in ("Complete", "Failed")
    return ref, over and not spec.get("shutdownAfterJobFinishes")


def _never_shrinks(item: OtherObject, pods: list[PodFacts]) -> bool:
    spec = item.spec or {}
    groups = spec.get("workerGroupSpecs") or ()
    fixed = [group for group in groups if (whole(group.get("minReplicas")) or 0) >= 1]
    told = [wants for group in fixed if (wants := _group_wants(group)) is not None]
    # Trimmed objects may lack the template; then status and pods tell whether GPUs are held.
    gpu = any(told) or (len(told) < len(fixed) and bool(_gpus(item, pods)))
    return gpu and spec.get("enableInTreeAutoscaling") is not True


def _group_wants(group: Mapping[str, Any]) -> bool | None:
    """Whether a worker group asks for GPUs; None when its template is not there."""
    containers = ((group.get("template") or {}).get("spec") or {}).get("containers")
    if not containers:
        return None
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    return any(gpu_name(name) for item in limits for name in item)


def _gpus(item: OtherObject, pods: list[PodFacts]) -> int | None:
    held = sum(sum(pod.gpu_requests.values()) for pod in pods)
    return held or whole((item.status or {}).get("desiredGPU"))


RULE = Rule(
    id="ray-idle-cluster",
    family="billing",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node", "Pod", "RayCluster"),
    check=check,
    doc=__doc__ or "",
)
