"""Which software for GPUs a cluster has, and whether it works: operators, plugins, schedulers, autoscalers.

The table is ``components`` of ``rules/data/components.json``, one row per line, each with its source and date. A
component shows in its DaemonSets, Deployments and StatefulSets (by name, label or image path; never by registry host:
mirrors are common), in its pods where those kinds were not read, in the objects and API groups that it brings, in nodes
and pods that it marks, and in events that it writes. Absent is said only when all that would show it was read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rules.facts import marks
from rules.facts.kinds import group_of
from rules.facts.objects import OtherObject, Pod
from rules.findings import ObjectRef

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts

_DATA = Path(__file__).parent.parent / "data" / "components.json"
_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
_NAME_LABELS = ("app.kubernetes.io/name", "app", "name", "k8s-app", "app.kubernetes.io/component")
_TEMPLATE_HASH = re.compile(r"-[a-z0-9]{6,10}\Z")
_POD_SUFFIX = re.compile(r"(?:-[4-9bcdf]{6,10})?-[a-z0-9]{1,5}\Z")
_WAITING_WELL = frozenset({"ContainerCreating", "PodInitializing"})


class Role(StrEnum):
    """What a component is for."""

    GPU_OPERATOR = "gpu-operator"
    DRIVER = "driver"
    CONTAINER_TOOLKIT = "container-toolkit"
    VALIDATOR = "validator"
    DEVICE_PLUGIN = "device-plugin"
    DRA_DRIVER = "dra-driver"
    FEATURE_DISCOVERY = "feature-discovery"
    GPU_METRICS = "gpu-metrics"
    SHARING = "sharing"
    NETWORK = "network"
    GANG_SCHEDULER = "gang-scheduler"
    TRAINING_OPERATOR = "training-operator"
    SERVING = "serving"
    POD_AUTOSCALER = "pod-autoscaler"
    NODE_AUTOSCALER = "node-autoscaler"
    TERMINATION_HANDLER = "termination-handler"
    NODE_HEALTH = "node-health"
    MONITORING = "monitoring"


class ComponentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one piece of software is recognised.

    Attributes:
        name: as its project writes it.
        workloads: patterns of whole names of its workloads, also met in their name labels.
        images: ends of its images' repository paths.
        groups: API groups that nobody else serves; kinds: objects (``group/Kind``) of groups that others share.
        schedulers: values of ``schedulerName`` that mean it.
        reporters: components that events of it name.
        node_labels: labels that only it puts on nodes.
        hosted: providers also run it outside the cluster, so that no workload of it needs to show.
        default_off: an API of Kubernetes that nobody has who did not switch it on; only its objects show it.
    """

    id: str
    name: str
    role: Role
    workloads: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    reporters: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ()
    hosted: bool = False
    default_off: bool = False
    source: str
    as_of: str


class _File(msgspec.Struct, frozen=True):
    components: tuple[ComponentRow, ...]


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of software in one cluster.

    Attributes:
        present: None when not all that would show it was read.
        healthy: its workloads are complete and its own status object says so; None when neither tells.
        shown_by: objects that show it, workloads first.
        troubled: those of them that are not as they should be.
    """

    row: ComponentRow
    present: bool | None
    healthy: bool | None
    shown_by: tuple[ObjectRef, ...] = ()
    troubled: tuple[ObjectRef, ...] = ()

    @property
    def id(self) -> str:
        """Id of the component in the table."""
        return self.row.id

    @property
    def name(self) -> str:
        """Its project's name."""
        return self.row.name


class Components(msgspec.Struct, frozen=True):
    """All components of the table as they are in one cluster."""

    by_id: Mapping[str, Component]

    def __getitem__(self, ident: str) -> Component:
        return self.by_id[ident]

    def of_role(self, role: Role | str) -> tuple[Component, ...]:
        """All of one role, present or not."""
        return tuple(item for item in self.by_id.values() if item.row.role == role)

    def present(self, role: Role | str) -> tuple[Component, ...]:
        """Those of one role that are there."""
        return tuple(item for item in self.of_role(role) if item.present)

    def has(self, role: Role | str) -> bool | None:
        """Whether one of that role is there; None when that is not certain."""
        answers = {item.present for item in self.of_role(role)}
        return True if True in answers else None if None in answers else False


