"""Facts about pods."""

from collections.abc import Iterable
from typing import Any

from rules.custom.scene import annotations_of, fact, labels_of
from rules.custom.types import BOOL, INT, STRING, TIMESTAMP, ListOf, MapOf, Shape
from rules.facts.model import PodFacts
from rules.facts.objects import Container, ContainerStatus
from rules.findings import ObjectRef


def _containers(pod: PodFacts) -> list[Container]:
    spec = pod.pod.spec
    return [*(spec.initContainers or ()), *(spec.containers or ())] if spec else []


def _statuses(pod: PodFacts) -> list[ContainerStatus]:
    status = pod.pod.status
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())] if status else []


def _waiting(pod: PodFacts) -> list[str]:
    states = (item.state.waiting for item in _statuses(pod) if item.state and item.state.waiting)
    return sorted({state.reason for state in states if state.reason})


def images_of(pods: Iterable[PodFacts]) -> list[str]:
    """Images of all containers, each once."""
    return sorted({item.image for pod in pods for item in _containers(pod) if item.image})


def _spec_text(name: str) -> Any:
    return lambda _, pod: (getattr(pod.pod.spec, name) or "") if pod.pod.spec else ""


REFERENCE = Shape(
    "owner",
    {
        "kind": fact(STRING, lambda _, ref: ref.kind, "for example `Deployment`; empty when there is none"),
        "name": fact(STRING, lambda _, ref: ref.name, "its name; empty when there is none"),
    },
)
_NOBODY = ObjectRef("", "", "")

CONTAINER = Shape(
    "container",
    {
        "name": fact(STRING, lambda _, item: item.name, "its name"),
        "image": fact(STRING, lambda _, item: item.image or "", "as the pod names it"),
        "command": fact(ListOf(STRING), lambda _, item: list(item.command or ()), "`command`; empty when it has none"),
        "args": fact(ListOf(STRING), lambda _, item: list(item.args or ()), "`args`; empty when it has none"),
        "env": fact(
            MapOf(STRING),
            lambda _, item: {each.name: each.value for each in item.env or () if each.value is not None},
            "variables with a value of their own; those that come from a Secret, ConfigMap or field are left out",
        ),
        "privileged": fact(
            BOOL, lambda _, item: (item.securityContext or {}).get("privileged") is True, "`securityContext.privileged`"
        ),
    },
)

POD_GPU = Shape(
    "pod.gpu",
    {
        "requested": fact(
            INT,
            lambda _, pod: sum(pod.gpu_requests.values()),
            "GPU units it asks for, over all GPU resources, as the scheduler counts them; 0 when it asks for none",
            unit="",
        ),
        "resources": fact(
            MapOf(INT), lambda _, pod: dict(pod.gpu_requests), 'the same by name, for example `{"nvidia.com/gpu": 2}`'
        ),
        "claim": fact(
            STRING,
            lambda _, pod: pod.other_gpu_claim or "",
            "how it may hold a GPU without such a request (`dra-claim`, `fraction-annotation`, `visible-devices` ...); "
            "empty when it does not",
        ),
        "holds": fact(BOOL, lambda _, pod: pod.holds_gpu, "whether it keeps a GPU on its node, in any of these ways"),
    },
)

POD = Shape(
    "pod",
    {
        "name": fact(STRING, lambda _, pod: pod.ref.name, "`metadata.name`"),
        "namespace": fact(STRING, lambda _, pod: pod.ref.namespace, "`metadata.namespace`"),
        "labels": fact(MapOf(STRING), lambda _, pod: labels_of(pod.pod.metadata), "`metadata.labels`"),
        "annotations": fact(MapOf(STRING), lambda _, pod: annotations_of(pod.pod.metadata), "`metadata.annotations`"),
        "created": fact(
            TIMESTAMP,
            lambda _, pod: pod.pod.metadata.creationTimestamp,
            "`metadata.creationTimestamp`",
            unit="date",
            maybe=True,
        ),
        "age_seconds": fact(
            INT,
            lambda scene, pod: scene.age(pod.pod.metadata.creationTimestamp),
            "since it was created",
            unit="s",
            maybe=True,
        ),
        "phase": fact(STRING, lambda _, pod: pod.phase, "`Pending`, `Running` or `Unknown`"),
        "node": fact(STRING, lambda _, pod: pod.node_name or "", "name of its node; empty while it has none"),
        "gpu": fact(POD_GPU, lambda _, pod: pod, "what it wants of GPUs"),
        "images": fact(ListOf(STRING), lambda _, pod: images_of([pod]), "images of all its containers, each once"),
        "containers": fact(
            ListOf(CONTAINER), lambda _, pod: _containers(pod), "init containers first, then the others"
        ),
        "owner": fact(
            REFERENCE, lambda _, pod: pod.controller or _NOBODY, "its controller, for example a ReplicaSet or a Job"
        ),
        "workload": fact(
            REFERENCE,
            lambda scene, pod: scene.workloads.of(pod) or _NOBODY,
            "what it comes from in the end: the Deployment of its ReplicaSet, the CronJob of its Job",
        ),
        "restarts": fact(
            INT,
            lambda _, pod: sum(item.restartCount or 0 for item in _statuses(pod)),
            "how often its containers were started again",
        ),
        "waiting": fact(
            ListOf(STRING), lambda _, pod: _waiting(pod), "why containers wait, for example `CrashLoopBackOff`"
        ),
        "priority_class": fact(STRING, _spec_text("priorityClassName"), "`spec.priorityClassName`; empty when none"),
        "scheduler": fact(STRING, _spec_text("schedulerName"), "`spec.schedulerName`; empty when none is named"),
        "runtime_class": fact(STRING, _spec_text("runtimeClassName"), "`spec.runtimeClassName`; empty when none"),
        "node_selector": fact(
            MapOf(STRING),
            lambda _, pod: dict((pod.pod.spec.nodeSelector or {}) if pod.pod.spec else {}),
            "`spec.nodeSelector`",
        ),
        "host_network": fact(
            BOOL, lambda _, pod: bool(pod.pod.spec and pod.pod.spec.hostNetwork), "`spec.hostNetwork`"
        ),
    },
)
