"""Nodes and pods as they are kept: in one normal form, without what no rule reads, equal parts held once.

Most pods of a large cluster have no GPU, and pods of one template differ in little but their names. So nothing is
thrown away by looking at a pod's node (one that has no GPU today may have one tomorrow); what pods have in common is
shared instead, and only this is dropped, of every pod:

- mounts other than the one at ``/dev/shm``, and volumes that hold neither local nor claimed storage (tokens,
  ConfigMaps, Secrets): rules look at shared memory, host paths, emptyDirs and claims;
- conditions other than ``Ready``, and ``PodScheduled`` once the pod is no longer pending;
- the node affinity by which the DaemonSet controller pins each pod to its node, once the pod is there: it repeats
  ``nodeName`` (Kubernetes documentation, DaemonSet, how daemon pods are scheduled);
- ``generation``, and whether a container has ``started``.

The normal form is what a Go server would print with ``omitempty``: empty text, lists and maps are None, and so is a
switch that is off where Kubernetes leaves it out; quantities are text. JSON and protobuf of one object have the same
normal form.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec

from rules.facts.objects import (
    Condition,
    Container,
    ContainerImage,
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    EnvVar,
    Node,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    Quantity,
    ResourceRequirements,
    Taint,
    Toleration,
    Trimmed,
    VolumeMount,
)

SHM = "/dev/shm"  # noqa: S108 - where Linux mounts shared memory, not a file of ours
_STORAGE = ("hostPath", "emptyDir", "persistentVolumeClaim", "ephemeral")

Value = TypeVar("Value")
_encode = msgspec.msgpack.Encoder().encode


class Shelf:
    """Gives equal values one object.

    Args:
        limit: values of one kind that are remembered; when there are more, they are forgotten and sharing starts anew.
    """

    def __init__(self, limit: int = 50_000) -> None:
        self._limit = limit
        self._kept: dict[str, dict[Any, Any]] = {}

    def text(self, value: str | None) -> str | None:
        """``value``, or the equal text that was seen before; None for an empty one."""
        return self.keyed("text", value, value) if value else None

    def time(self, value: datetime | None) -> datetime | None:
        """``value``, or the equal time that was seen before."""
        return None if value is None else self.keyed("time", value, value)

    def share(self, kind: str, value: Value) -> Value:
        """``value``, or the equal one that was seen before under ``kind``. Values of one kind have one type."""
        return self.keyed(kind, _encode(value), value)

    def keyed(self, kind: str, key: object, value: Value) -> Value:
        """What was put under ``key`` first: ``value``, if there is nothing yet."""
        kept = self._kept.get(kind)
        if kept is None:
            kept = self._kept[kind] = {}
        elif len(kept) >= self._limit:
            kept.clear()
        found: Value = kept.setdefault(key, value)
        return found


def trim_node(node: Node, shelf: Shelf) -> Node:
    """``node`` as it is kept."""
    spec, status = node.spec, node.status
    return Node(
        _metadata(node.metadata, shelf),
        spec
        and NodeSpec(
            providerID=spec.providerID or None,
            unschedulable=spec.unschedulable or None,
            taints=[shelf.share("taint", tidy_taint(item)) for item in spec.taints] if spec.taints else None,
        ),
        status
        and NodeStatus(
            capacity=quantities(status.capacity, shelf),
            allocatable=quantities(status.allocatable, shelf),
            conditions=[tidy_condition(item, shelf) for item in status.conditions] if status.conditions else None,
            nodeInfo=shelf.share("node info", tidy_info(status.nodeInfo)) if status.nodeInfo else None,
            images=[shelf.share("image", tidy_image(item)) for item in status.images] if status.images else None,
        ),
    )


def reusing(old: Value, new: Value) -> Value:
    """``new``, with every part that is equal to the same part of ``old`` taken from there: what two versions of an
    object have in common is held once, and so is what ``old`` shares with others."""
    if type(old) is not type(new):
        return new
    if old == new:
        return old
    if isinstance(new, Trimmed):
        return type(new)(*[reusing(getattr(old, name), getattr(new, name)) for name in new.__struct_fields__])
    if isinstance(new, list) and isinstance(old, list) and len(old) == len(new):
        return cast("Value", [reusing(*pair) for pair in zip(old, new, strict=True)])
    return new


def trim_pod(pod: Pod, shelf: Shelf) -> Pod:
    """``pod`` as it is kept."""
    metadata = _metadata(pod.metadata, shelf)
    return Pod(metadata, pod.spec and _spec(pod.spec, metadata, shelf), pod.status and _pod_status(pod.status, shelf))


def quantities(amounts: Mapping[str, Quantity] | None, shelf: Shelf) -> dict[str, Quantity] | None:
    """Amounts as text, shared."""
    if not amounts:
        return None
    kept: dict[str, Quantity] = {shelf.text(key) or "": shelf.text(str(each)) or "" for key, each in amounts.items()}
    return shelf.share("amounts", kept)


def texts(pairs: Mapping[str, str] | None, shelf: Shelf) -> dict[str, str] | None:
    """Labels, annotations and the like, shared."""
    if not pairs:
        return None
    return shelf.share("texts", {shelf.text(key) or "": shelf.text(each) or "" for key, each in pairs.items()})


def tidy_taint(taint: Taint) -> Taint:
    """In normal form."""
    return Taint(taint.key, taint.value or None, taint.effect, taint.timeAdded)


def tidy_condition(item: Condition, shelf: Shelf) -> Condition:
    """In normal form."""
    return Condition(
        shelf.text(item.type) or "",
        shelf.text(item.status) or "",
        shelf.text(item.reason),
        shelf.text(item.message),
        shelf.time(item.lastTransitionTime),
        shelf.time(item.lastHeartbeatTime),
    )


def keeps(condition: Condition, phase: str | None) -> bool:
    """Whether a pod's condition is kept: while the pod waits it is asked when it was placed, and later whether and
    since when it is ready."""
    return condition.type == "Ready" or (condition.type == "PodScheduled" and phase == "Pending")


def tidy_info(info: NodeSystemInfo) -> NodeSystemInfo:
    """In normal form."""
    return NodeSystemInfo(*(getattr(info, name) or None for name in info.__struct_fields__))


def tidy_image(image: ContainerImage) -> ContainerImage:
    """In normal form."""
    return ContainerImage(image.names or None, image.sizeBytes or None)


def tidy_container(container: Container, shelf: Shelf) -> Container:
    """In normal form, with the mount at ``/dev/shm`` alone."""
    context = container.securityContext
    return Container(
        name=container.name,
        image=shelf.text(container.image),
        command=container.command or None,
        args=container.args or None,
        env=[EnvVar(item.name, item.value or None) for item in container.env] if container.env else None,
        resources=tidy_resources(container.resources, shelf),
        restartPolicy=container.restartPolicy or None,
        securityContext=tidy_context(context) if context else None,
        volumeMounts=[
            VolumeMount(item.name, item.mountPath, item.readOnly or None)
            for item in container.volumeMounts or ()
            if item.mountPath.rstrip("/") == SHM
        ]
        or None,
    )


def tidy_context(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """A security context in normal form."""
    kept: dict[str, Any] = {}
    if context.get("privileged") is not None:
        kept["privileged"] = context["privileged"]
    added = (context.get("capabilities") or {}).get("add")
    if added:
        kept["capabilities"] = {"add": list(added)}
    return kept or None


def tidy_resources(resources: ResourceRequirements | None, shelf: Shelf) -> ResourceRequirements | None:
    """In normal form; None when nothing is asked for."""
    if resources is None:
        return None
    claims = [{key: each for key, each in item.items() if each} for item in resources.claims or ()]
    tidy = ResourceRequirements(
        quantities(resources.requests, shelf), quantities(resources.limits, shelf), claims or None
    )
    return tidy if tidy.requests or tidy.limits or tidy.claims else None


def tidy_toleration(item: Toleration) -> Toleration:
    """In normal form."""
    return Toleration(
        item.key or None, item.operator or None, item.value or None, item.effect or None, item.tolerationSeconds
    )


def tidy_volume(volume: Mapping[str, Any]) -> dict[str, Any] | None:
    """In normal form; None when it holds no storage that rules look at."""
    kept: dict[str, Any] = {}
    for source in _STORAGE:
        found = volume.get(source)
        if found is not None:
            kept[source] = {key: each for key, each in found.items() if each}
    size = (kept.get("emptyDir") or {}).get("sizeLimit")
    if size is not None:
        kept["emptyDir"]["sizeLimit"] = str(size)
    return {"name": volume.get("name") or "", **kept} if kept else None


def tidy_affinity(affinity: Mapping[str, Any], daemon_node: str | None) -> dict[str, Any] | None:
    """Node affinity in normal form; None when there is none.

    Args:
        daemon_node: node that a pod of a DaemonSet is bound to; the term that pins it there is left out.
    """
    pinned = {"nodeSelectorTerms": [{"matchFields": [pin(daemon_node)]}]} if daemon_node else None
    kept: dict[str, Any] = {}
    for name, value in (affinity.get("nodeAffinity") or {}).items():
        tidy = without_nothing(value)
        if tidy and tidy != pinned:
            kept[name] = tidy
    return {"nodeAffinity": kept} if kept else None


def pin(node: str) -> dict[str, Any]:
    """What the DaemonSet controller asks for, so that a pod runs on ``node`` and nowhere else."""
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def daemon_node(metadata: ObjectMeta, node: str | None) -> str | None:
    """``node`` when the pod's controller is a DaemonSet."""
    owners = metadata.ownerReferences
    return node if owners and any(owner.controller and owner.kind == "DaemonSet" for owner in owners) else None