class Seen(msgspec.Struct, frozen=True):
    """A workload of a component, by its own object or by a pod of it. ``rows`` are ids of the table."""

    ref: ObjectRef
    rows: tuple[str, ...]
    healthy: bool | None


class _Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What of a cluster may show a component."""

    workloads: tuple[Seen, ...]
    schedulers: Mapping[str, ObjectRef]
    reporters: Mapping[str, ObjectRef]
    objects: tuple[OtherObject, ...]


@cache
def component_rows() -> tuple[ComponentRow, ...]:
    """The table."""
    return msgspec.json.decode(_DATA.read_bytes(), type=_File).components


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.id, re.compile("|".join(row.workloads))) for row in component_rows() if row.workloads)


@cache
def _any_pattern() -> re.Pattern[str]:
    return re.compile("|".join(pattern for row in component_rows() for pattern in row.workloads))


@lru_cache(maxsize=16384)
def _rows_of_name(name: str) -> tuple[str, ...]:
    """Ids of the rows whose workloads are called so. Most names are nobody's: one look tells."""
    if _any_pattern().fullmatch(name) is None:
        return ()
    return tuple(ident for ident, pattern in _patterns() if pattern.fullmatch(name))


@lru_cache(maxsize=16384)
def _rows_of_image(image: str) -> tuple[str, ...]:
    return tuple(
        row.id for row in component_rows() if any(image == end or image.endswith(f"/{end}") for end in row.images)
    )


def components_of(facts: "ClusterFacts") -> Components:
    """Every component of the table as far as ``facts`` tell."""
    signs = _Signs(
        workloads=tuple(_workloads(facts)),
        schedulers=_schedulers(facts),
        reporters=_reporters(facts),
        objects=_custom_objects(facts),
    )
    return Components({row.id: _component(row, facts, signs) for row in component_rows()})


def is_component(name: str, labels: Mapping[str, str] | None = None, images: Iterable[str] = ()) -> str | None:
    """Id of the component that a workload of this name, labels and images belongs to; None for others."""
    return next(iter(_rows_of((name, *_label_names(labels)), tuple(map(repository, images)))), None)


@lru_cache(maxsize=16384)
def _rows_of(names: tuple[str, ...], images: tuple[str, ...]) -> tuple[str, ...]:
    found = [ident for name in names for ident in _rows_of_name(name)]
    if "mps_daemon" not in found:  # it shares the image of the device plugin
        found += [ident for image in images for ident in _rows_of_image(image)]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=16384)
def repository(image: str) -> str:
    """Repository path of an image, with its host but without tag and digest."""
    path = image.partition("@")[0]
    head, slash, last = path.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _component(row: ComponentRow, facts: "ClusterFacts", signs: _Signs) -> Component:
    workloads = [item for item in signs.workloads if row.id in item.rows]
    own = [item for item in signs.objects if group_of(item.apiVersion) in row.groups or _kind(item) in row.kinds]
    told = {ref_of(item): health for item in own if (health := status_health(item)) is not None}
    shown = [item.ref for item in workloads] + [ref_of(item) for item in own]
    shown += [signs.schedulers[name] for name in row.schedulers if name in signs.schedulers]
    shown += [signs.reporters[name] for name in row.reporters if name in signs.reporters]
    if not facts.node_labels.isdisjoint(row.node_labels):
        shown.append(next(node.ref for node in facts.nodes if any(label in node.labels for label in row.node_labels)))
    served = _served(row, facts)
    verdicts = [item.healthy for item in workloads] + list(told.values())
    troubled = [item.ref for item in workloads if item.healthy is False]
    troubled += [ref for ref, health in told.items() if not health]
    return Component(
        row=row,
        present=True if shown or served else None if served is None or not _workloads_known(row, facts) else False,
        healthy=False if False in verdicts else True if True in verdicts else None,
        shown_by=tuple(dict.fromkeys(shown)),
        troubled=tuple(dict.fromkeys(troubled)),
    )


