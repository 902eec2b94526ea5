"""Which pods and DaemonSets are the GPU software of a node, and whether they work.

Told by names, labels and image paths (never by registry host: mirrors are common). Sources: NVIDIA/gpu-operator assets,
NVIDIA/k8s-device-plugin and ROCm/k8s-device-plugin manifests and charts, ROCm/gpu-operator, kubernetes-sigs/
dra-driver-nvidia-gpu charts, intel-device-plugins-for-kubernetes; read in the second half of 2026.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.objects import ContainerStatus, OtherObject, PodSpec, Toleration
from rules.findings import ObjectRef

from ._scheduling import selects, untolerated_taints


class Layer(StrEnum):
    """Layers of GPU software on a node, the lowest first."""

    DRIVER = "driver"
    TOOLKIT = "toolkit"
    PLUGIN = "plugin"
    DRA = "dra"


_VALIDATOR = re.compile(r"operator-validator")
_NAMES: tuple[tuple[Layer, re.Pattern[str]], ...] = (
    (Layer.DRA, re.compile(r"dra-driver.*kubelet-plugin|nvidia-dra-driver-kubelet-plugin")),
    (
        Layer.DRIVER,
        re.compile(r"^nvidia-driver-daemonset|^nvidia-gpu-driver-|driver-installer|-kmm-worker|amdgpu-driver"),
    ),
    (Layer.TOOLKIT, re.compile(r"container-toolkit")),
    (
        Layer.PLUGIN,
        re.compile(r"nvidia.*device-plugin(?!-mps)|gpu-device-plugin|amdgpu-(?:device-plugin|dp)|intel-gpu-plugin"),
    ),
)
_PLUGIN_IMAGE = re.compile(
    r"(?:nvidia/k8s-device-plugin|rocm/k8s-device-plugin|amdgpu-device-plugin|intel-gpu-plugin)(?:[:@]|$)"
)
_VALIDATES = {
    "driver-validation": Layer.DRIVER,
    "toolkit-validation": Layer.TOOLKIT,
    "cuda-validation": Layer.TOOLKIT,
    "plugin-validation": Layer.PLUGIN,
}
_FAILING = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "CreateContainerError",
        "CreateContainerConfigError",
        "RunContainerError",
        "InvalidImageName",
        "StartError",
    }
)


class Trouble(msgspec.Struct, frozen=True):
    """A container that does not run as it should.

    Attributes:
        reason: the waiting reason, or that of the last end.
        message: what it said when it last ended.
    """

    pod: ObjectRef
    container: str
    reason: str
    restarts: int
    message: str | None


def layer_of(name: str, labels: Mapping[str, str], images: Iterable[str]) -> Layer | None:
    """The layer that a DaemonSet or one of its pods serves; None for everything else. ``name`` is the DaemonSet's."""
    if labels.get("app.kubernetes.io/component") == "nvidia-driver":
        return Layer.DRIVER
    for layer, pattern in _NAMES:
        if pattern.search(name):
            return layer
    if "mps-control-daemon" not in name and any(_PLUGIN_IMAGE.search(image) for image in images):
        return Layer.PLUGIN
    return None


def pods_of(node: NodeFacts, layer: Layer) -> list[PodFacts]:
    """Pods of ``layer`` on the node."""
    return [pod for pod in node.pods if _pod_layer(pod) == layer]


def _pod_layer(pod: PodFacts) -> Layer | None:
    if pod.controller is not None and pod.controller.kind != "DaemonSet":
        return None
    name = pod.controller.name if pod.controller else pod.ref.name
    return layer_of(name, pod.pod.metadata.labels or {}, _images(pod.pod.spec))


def _images(spec: PodSpec | None) -> list[str]:
    return [item.image for item in (spec.containers if spec else None) or [] if item.image]


def waits_for(node: NodeFacts) -> tuple[PodFacts, Layer] | None:
    """The GPU Operator's validator on the node and the layer whose check does not end; None when all passed.

    Its init containers run in the order of the layers, so the first one that is not finished names the lowest layer.
    """
    for pod in node.pods:
        owner = pod.controller.name if pod.controller else pod.ref.name
        if not _VALIDATOR.search(owner) or pod.pod.status is None:
            continue
        for status in pod.pod.status.initContainerStatuses or []:
            ended = status.state.terminated if status.state else None
            if status.name in _VALIDATES and not (ended and ended.exitCode == 0):
                return pod, _VALIDATES[status.name]
    return None


def trouble(pod: PodFacts) -> Trouble | None:
    """The first container of the pod that fails; None when all run, are done or are still young."""
    status = pod.pod.status
    if status is None:
        return None
    for item in [*(status.initContainerStatuses or []), *(status.containerStatuses or [])]:
        waiting = item.state.waiting if item.state else None
        if waiting and waiting.reason in _FAILING:
            return Trouble(pod.ref, item.name, waiting.reason, item.restartCount or 0, last_words(item))
    return None


def last_words(status: ContainerStatus) -> str | None:
    """What a container said when it last ended."""
    for state in (status.state, status.lastState):
        if state and state.terminated and state.terminated.message:
            return state.terminated.message
    return None


def stuck(pod: PodFacts) -> bool:
    """Whether the pod has a container that is not ready (and none that has ended well)."""
    status = pod.pod.status
    if status is None or pod.terminal:
        return False
    return any(not item.ready for item in status.containerStatuses or [])


def daemon_sets(facts: ClusterFacts, layers: Iterable[Layer]) -> Iterator[tuple[OtherObject, Layer]]:
    """DaemonSets of the cluster that serve one of ``layers``."""
    wanted = set(layers)
    for item in facts.others.get("DaemonSet", ()):
        spec = _template(item)
        images = [str(container.get("image", "")) for container in spec.get("containers") or []]
        layer = layer_of(item.metadata.name, item.metadata.labels or {}, images)
        if layer in wanted:
            yield item, layer


def _template(item: OtherObject) -> Mapping[str, Any]:
    return ((item.spec or {}).get("template") or {}).get("spec") or {}


def daemon_ref(item: OtherObject) -> ObjectRef:
    """Reference to a DaemonSet."""
    return ObjectRef("DaemonSet", item.metadata.namespace or "", item.metadata.name)


def kept_off_by_taints(item: OtherObject, node: NodeFacts) -> tuple[str, ...]:
    """Keys of the node's taints that a DaemonSet does not tolerate. The DaemonSet controller adds tolerations for
    not-ready, unreachable, pressure and unschedulable nodes, so those never keep its pods off."""
    tolerations = msgspec.convert(_template(item).get("tolerations") or [], list[Toleration])
    return tuple(key for key in untolerated_taints(node, tolerations) if not key.startswith("node.kubernetes.io/"))


def selects_node(item: OtherObject, node: NodeFacts) -> bool:
    """Whether a DaemonSet's nodeSelector and required node affinity admit the node."""
    spec = msgspec.convert(
        {key: value for key, value in _template(item).items() if key in ("nodeSelector", "affinity")}, PodSpec
    )
    return selects(spec, node.name, node.labels)