def tidy_state(state: ContainerState | None, shelf: Shelf) -> ContainerState | None:
    """In normal form; None when it says nothing."""
    if state is None:
        return None
    waiting, ended = state.waiting, state.terminated
    tidy = ContainerState(
        waiting and ContainerStateWaiting(shelf.text(waiting.reason), shelf.text(waiting.message)),
        state.running,
        ended
        and ContainerStateTerminated(
            shelf.text(ended.reason), shelf.text(ended.message), ended.exitCode, ended.startedAt, ended.finishedAt
        ),
    )
    return tidy if tidy.waiting or tidy.running or tidy.terminated else None


def _metadata(metadata: ObjectMeta, shelf: Shelf) -> ObjectMeta:
    owners = metadata.ownerReferences
    return ObjectMeta(
        name=metadata.name,
        namespace=shelf.text(metadata.namespace),
        uid=metadata.uid or None,
        resourceVersion=metadata.resourceVersion or None,
        creationTimestamp=shelf.time(metadata.creationTimestamp),
        deletionTimestamp=metadata.deletionTimestamp,
        labels=texts(metadata.labels, shelf),
        annotations=texts(metadata.annotations, shelf),
        ownerReferences=shelf.share("owners", owners) if owners else None,
    )


def _spec(spec: PodSpec, metadata: ObjectMeta, shelf: Shelf) -> PodSpec:
    node = shelf.text(spec.nodeName)
    affinity = tidy_affinity(spec.affinity, daemon_node(metadata, node)) if spec.affinity else None
    return PodSpec(
        nodeName=node,
        nodeSelector=texts(spec.nodeSelector, shelf),
        affinity=shelf.share("affinity", affinity) if affinity else None,
        tolerations=shared_list("tolerations", tidy_toleration, spec.tolerations, shelf),
        containers=shared_list("containers", lambda item: tidy_container(item, shelf), spec.containers, shelf),
        initContainers=shared_list("containers", lambda item: tidy_container(item, shelf), spec.initContainers, shelf),
        overhead=quantities(spec.overhead, shelf),
        resources=tidy_resources(spec.resources, shelf),
        resourceClaims=shared_list("claims", tidy_claim, spec.resourceClaims, shelf),
        volumes=shared_list("volumes", tidy_volume, spec.volumes, shelf),
        schedulerName=shelf.text(spec.schedulerName),
        schedulingGates=shared_list("gates", without_nothing, spec.schedulingGates, shelf),
        priorityClassName=shelf.text(spec.priorityClassName),
        runtimeClassName=shelf.text(spec.runtimeClassName),
        restartPolicy=shelf.text(spec.restartPolicy),
        hostNetwork=spec.hostNetwork or None,
        hostIPC=spec.hostIPC or None,
        terminationGracePeriodSeconds=spec.terminationGracePeriodSeconds,
    )