def _served(row: ComponentRow, facts: "ClusterFacts") -> bool | None:
    """Whether the API server serves what the component brings; None when that was not read."""
    wanted = {*row.groups, *(kind.partition("/")[0] for kind in row.kinds)}
    if not wanted or row.default_off:
        return False
    if facts.knows("CustomResourceDefinition"):
        for item in facts.others.get("CustomResourceDefinition", ()):
            plural, _, group = item.metadata.name.partition(".")
            own = {kind.partition("/")[2].lower() for kind in row.kinds if kind.startswith(f"{group}/")}
            if group in row.groups or plural.removesuffix("s") in own or plural.removesuffix("ies") + "y" in own:
                return True
        return False
    groups = _api_groups(facts)
    if groups is None:
        return None
    if any(group in groups for group in row.groups):
        return True
    # A group that others serve as well does not tell, but whether its kinds could be listed does.
    shared = [kind.partition("/")[2] for kind in row.kinds if kind.partition("/")[0] in groups]
    absent = {item.kind for item in facts.unreadable if item.reason == "not-found"}
    if any(facts.knows(kind) for kind in shared):
        return True
    return False if absent.issuperset(shared) else None


def _api_groups(facts: "ClusterFacts") -> frozenset[str] | None:
    """API groups that are served: as the server said, or by the APIService objects of a snapshot."""
    if facts.api_groups is None and facts.knows("APIService"):
        return frozenset(str((item.spec or {}).get("group")) for item in facts.others.get("APIService", ()))
    return facts.api_groups


def _workloads_known(row: ComponentRow, facts: "ClusterFacts") -> bool:
    """Whether workloads of the component would have been seen."""
    if row.hosted:
        return False
    if not row.workloads:
        return True
    # Controllers and schedulers work only while they have a pod. A DaemonSet may wait without one.
    controls = bool(row.groups or row.kinds or row.schedulers)
    return facts.knows("Pod") and (controls or facts.knows("DaemonSet"))


def _workloads(facts: "ClusterFacts") -> Iterator[Seen]:
    for kind in _WORKLOADS:
        for item in facts.others.get(kind, ()):
            rows = facts.remember_of(item, "components", _rows_of_workload)
            if rows:
                yield Seen(ref_of(item), rows, workload_health(item))
    owners: set[ObjectRef] = set()
    met: set[tuple[str, str, str]] = set()
    told = {kind for kind in _WORKLOADS if facts.knows(kind)}
    if "Deployment" in told:
        told.add("ReplicaSet")
    for pod in facts.pods:
        if pod.terminal:
            continue
        if pod.controller is not None:
            if pod.controller.kind in told:
                continue
            # Pods of one controller have one owner.
            mark = (pod.ref.namespace, pod.controller.kind, pod.controller.name)
            if mark in met:
                continue
            met.add(mark)
        owner = _owner(pod.ref.namespace, pod.pod)
        if owner in owners or (owner.kind in _WORKLOADS and facts.knows(owner.kind)):
            continue
        owners.add(owner)
        spec = pod.pod.spec
        images = tuple(repository(item.image) for item in (spec.containers if spec else None) or () if item.image)
        own = (owner.name, _POD_SUFFIX.sub("", owner.name)) if owner.kind == "Pod" else (owner.name,)
        rows = _rows_of((*own, *_label_names(pod.pod.metadata.labels)), images)
        if rows:
            yield Seen(pod.ref, rows, _pod_health(pod.pod))


def _rows_of_workload(item: OtherObject) -> tuple[str, ...]:
    names = (item.metadata.name, *_label_names(item.metadata.labels))
    return _rows_of(names, tuple(map(repository, images_of(item))))


