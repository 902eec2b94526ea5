"""Workloads: what pods come from. Gathered from pods and from the objects of their controllers."""

from collections.abc import Iterator

import msgspec

from rules.facts.cluster import ClusterFacts
from rules.facts.groups import deployment_of, deployments_by_replica_set, rollout_marks
from rules.facts.model import PodFacts
from rules.facts.objects import ObjectMeta, OtherObject
from rules.findings import ObjectRef

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
"""Kinds whose objects are workloads also while they have no pod."""
MAX_LEVELS = 5
"""Of owners above a pod; more than real clusters have, and an end for owners in a ring."""


class Workload(msgspec.Struct, frozen=True):
    """A controller of pods that nothing else controls.

    Attributes:
        object: None when its object was not read.
        pods: its unfinished pods, in order of their names.
    """

    ref: ObjectRef
    object: OtherObject | None
    pods: tuple[PodFacts, ...]

    @property
    def metadata(self) -> ObjectMeta | None:
        """Of its object, where that was read."""
        return self.object.metadata if self.object else None


class Workloads:
    """All workloads of a cluster, in order of their names, and which pod comes from which."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._deployments = deployments_by_replica_set(facts.of_kind("ReplicaSet"))
        self._objects = {
            ObjectRef(item.kind or key, item.metadata.namespace or "", item.metadata.name): item
            for key, items in facts.others.items()
            for item in items
        }
        pods: dict[ObjectRef, list[PodFacts]] = {}
        known: dict[tuple[object, ...], list[PodFacts] | None] = {}
        for pod in facts.pods:
            if pod.terminal or pod.controller is None:
                continue
            # Beside its controller, a pod's labels tell where a ReplicaSet was not read.
            labels = pod.pod.metadata.labels if pod.controller.kind == "ReplicaSet" else None
            mark = (pod.ref.namespace, pod.controller.kind, pod.controller.name, rollout_marks(labels))
            if mark not in known:
                owner = self.of(pod)
                known[mark] = None if owner is None else pods.setdefault(owner, [])
            members = known[mark]
            if members is not None:
                members.append(pod)
        idle = (ref for ref, item in self._objects.items() if ref.kind in KINDS and _owner(item.metadata) is None)
        self._all = {
            ref: Workload(ref, self._objects.get(ref), tuple(sorted(pods.get(ref, ()), key=lambda pod: pod.ref)))
            for ref in sorted({*pods, *idle})
        }

    def __iter__(self) -> Iterator[Workload]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def get(self, ref: ObjectRef) -> Workload | None:
        """The workload that ``ref`` names."""
        return self._all.get(ref)

    def object(self, ref: ObjectRef) -> OtherObject | None:
        """The object that ``ref`` names, of any kind but Node, Pod and Event; None when it was not read."""
        return self._objects.get(ref)

    def owners(self, pod: PodFacts) -> list[ObjectRef]:
        """Controllers of a pod, the nearest first, as far up as the objects that were read tell; ReplicaSets of a
        Deployment are left out. Empty for a bare pod and for a static one, which its node owns."""
        if pod.controller is None or pod.controller.kind == "Node":
            return []
        ref = ObjectRef(pod.controller.kind, pod.ref.namespace, pod.controller.name)
        found = [deployment_of(pod, self._deployments) or ref]
        while len(found) < MAX_LEVELS:
            item = self._objects.get(found[-1])
            above = _owner(item.metadata) if item else None
            if above is None or above in found:
                break
            found.append(above)
        return found

    def of(self, pod: PodFacts) -> ObjectRef | None:
        """The topmost of :meth:`owners`: the Deployment, the CronJob of a Job, the JobSet of a Job; None for a bare
        pod."""
        owners = self.owners(pod)
        return owners[-1] if owners else None


def workloads_of(facts: ClusterFacts) -> Workloads:
    """The workloads of a cluster, gathered once."""
    return facts.remember("workloads", lambda: Workloads(facts))


def _owner(metadata: ObjectMeta) -> ObjectRef | None:
    for owner in metadata.ownerReferences or ():
        if owner.controller:
            return ObjectRef(owner.kind, metadata.namespace or "", owner.name)
    return None
