"""What people know a pod by: the Deployment, the Notebook, the RayCluster behind it; and what kind of work it does."""

from collections.abc import Iterable, Iterator

from rules.checks._kit import owner_of
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.groups import rollout_marks
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

SERVING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "InferenceService", "LeaderWorkerSet"})
_NOTEBOOK_LABELS = ("notebook-name", "notebooks.kubeflow.org/name")


def find(facts: ClusterFacts, ref: ObjectRef) -> OtherObject | None:
    """The object behind a reference; None when it is not there or its kind was not read."""
    return facts.remember("objects by kind, namespace and name", lambda: _index(facts)).get(ref)


def _index(facts: ClusterFacts) -> dict[ObjectRef, OtherObject]:
    return {
        ObjectRef(kind, item.metadata.namespace or "", item.metadata.name): item
        for kind, items in facts.others.items()
        for item in items
    }


def owners(facts: ClusterFacts, pod: PodFacts) -> Iterator[ObjectRef]:
    """Controllers of the pod, the nearest first, as far up as objects were read."""
    if pod.controller is None:
        return
    ref = _deployment(facts, pod) or owner_of(pod)
    seen: set[ObjectRef] = set()
    while ref not in seen:
        yield ref
        seen.add(ref)
        item = find(facts, ref)
        above = next((own for own in (item.metadata.ownerReferences or () if item else ()) if own.controller), None)
        if above is None:
            return
        ref = ObjectRef(above.kind, ref.namespace, above.name)


def _deployment(facts: ClusterFacts, pod: PodFacts) -> ObjectRef | None:
    known = facts.deployment_of(pod)
    if known is not None or pod.controller is None or pod.controller.kind != "ReplicaSet":
        return known
    # Without the ReplicaSet and the label of its template, the name is a hint that a Deployment of that name confirms.
    guess = ObjectRef("Deployment", pod.ref.namespace, pod.controller.name.rpartition("-")[0])
    return guess if find(facts, guess) is not None else None


def workload(facts: ClusterFacts, pod: PodFacts) -> ObjectRef:
    """The nearest of them; the pod itself when it has none."""
    return next(iter(owners_of_alike(facts, pod)), pod.ref)


def owners_of_alike(facts: ClusterFacts, pod: PodFacts) -> tuple[ObjectRef, ...]:
    """:func:`owners`, worked out once for all pods of one controller."""
    if pod.controller is None:
        return ()
    known = facts.remember("owners by controller", dict[tuple[object, ...], tuple[ObjectRef, ...]])
    kind = pod.controller.kind
    # Beside its controller, a pod's labels tell where a ReplicaSet was not read.
    labels = rollout_marks(pod.pod.metadata.labels) if kind == "ReplicaSet" else None
    mark = (pod.ref.namespace, kind, pod.controller.name, labels)
    found = known.get(mark)
    if found is None:
        found = known[mark] = tuple(owners(facts, pod))
    return found


def is_notebook(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether the pod is somebody's notebook: Kubeflow and OpenShift workbenches, JupyterHub user servers."""
    labels = pod.pod.metadata.labels or {}
    if labels.get("component") == "singleuser-server" or any(labels.get(label) for label in _NOTEBOOK_LABELS):
        return True
    return any(ref.kind == "Notebook" for ref in owners_of_alike(facts, pod))


def serves(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether the pod is part of a service that runs on and on, and no notebook."""
    return workload(facts, pod).kind in SERVING and not is_notebook(facts, pod)


def by_workload(facts: ClusterFacts, pods: Iterable[PodFacts]) -> dict[ObjectRef, list[PodFacts]]:
    """Pods by what owns them, in order of the names."""
    found: dict[ObjectRef, list[PodFacts]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.ref.namespace, pod.ref.name)):
        found.setdefault(workload(facts, pod), []).append(pod)
    return found


def nodes_of(facts: ClusterFacts, pods: Iterable[PodFacts]) -> list[NodeFacts]:
    """GPU nodes that the pods are bound to, each once, by name."""
    found = {node.name: node for pod in pods if (node := facts.node(pod.node_name or "")) and node.is_gpu_node}
    return [found[name] for name in sorted(found)]