def _owner(namespace: str, pod: Pod) -> ObjectRef:
    for owner in pod.metadata.ownerReferences or ():
        if owner.controller:
            if owner.kind == "ReplicaSet":
                return ObjectRef("Deployment", namespace, _TEMPLATE_HASH.sub("", owner.name))
            return ObjectRef(owner.kind, namespace, owner.name)
    return ObjectRef("Pod", namespace, pod.metadata.name)


def _label_names(labels: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(labels[key] for key in _NAME_LABELS if labels.get(key)) if labels else ()


def _schedulers(facts: "ClusterFacts") -> Mapping[str, ObjectRef]:
    """A pod per scheduler, other than the default one, that has placed one: only then it is there, and not just asked
    for in vain."""
    found: dict[str, ObjectRef] = {}
    for pod in facts.marked(marks.SCHEDULED_ELSEWHERE):
        name = pod.pod.spec.schedulerName if pod.pod.spec else None
        if name and name not in found and pod.node_name is not None:
            found[name] = pod.ref
    return found


def _reporters(facts: "ClusterFacts") -> Mapping[str, ObjectRef]:
    found: dict[str, ObjectRef] = {}
    for event in facts.events:
        for name in (event.source.component if event.source else None, event.reportingComponent):
            if name and name not in found:
                found[name] = ObjectRef("Event", event.metadata.namespace or "", event.metadata.name)
    return found


def _custom_objects(facts: "ClusterFacts") -> tuple[OtherObject, ...]:
    return tuple(item for items in facts.others.values() for item in items if "." in group_of(item.apiVersion))


def _kind(item: OtherObject) -> str:
    return f"{group_of(item.apiVersion)}/{item.kind}"


def ref_of(item: OtherObject) -> ObjectRef:
    """Reference to an object."""
    return ObjectRef(item.kind, item.metadata.namespace or "", item.metadata.name)


def template_of(item: OtherObject) -> Mapping[str, Any]:
    """Pod spec in the template of a workload, as plain data; empty where there is none."""
    template = (item.spec or {}).get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    return spec if isinstance(spec, dict) else {}


def images_of(item: OtherObject) -> list[str]:
    """Images of the containers in the template of a workload."""
    containers = template_of(item).get("containers")
    return [
        str(container["image"])
        for container in (containers if isinstance(containers, list) else ())
        if isinstance(container, dict) and container.get("image")
    ]


def workload_health(item: OtherObject) -> bool | None:
    """Whether a DaemonSet, Deployment or StatefulSet has all its pods ready; None when its status does not say.

    A DaemonSet that no node selects is neither: the MPS daemon waits so for nodes that want it.
    """
    status, spec = item.status, item.spec or {}
    if not status:
        return None
    if item.kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled")
        ready = status.get("numberReady", 0)
    else:
        wanted, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
        if wanted == 0:
            return False
    if not isinstance(wanted, int) or not isinstance(ready, int) or wanted == 0:
        return None
    return ready >= wanted


def status_health(item: OtherObject) -> bool | None:
    """What an operator says of itself in its own object: ``status.state`` (NVIDIA ClusterPolicy, NicClusterPolicy) or a
    condition ``Ready`` (AMD DeviceConfig, NVIDIADriver); None for objects that do not speak of the component."""
    if item.kind not in ("ClusterPolicy", "NVIDIADriver", "GPUCluster", "NicClusterPolicy", "DeviceConfig"):
        return None
    status = item.status or {}
    state = str(status.get("state") or "").lower()
    if state in ("ready", "notready"):
        return state == "ready"
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return None


def _pod_health(pod: Pod) -> bool | None:
    statuses = (pod.status.containerStatuses if pod.status else None) or ()
    if not statuses:
        return None
    waiting = [item.state.waiting.reason for item in statuses if item.state and item.state.waiting]
    if any(reason not in _WAITING_WELL for reason in waiting):
        return False
    return True if all(item.ready for item in statuses) else None
