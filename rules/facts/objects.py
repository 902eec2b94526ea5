"""Kubernetes objects, trimmed to the fields that rules read.

Field names are spelled as Kubernetes spells them. Unknown fields are skipped while decoding, and `null` where Go prints
a nil map or list is accepted. Values stay as the API server wrote them; :mod:`rules.facts.cluster` derives facts.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Affinity: TypeAlias = dict[str, Any]
    PodResourceClaimStatus: TypeAlias = dict[str, Any]
    SchedulingGate: TypeAlias = dict[str, Any]
    SecurityContext: TypeAlias = dict[str, Any]
    UsedClaim: TypeAlias = dict[str, Any]
    Volume: TypeAlias = dict[str, Any]
else:
    from rules.facts.read_keys import (
        Affinity,
        PodResourceClaimStatus,
        SchedulingGate,
        SecurityContext,
        UsedClaim,
        Volume,
    )

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 time. One without a time zone is refused: it could not be compared with the others."""

Quantity = str | int | float
"""A resource quantity as written: "8", "500m", "64Gi"; YAML files may hold plain numbers."""


class Trimmed(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Base of all trimmed objects."""


class OwnerReference(Trimmed, frozen=True, gc=False):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Trimmed, frozen=True, gc=False):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None
    generation: int | None = None
    creationTimestamp: Time | None = None
    deletionTimestamp: Time | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None


class Condition(Trimmed, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    lastTransitionTime: Time | None = None
    lastHeartbeatTime: Time | None = None


class Taint(Trimmed, frozen=True, gc=False):
    key: str = ""
    value: str | None = None
    effect: str = ""
    timeAdded: Time | None = None


class NodeSpec(Trimmed, frozen=True, gc=False):
    providerID: str | None = None
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeSystemInfo(Trimmed, frozen=True, gc=False):
    kernelVersion: str | None = None
    osImage: str | None = None
    containerRuntimeVersion: str | None = None
    kubeletVersion: str | None = None
    operatingSystem: str | None = None
    architecture: str | None = None


class ContainerImage(Trimmed, frozen=True, gc=False):
    """An image that a node holds; the kubelet reports the 50 largest ones (nodeStatusMaxImages)."""

    names: list[str] | None = None
    sizeBytes: int | None = None


class NodeStatus(Trimmed, frozen=True, gc=False):
    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    conditions: list[Condition] | None = None
    nodeInfo: NodeSystemInfo | None = None
    images: list[ContainerImage] | None = None


class Node(Trimmed, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ResourceRequirements(Trimmed, frozen=True, gc=False):
    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: list[UsedClaim] | None = None


class EnvVar(Trimmed, frozen=True, gc=False):
    name: str = ""
    value: str | None = None


class VolumeMount(Trimmed, frozen=True, gc=False):
    name: str = ""
    mountPath: str = ""
    readOnly: bool | None = None


class Container(Trimmed, frozen=True, gc=False):
    name: str = ""
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    resources: ResourceRequirements | None = None
    restartPolicy: str | None = None
    securityContext: SecurityContext | None = None
    volumeMounts: list[VolumeMount] | None = None


class Toleration(Trimmed, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    tolerationSeconds: int | None = None


class PodResourceClaim(Trimmed, frozen=True, gc=False):
    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSpec(Trimmed, frozen=True, gc=False):
    nodeName: str | None = None
    nodeSelector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    resourceClaims: list[PodResourceClaim] | None = None
    volumes: list[Volume] | None = None
    schedulerName: str | None = None
    schedulingGates: list[SchedulingGate] | None = None
    priorityClassName: str | None = None
    runtimeClassName: str | None = None
    restartPolicy: str | None = None
    hostNetwork: bool | None = None
    hostIPC: bool | None = None
    terminationGracePeriodSeconds: int | None = None


class ContainerStateWaiting(Trimmed, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(Trimmed, frozen=True, gc=False):
    startedAt: Time | None = None


class ContainerStateTerminated(Trimmed, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None
    exitCode: int | None = None
    startedAt: Time | None = None
    finishedAt: Time | None = None


class ContainerState(Trimmed, frozen=True, gc=False):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Trimmed, frozen=True, gc=False):
    name: str = ""
    ready: bool | None = None
    started: bool | None = None
    restartCount: int | None = None
    image: str | None = None
    imageID: str | None = None
    state: ContainerState | None = None
    lastState: ContainerState | None = None


class PodStatus(Trimmed, frozen=True, gc=False):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    startTime: Time | None = None
    nominatedNodeName: str | None = None
    conditions: list[Condition] | None = None
    containerStatuses: list[ContainerStatus] | None = None
    initContainerStatuses: list[ContainerStatus] | None = None
    resourceClaimStatuses: list[PodResourceClaimStatus] | None = None


class Pod(Trimmed, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PodSpec | None = None
    status: PodStatus | None = None


class EventObject(Trimmed, frozen=True, gc=False):
    kind: str = ""
    namespace: str | None = None
    name: str = ""


class EventSource(Trimmed, frozen=True, gc=False):
    component: str | None = None


class EventSeries(Trimmed, frozen=True, gc=False):
    count: int | None = None
    lastObservedTime: Time | None = None


class Event(Trimmed, frozen=True, gc=False):
    """Core v1 or events.k8s.io/v1 Event: ``involvedObject``/``message`` or ``regarding``/``note``."""

    metadata: ObjectMeta
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    involvedObject: EventObject | None = None
    regarding: EventObject | None = None
    source: EventSource | None = None
    reportingComponent: str | None = None
    reportingController: str | None = None
    eventTime: Time | None = None
    firstTimestamp: Time | None = None
    lastTimestamp: Time | None = None
    count: int | None = None
    series: EventSeries | None = None


class OtherObject(Trimmed, frozen=True, gc=False):
    """Any other kind that rules read (DaemonSet, Deployment, Job, custom resources ...), as plain data.

    ``provisioner`` and ``parameters`` are those of a StorageClass, ``handler`` that of a RuntimeClass, ``value`` that
    of a PriorityClass. The data of Secrets is never kept.
    """

    metadata: ObjectMeta
    apiVersion: str = ""
    kind: str = ""
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    provisioner: str | None = None
    parameters: dict[str, Any] | None = None
    handler: str | None = None
    value: int | None = None
