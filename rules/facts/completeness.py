"""Whether a snapshot holds all objects of a kind, or only some.

It matters: a GPU node whose pods are not all in the file looks idle. A kind counts as read completely when

* a list of it was written (``kubectl get pods -A``), or
* a file is a stream of several single objects (JSON Lines, YAML documents): somebody dumped a list object by object.

It counts as read in part, that is as unknown, when

* its objects stand alone (``kubectl get pod x -o json``), alone in a file or beside lists of other kinds. A node by
  itself counts as all nodes as long as no pod runs on another one: who writes down one node means that node. A resource
  of which a cluster has one (ClusterPolicy) counts as read, too;
* the list is known to be one namespace's: by its name (the GPU Operator's must-gather) or place
  (``namespaces/NAME/core/pods.yaml``, ``NAME/pods.json`` of ``kubectl cluster-info dump``), or because it holds
  nothing but the pods of the GPU Operator's own namespace;
* the objects contradict it: a GPU workload says that it has pods, and its namespace holds none.

``kubectl get pods -n NAME`` writes the same list as ``-A``, so the rest cannot be told.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec

from rules.facts.objects import OtherObject
from rules.facts.objectset import ObjectCollector, Objects
from rules.facts.resources import gpu_name

SINGLE_IS_ALL = frozenset({"Node", "ClusterPolicy", "ClusterVersion", "HyperConverged", "KubeVirt"})
"""Kinds of which one object by itself counts as all."""

OPERATOR_FILES = frozenset({"gpu_operand_pods", "gpu_operand_ds", "gpu_operator_pod"})
"""Files of NVIDIA/gpu-operator hack/must-gather.sh that hold objects of the operator's namespace only."""

_COUNTS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "active",
}
_FINISHED = ("Succeeded", "Failed")


def note_bare(found: ObjectCollector, kinds: Sequence[str], *, beside_lists: bool) -> None:
    """Note for objects outside lists, one entry per object, whether they tell all of their kind."""
    dump = len(kinds) > 1 and not beside_lists
    for kind in dict.fromkeys(kinds):
        if dump:
            found.saw(kind)
        else:
            found.saw_some(kind, "they stand by themselves, not in a list")


def of_place(objects: Objects, path: PurePosixPath) -> Objects:
    """The objects of one file, with kinds demoted that its place says to be one namespace's.

    Args:
        objects: of the file.
        path: of the file, below the folder or archive that was given.
    """
    if objects.nodes:
        return objects
    if path.name.partition(".")[0] in OPERATOR_FILES:
        return _demoted(objects, objects.kinds, f"{path.name} of a must-gather is about the operator's namespace only")
    namespaces = _namespaces(objects)
    if len(namespaces) == 1 and namespaces <= set(path.parts[:-1]):
        (namespace,) = namespaces
        return _demoted(objects, objects.kinds, f"{path} is about the namespace {namespace} only")
    return objects


def of_operator(objects: Objects) -> Objects:
    """The objects of one file, with pods demoted that are only those of the GPU Operator's own namespace."""
    if objects.kinds != {"Pod"} or len(_namespaces(objects)) != 1 or not any(map(_is_operator, objects.pods)):
        return objects
    (namespace,) = _namespaces(objects)
    return _demoted(objects, objects.kinds, f"the file holds only the pods of the namespace {namespace}")


def of_whole(objects: Objects) -> Objects:
    """All objects of a snapshot: single ones that tell all of their kind are taken so, and kinds are demoted that other
    objects show to be incomplete."""
    elsewhere = _pods_elsewhere(objects)
    single = {kind for kind in objects.partial if kind in SINGLE_IS_ALL and not (kind == "Node" and elsewhere)}
    partial = {kind: why for kind, why in objects.partial.items() if kind not in single}
    if "Node" in partial:
        partial["Node"] = f"pods run on {elsewhere}"
    objects = msgspec.structs.replace(objects, kinds=objects.kinds | single, partial=partial)
    lost = _workload_without_pods(objects)
    return _demoted(objects, ("Pod",), f"{lost} says that it has pods, and there is none") if lost else objects


def _demoted(objects: Objects, kinds: Iterable[str], why: str) -> Objects:
    fallen = {kind: why for kind in kinds if kind in objects.kinds}
    return msgspec.structs.replace(objects, kinds=objects.kinds - fallen.keys(), partial={**objects.partial, **fallen})


def _namespaces(objects: Objects) -> set[str]:
    found = {pod.metadata.namespace for pod in objects.pods} | {event.metadata.namespace for event in objects.events}
    found.update(item.metadata.namespace for items in objects.others.values() for item in items)
    return {namespace for namespace in found if namespace}


def _pods_elsewhere(objects: Objects) -> str:
    """A node that is not here and runs pods, and how many more; empty when there is none."""
    hosts = {
        pod.spec.nodeName
        for pod in objects.pods
        if pod.spec and pod.spec.nodeName and (pod.status is None or pod.status.phase not in _FINISHED)
    }
    others = sorted(hosts - {node.metadata.name for node in objects.nodes})
    return f"{others[0]}, which is not here" + (f", and {len(others) - 1} more" if others[1:] else "") if others else ""


def _is_operator(pod: Any) -> bool:
    labels: Mapping[str, str] = pod.metadata.labels or {}
    return "gpu-operator" in (labels.get("app"), labels.get("app.kubernetes.io/component"))


def _workload_without_pods(objects: Objects) -> str | None:
    """A GPU workload with running pods of which nothing is here: not even its namespace has a pod."""
    namespaces = {pod.metadata.namespace or "" for pod in objects.pods}
    for kind, count in _COUNTS.items():
        for item in objects.others.get(kind, ()):
            running = (item.status or {}).get(count)
            here = (item.metadata.namespace or "") in namespaces
            if not here and isinstance(running, int) and running > 0 and _asks_for_gpu(item):
                return f"{kind} {item.metadata.namespace}/{item.metadata.name}"
    return None


def _asks_for_gpu(workload: OtherObject) -> bool:
    template = (workload.spec or {}).get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else ():
        resources = container.get("resources") if isinstance(container, dict) else None
        limits = resources.get("limits") if isinstance(resources, dict) else None
        if isinstance(limits, dict) and any(gpu_name(str(name)) for name in limits):
            return True
    return False
