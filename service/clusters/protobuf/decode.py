"""Lists of nodes and pods in ``application/vnd.kubernetes.protobuf``, decoded straight into trimmed objects.

A body is the four bytes ``k8s\\0``, then a ``runtime.Unknown`` that names the kind and holds the list (apimachinery
pkg/runtime/serializer/protobuf). Objects come out as :mod:`rules.facts.trim` leaves those that came as JSON.

What makes it fast: pods are cut out of the page by the places of their fields (:mod:`.layout`), and bytes that were
seen before (a template's containers, the labels of its pods) are not decoded again but looked up. So the objects of one
template share their parts as well, which is what keeps a large cluster small.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from operator import methodcaller
from typing import Any

from google.protobuf.message import DecodeError
from msgspec.json import encode
from msgspec.structs import force_setattr

from rules.facts import objects, trim
from rules.facts.trim import Shelf
from service.clusters.protobuf import kubernetes_pb2 as pb
from service.clusters.protobuf import layout, template
from service.clusters.protobuf.remembered import Remembered, Times
from service.clusters.wire import PageInvalid

MAGIC = b"k8s\0"

_UNREAD_CONDITIONS = (b"\x0a\x0bInitialized", b"\x0a\x0fContainersReady", b"\x0a\x19PodReadyToStartContainers")
_UNREAD_LATER = (*_UNREAD_CONDITIONS, b"\x0a\x0cPodScheduled")
"""Conditions begin with their type. These need no decoding to be left out (see :func:`rules.facts.trim.keeps`)."""

_TEMPLATES = 8_000
"""Specs that are remembered at once, by 1 to 2 KB each; and as many of what metadata has in common."""

_READY = b"\x0a\x05Ready\x12\x04True\x1a\x00\x22"
_AS_EVER = frozenset({b"*\x00\x32\x00", b"*\x00\x32\x00\x38\x00"})
"""A condition that is true begins and ends like this: no probe, then its time, then neither reason nor message (nor,
since Kubernetes 1.33, a generation)."""

_Common = tuple[
    datetime | None, dict[str, str] | None, dict[str, str] | None, list[objects.OwnerReference] | None, bool
]
"""Deletion, labels, annotations, owners, and whether one of these is the DaemonSet that controls it."""

_copied = methodcaller("__copy__")


class Decoded:
    """A list whose objects are decoded as they are taken: its page token is known before.

    Attributes:
        resource_version: of the list.
        continue_token: of the next page; "" on the last one.
    """

    def __init__(self, metadata: Any, kind: str, raw: Iterable[Any], decode: Callable[[Any], Any]) -> None:
        self.resource_version: str = metadata.resourceVersion
        self.continue_token: str = metadata.continueToken
        self._kind, self._raw, self._decode = kind, raw, decode

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(self._raw):
            try:
                yield self._decode(item)
            except (DecodeError, ValueError, OverflowError) as error:
                raise PageInvalid(f"items[{number}]: expected a {self._kind}; {error}") from error


class ProtobufDecoder:
    """Decodes lists of nodes and pods; keep one for many pages, so that they share what they have in common."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._text: Remembered[str, str | None] = Remembered(shelf.text)
        self._namespace: Remembered[bytes, str | None] = Remembered(lambda raw: self._text[raw.decode()])
        self._time = Times()
        self._entry: Remembered[bytes, tuple[str, str]] = Remembered(self._read_entry)
        self._texts: Remembered[tuple[bytes, ...], dict[str, str] | None] = Remembered(self._read_texts)
        self._amounts: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_amounts)
        self._owners: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_owners)
        self._common: Remembered[bytes, _Common | None] = Remembered(self._read_common, _TEMPLATES)
        self._taint: Remembered[bytes, objects.Taint] = Remembered(self._read_taint)
        self._info: Remembered[bytes, objects.NodeSystemInfo] = Remembered(self._read_info)
        self._image: Remembered[bytes, objects.ContainerImage] = Remembered(self._read_image)
        self._specs: dict[tuple[int, bool, bytes], objects.PodSpec] = {}
        self._written: Remembered[str, bytes] = Remembered(lambda name: template.short_chunk(b"\x52", name.encode()))
        self._pin_field: Remembered[str, bytes] = Remembered(
            lambda name: template.short_chunk(b"\x92\x01", template.pin(name))
        )
        self._volumes: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_volumes)
        self._containers: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_containers)
        self._container: Remembered[bytes, objects.Container] = Remembered(self._read_container)
        self._resources: Remembered[bytes, Any] = Remembered(self._read_resources)
        self._tolerations: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_tolerations)
        self._affinity: Remembered[bytes, dict[str, Any] | None] = Remembered(
            lambda raw: self._read_affinity(raw, None)
        )
        self._claims: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_claims)
        self._gates: Remembered[tuple[bytes, ...], Any] = Remembered(self._read_gates)
        self._state: Remembered[bytes, objects.ContainerState | None] = Remembered(self._read_state)
        self._running: Remembered[bytes, objects.ContainerStatus | None] = Remembered(self._read_running)

    def page(self, kind: str, body: bytes) -> Decoded:
        """The list of ``kind`` (``Node``, ``Pod``) in ``body``.

        Raises:
            PageInvalid: it is none; also while it is iterated.
        """
        if body[:4] != MAGIC:
            raise PageInvalid(f"expected protobuf, found {body[:16]!r}")
        wanted = f"{kind}List"
        body, begin, end = layout.unwrapped(body, wanted)
        try:
            if kind == "Node":
                nodes = pb.NodeList.FromString(body[begin:end])
                return Decoded(nodes.metadata, kind, nodes.items, self._node)
            split = layout.items(body, begin, end)
            if split is not None:
                meta, places = split
                return Decoded(pb.ListMeta.FromString(meta), kind, places, lambda place: self._pod(body, *place))
            pods = pb.PodList.FromString(body[begin:end])
            return Decoded(pods.metadata, kind, pods.items, lambda raw: self._pod(raw, 0, len(raw)))
        except DecodeError as error:
            raise PageInvalid(f"raw: expected a {wanted}; {error}") from error

    def _node(self, node: Any) -> objects.Node:
        spec, status = node.spec, node.status
        taints, conditions, images = spec.taints, status.conditions, status.images
        return objects.Node(
            self._metadata(node.metadata),
            objects.NodeSpec(
                self._text[spec.providerID],
                spec.unschedulable or None,
                [self._taint[raw] for raw in taints] or None,
            )
            if node.HasField("spec")
            else None,
            objects.NodeStatus(
                self._amounts[tuple(status.capacity)],
                self._amounts[tuple(status.allocatable)],
                [self._read_condition(raw) for raw in conditions] or None,
                self._info[status.nodeInfo] if status.nodeInfo else None,
                [self._image[raw] for raw in images] or None,
            )
            if node.HasField("status")
            else None,
        )

    def _pod(self, body: bytes, begin: int, end: int) -> objects.Pod:
        parts = layout.pod(body, begin, end)
        if parts is not None:
            meta, meta_end, spec, spec_end, status = parts
            metadata, daemon = self._pod_metadata(body, meta, meta_end)
            return objects.Pod(
                metadata,
                self._spec_of(body[spec:spec_end], metadata, daemon=daemon),
                self._status(body, status, end),
            )
        pod = pb.Pod.FromString(body[begin:end])
        metadata, daemon = self._pod_metadata(pod.metadata, 0, len(pod.metadata))
        return objects.Pod(
            metadata,
            self._spec_of(pod.spec, metadata, daemon=daemon) if pod.HasField("spec") else None,
            self._status(pod.status, 0, len(pod.status)) if pod.HasField("status") else None,
        )

    def _pod_metadata(self, body: bytes, begin: int, end: int) -> tuple[objects.ObjectMeta, bool]:
        """Metadata, and whether a DaemonSet owns it: what is the pod's own read by its place, what pods of a template
        have in common looked up by its bytes."""
        head = layout.metadata_head(body, begin, end)
        if head is not None:
            name, space, uid, version, created, common_begin, common_end = head
            common = self._common[body[common_begin:common_end]]
            if common is not None:
                deleted, labels, annotations, owners, daemon = common
                return objects.ObjectMeta(
                    name.decode(),
                    self._namespace[space],
                    uid.decode(),
                    version.decode(),
                    None,
                    self._time[created],
                    deleted,
                    labels,
                    annotations,
                    owners,
                ), daemon
        read = self._metadata(pb.ObjectMeta.FromString(body[begin:end]))
        return read, _daemon(read.ownerReferences or ())

    def _read_common(self, raw: bytes) -> _Common | None:
        """What follows :data:`_HEAD`; None when it cannot be read without what was before and after it."""
        try:
            meta = pb.ObjectMeta.FromString(raw)
        except DecodeError:
            return None
        owners = self._owners[tuple(meta.ownerReferences)]
        return (
            self._time[meta.deletionTimestamp],
            self._texts[tuple(meta.labels)],
            self._texts[tuple(meta.annotations)],
            owners,
            bool(owners) and _daemon(owners),
        )

    def _metadata(self, meta: Any) -> objects.ObjectMeta:
        return objects.ObjectMeta(
            meta.name,
            self._text[meta.namespace],
            meta.uid or None,
            meta.resourceVersion or None,
            None,
            self._time[meta.creationTimestamp],
            self._time[meta.deletionTimestamp],
            self._texts[tuple(meta.labels)],
            self._texts[tuple(meta.annotations)],
            self._owners[tuple(meta.ownerReferences)],
        )

    def _spec_of(self, raw: bytes, metadata: objects.ObjectMeta, *, daemon: bool) -> objects.PodSpec:
        """The spec, looked up by its bytes without what pods of one template differ in: the node, the pin of a daemon
        to it, and the name of the token's volume."""
        name: str = pb.PodPlace.FromString(raw).nodeName
        written = self._written[name]
        at = raw.rfind(written) if written else -1
        if at < 0:
            return self._spec(pb.PodSpec.FromString(raw), metadata)
        common = raw[:at] + raw[at + len(written) :]
        if daemon:
            common = common.replace(self._pin_field[name], b"", 1)
        token = common.find(template.TOKEN_NAME)
        if token >= 0:
            common = common.replace(common[token + 2 : token + 23], template.NO_TOKEN)
        key = (at, daemon, common)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._spec(pb.PodSpec.FromString(raw), metadata)
            if template.placed_nowhere(common) and template.TOKEN_NAME[2:] not in encode(spec):
                if len(self._specs) >= _TEMPLATES:
                    self._specs.clear()
                self._specs[key] = spec
            return spec
        placed: objects.PodSpec = _copied(spec)
        force_setattr(placed, "nodeName", self._text[name])
        return placed

    def _spec(self, spec: Any, metadata: objects.ObjectMeta) -> objects.PodSpec:
        node = self._text[spec.nodeName]
        grace = spec.terminationGracePeriodSeconds
        affinity = spec.affinity
        return objects.PodSpec(
            node,
            self._texts[tuple(spec.nodeSelector)],
            self._affinity_of(affinity, metadata, node) if affinity else None,
            self._tolerations[tuple(spec.tolerations)],
            self._containers[tuple(map(template.neutral, spec.containers))],
            self._containers[tuple(map(template.neutral, spec.initContainers))],
            self._amounts[tuple(spec.overhead)],
            self._resources[spec.resources],
            self._claims[tuple(spec.resourceClaims)],
            self._volumes[tuple([raw for raw in spec.volumes if not template.holds_token(raw)])],
            self._text[spec.schedulerName],
            self._gates[tuple(spec.schedulingGates)],
            self._text[spec.priorityClassName],
            self._text[spec.runtimeClassName],
            self._text[spec.restartPolicy],
            spec.hostNetwork or None,
            spec.hostIPC or None,
            grace if grace or spec.HasField("terminationGracePeriodSeconds") else None,
        )

    def _affinity_of(self, raw: bytes, metadata: objects.ObjectMeta, node: str | None) -> dict[str, Any] | None:
        pinned = trim.daemon_node(metadata, node)
        if pinned is None:
            return self._affinity[raw]
        return self._read_affinity(raw, pinned) if raw != template.pin(pinned) else None

    def _status(self, body: bytes, begin: int, end: int) -> objects.PodStatus:
        running = layout.running(body, begin, end)
        if running is None:
            return self._any_status(pb.PodStatus.FromString(body[begin:end]))
        ready, started, containers = running
        return objects.PodStatus(
            "Running",
            None,
            None,
            self._time[started],
            None,
            [objects.Condition("Ready", "True", None, None, self._time[ready])],
            [self._container_status(raw) for raw in containers] or None,
        )

    def _any_status(self, status: Any) -> objects.PodStatus:
        text = self._text
        phase = text[status.phase]
        unread = _UNREAD_CONDITIONS if phase == "Pending" else _UNREAD_LATER
        conditions = [self._read_condition(raw) for raw in status.conditions if not raw.startswith(unread)]
        return objects.PodStatus(
            phase,
            text[status.reason],
            text[status.message],
            self._time[status.startTime],
            text[status.nominatedNodeName],
            [item for item in conditions if trim.keeps(item, phase)] or None,
            [self._container_status(raw) for raw in status.containerStatuses] or None,
            [self._container_status(raw) for raw in status.initContainerStatuses] or None,
            [self._read_claim_status(raw) for raw in status.resourceClaimStatuses] or None,
        )

    def _container_status(self, raw: bytes) -> objects.ContainerStatus:
        """Looked up by its bytes without what is its own, if it runs and never ended before."""
        split = layout.running_container(raw)
        known = None if split is None else self._running[split[0]]
        if split is None or known is None:
            return self._read_container_status(pb.ContainerStatus.FromString(raw))
        status: objects.ContainerStatus = _copied(known)
        since = objects.ContainerStateRunning(self._time[split[1]])
        force_setattr(status, "state", objects.ContainerState(None, since))
        return status

    def _read_running(self, raw: bytes) -> objects.ContainerStatus | None:
        """A container's status without state and ID; None when it still has one of them, or is no message."""
        try:
            item = pb.ContainerStatus.FromString(raw)
        except DecodeError:
            return None
        return None if item.HasField("state") or item.HasField("containerID") else self._read_container_status(item)

    def _read_container_status(self, item: Any) -> objects.ContainerStatus:
        ready, restarts = item.ready, item.restartCount
        return objects.ContainerStatus(
            self._text[item.name] or "",
            ready if ready or item.HasField("ready") else None,
            None,
            restarts if restarts or item.HasField("restartCount") else None,
            self._text[item.image],
            self._text[item.imageID],
            self._state[item.state],
            self._state[item.lastState],
        )

    def _read_entry(self, raw: bytes) -> tuple[str, str]:
        entry = pb.TextEntry.FromString(raw)
        return self._text[entry.key] or "", entry.value

    def _read_texts(self, raws: tuple[bytes, ...]) -> dict[str, str] | None:
        return dict(map(self._entry.__getitem__, raws)) or None

    def _read_amounts(self, raws: Iterable[bytes]) -> dict[str, objects.Quantity] | None:
        entries = map(pb.QuantityEntry.FromString, raws)
        return trim.quantities({entry.key: entry.value.string for entry in entries}, self._shelf)

    def _read_owners(self, raws: tuple[bytes, ...]) -> list[objects.OwnerReference] | None:
        owners = [
            objects.OwnerReference(
                self._text[each.apiVersion] or "",
                self._text[each.kind] or "",
                each.name,
                each.uid,
                each.controller if each.HasField("controller") else None,
            )
            for each in map(pb.OwnerReference.FromString, raws)
        ]
        return owners or None

    def _read_taint(self, raw: bytes) -> objects.Taint:
        taint = pb.Taint.FromString(raw)
        read = objects.Taint(taint.key, taint.value, taint.effect, self._time[taint.timeAdded])
        return self._shelf.share("taint", trim.tidy_taint(read))

    def _read_info(self, raw: bytes) -> objects.NodeSystemInfo:
        info = pb.NodeSystemInfo.FromString(raw)
        read = objects.NodeSystemInfo(*(getattr(info, name) for name in objects.NodeSystemInfo.__struct_fields__))
        return self._shelf.share("node info", trim.tidy_info(read))

    def _read_image(self, raw: bytes) -> objects.ContainerImage:
        image = pb.ContainerImage.FromString(raw)
        read = objects.ContainerImage(list(image.names), image.sizeBytes)
        return self._shelf.share("image", trim.tidy_image(read))

    def _read_condition(self, raw: bytes) -> objects.Condition:
        if len(raw) > 16 and raw.startswith(_READY):
            end = 17 + raw[16]
            if raw[end:] in _AS_EVER:
                return objects.Condition("Ready", "True", None, None, self._time[raw[17:end]])
        item = pb.Condition.FromString(raw)
        return objects.Condition(
            self._text[item.type] or "",
            self._text[item.status] or "",
            self._text[item.reason],
            self._text[item.message],
            self._time[item.lastTransitionTime],
            self._time[item.lastHeartbeatTime],
        )

    def _read_volumes(self, raws: tuple[bytes, ...]) -> list[dict[str, Any]] | None:
        return trim.shared_list("volumes", trim.tidy_volume, map(template.volume, raws), self._shelf)

    def _read_containers(self, raws: tuple[bytes, ...]) -> list[objects.Container] | None:
        return trim.shared_list("containers", lambda raw: self._container[raw], raws, self._shelf)

    def _read_container(self, raw: bytes) -> objects.Container:
        item = pb.Container.FromString(raw)
        context = item.securityContext
        secured: dict[str, Any] = {"capabilities": {"add": list(context.capabilities.add)}}
        if context.HasField("privileged"):
            secured["privileged"] = context.privileged
        read = objects.Container(
            name=item.name,
            image=item.image,
            command=list(item.command),
            args=list(item.args),
            env=[objects.EnvVar(each.name, each.value) for each in map(pb.EnvVar.FromString, item.env)],
            restartPolicy=item.restartPolicy,
            securityContext=secured,
            volumeMounts=[objects.VolumeMount(each.name, each.mountPath, each.readOnly) for each in item.volumeMounts],
            resources=self._resources[item.resources],
        )
        return trim.tidy_container(read, self._shelf)

    def _read_resources(self, raw: bytes) -> objects.ResourceRequirements | None:
        if not raw:
            return None
        item = pb.ResourceRequirements.FromString(raw)
        read = objects.ResourceRequirements(
            self._read_amounts(item.requests),
            self._read_amounts(item.limits),
            [{"name": each.name, "request": each.request} for each in item.claims],
        )
        return trim.tidy_resources(read, self._shelf)

    def _read_tolerations(self, raws: tuple[bytes, ...]) -> list[objects.Toleration] | None:
        read = (
            objects.Toleration(
                each.key,
                each.operator,
                each.value,
                each.effect,
                each.tolerationSeconds if each.HasField("tolerationSeconds") else None,
            )
            for each in map(pb.Toleration.FromString, raws)
        )
        return trim.shared_list("tolerations", trim.tidy_toleration, read, self._shelf)

    def _read_affinity(self, raw: bytes, daemon_node: str | None) -> dict[str, Any] | None:
        found = pb.Affinity.FromString(raw).nodeAffinity
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        read = {
            required: {
                "nodeSelectorTerms": [template.term(item) for item in getattr(found, required).nodeSelectorTerms]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": item.weight, "preference": template.term(item.preference)}
                for item in found.preferredDuringSchedulingIgnoredDuringExecution
            ],
        }
        tidy = trim.tidy_affinity({"nodeAffinity": read}, daemon_node)
        return self._shelf.share("affinity", tidy) if tidy else None

    def _read_claims(self, raws: tuple[bytes, ...]) -> list[objects.PodResourceClaim] | None:
        read = (
            objects.PodResourceClaim(each.name, each.resourceClaimName, each.resourceClaimTemplateName)
            for each in map(pb.PodResourceClaim.FromString, raws)
        )
        return trim.shared_list("claims", trim.tidy_claim, read, self._shelf)

    def _read_gates(self, raws: tuple[bytes, ...]) -> list[dict[str, Any]] | None:
        read = ({"name": pb.PodSchedulingGate.FromString(raw).name} for raw in raws)
        return trim.shared_list("gates", trim.without_nothing, read, self._shelf)

    def _read_claim_status(self, raw: bytes) -> dict[str, Any]:
        item = pb.PodResourceClaimStatus.FromString(raw)
        tidy: dict[str, Any] = trim.without_nothing({"name": item.name, "resourceClaimName": item.resourceClaimName})
        return tidy

    def _read_state(self, raw: bytes) -> objects.ContainerState | None:
        if not raw:
            return None
        if len(raw) > 4 and raw[0] == 0x12 and raw[1] == len(raw) - 2 and raw[2] == 0x0A and raw[3] == len(raw) - 4:
            return objects.ContainerState(running=objects.ContainerStateRunning(self._time[raw[4:]]))
        item = pb.ContainerState.FromString(raw)
        waiting, running, ended = item.waiting, item.running, item.terminated
        read = objects.ContainerState(
            objects.ContainerStateWaiting(waiting.reason, waiting.message) if item.HasField("waiting") else None,
            objects.ContainerStateRunning(self._time[running.startedAt]) if item.HasField("running") else None,
            objects.ContainerStateTerminated(
                ended.reason,
                ended.message,
                ended.exitCode if ended.HasField("exitCode") else None,
                self._time[ended.startedAt],
                self._time[ended.finishedAt],
            )
            if item.HasField("terminated")
            else None,
        )
        return trim.tidy_state(read, self._shelf)


def _daemon(owners: Iterable[objects.OwnerReference]) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in owners)