def tidy_claim(item: PodResourceClaim) -> PodResourceClaim:
    """In normal form."""
    return PodResourceClaim(item.name, item.resourceClaimName or None, item.resourceClaimTemplateName or None)


def _pod_status(status: PodStatus, shelf: Shelf) -> PodStatus:
    conditions = [item for item in status.conditions or () if keeps(item, status.phase)]
    return PodStatus(
        phase=shelf.text(status.phase),
        reason=shelf.text(status.reason),
        message=shelf.text(status.message),
        startTime=shelf.time(status.startTime),
        nominatedNodeName=shelf.text(status.nominatedNodeName),
        conditions=[tidy_condition(item, shelf) for item in conditions] or None,
        containerStatuses=[_container_status(item, shelf) for item in status.containerStatuses or ()] or None,
        initContainerStatuses=[_container_status(item, shelf) for item in status.initContainerStatuses or ()] or None,
        resourceClaimStatuses=[without_nothing(item) for item in status.resourceClaimStatuses or ()] or None,
    )


def _container_status(item: ContainerStatus, shelf: Shelf) -> ContainerStatus:
    return ContainerStatus(
        name=shelf.text(item.name) or "",
        ready=item.ready,
        restartCount=item.restartCount,
        image=shelf.text(item.image),
        imageID=shelf.text(item.imageID),
        state=tidy_state(item.state, shelf),
        lastState=tidy_state(item.lastState, shelf),
    )


def shared_list(
    kind: str, tidy: Callable[[Any], Value | None], items: Iterable[Any] | None, shelf: Shelf
) -> list[Value] | None:
    """Items in normal form: equal lists are one list, equal items of different lists one item; None for no items."""
    kept = [shelf.share(f"one of {kind}", each) for each in map(tidy, items or ()) if each is not None]
    return shelf.share(kind, kept) if kept else None


def without_nothing(value: Any) -> Any:
    """Plain data without empty values, as a server that omits them prints it."""
    if isinstance(value, dict):
        kept = {key: without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {}, 0)}
    if isinstance(value, list):
        return [without_nothing(each) for each in value]
    return value
