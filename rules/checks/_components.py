"""Which pods and DaemonSets are the GPU software of a node, and whether they work.

Told by names, labels and image paths (never by registry host: mirrors are common). Sources: NVIDIA/gpu-operator assets,
NVIDIA/k8s-device-plugin and ROCm/k8s-device-plugin manifests and charts, ROCm/gpu-operator, kubernetes-sigs/
dra-driver-nvidia-gpu charts, intel-device-plugins-for-kubernetes; read in the second half of 2026.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from rules.facts import marks
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.objects import ContainerStatus, OtherObject, PodSpec
from rules.findings import ObjectRef

from ._scheduling import selects, untolerated_taints


class Layer(StrEnum):
    """Layers of GPU software on a node, the lowest first."""

    DRIVER = "driver"
    TOOLKIT = "toolkit"
    PLUGIN = "plugin"
    DRA = "dra"


_VALIDATOR = re.compile(r"operator-validator")
_NOT_PLUGIN = re.compile(r"feature-discovery|mps-control-daemon|labell?er|dcgm|exporter|sandbox|kata")
_NAMES: tuple[tuple[Layer, re.Pattern[str]], ...] = (
    (Layer.DRA, re.compile(r"dra-driver.*kubelet-plugin|nvidia-dra-driver-kubelet-plugin")),
    (
        Layer.DRIVER,
        re.compile(r"^nvidia-driver-daemonset|^nvidia-gpu-driver-|driver-installer|-kmm-worker|amdgpu-driver"),
    ),
    (Layer.TOOLKIT, re.compile(r"container-toolkit")),
    (
        Layer.PLUGIN,
        re.compile(
            r"nvidia.*device-plugin(?!-mps)|gpu-device-plugin|amdgpu-(?:device-plugin|dp)|intel-gpu-plugin"
            r"|hami-device-plugin"
        ),
    ),
)
_PLUGIN_IMAGE = re.compile(
    r"(?:nvidia/k8s-device-plugin|rocm/k8s-device-plugin|amdgpu-device-plugin|intel-gpu-plugin|projecthami/hami)(?:[:@](?!labell?er)|$)"
)
_MAKERS = (
    ("amd", re.compile(r"amd-?gpu|rocm/|amd-gpu")),
    ("intel", re.compile(r"intel")),
    ("nvidia", re.compile(r"nvidia|hami|k8s-driver-manager|dcgm")),
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

_LOOPS = 3
_COMPONENT = "app.kubernetes.io/component"
_PASSING = re.compile(
    r"^node\.kubernetes\.io/|^ToBeDeleted|^DeletionCandidate|^karpenter\.sh/|uninitialized|termination|startup"
    r"|unhealthy|xid|problem|quarantine|repair|remediation",
    re.IGNORECASE,
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
    """The layer that a DaemonSet or one of its pods serves; None for everything else. ``name`` is the DaemonSet's.

    The image tells a plugin better than the name: people rename. Feature discovery and the MPS daemon share the
    plugin's image, and are told by their names.
    """
    return _layer_of(name, labels.get(_COMPONENT), tuple(images))


@lru_cache(maxsize=4096)
def _layer_of(name: str, component: str | None, images: tuple[str, ...]) -> Layer | None:
    if component == "nvidia-driver":
        return Layer.DRIVER
    if _NOT_PLUGIN.search(name):
        return None
    if any(_PLUGIN_IMAGE.search(image) for image in images):
        return Layer.PLUGIN
    return next((layer for layer, pattern in _NAMES if pattern.search(name)), None)


@lru_cache(maxsize=4096)
def maker_of(name: str, images: tuple[str, ...]) -> str | None:
    """Whose GPUs a DaemonSet with this name and these images is for: ``nvidia``, ``amd`` or ``intel``."""
    texts = (*images, name)
    return next((maker for maker, pattern in _MAKERS if any(pattern.search(text) for text in texts)), None)


def maker_of_pod(pod: PodFacts) -> str | None:
    """Whose GPUs a pod of the GPU software is for."""
    return maker_of(owner_name(pod), tuple(_images(pod.pod.spec)))


def maker_of_set(item: OtherObject) -> str | None:
    """Whose GPUs a DaemonSet of the GPU software is for."""
    return maker_of(item.metadata.name, images_of(item))


def owner_name(pod: PodFacts) -> str:
    """Name of the pod's controller; its own where it has none."""
    return pod.controller.name if pod.controller else pod.ref.name


def pods_of(node: NodeFacts, layer: Layer) -> list[PodFacts]:
    """Pods of ``layer`` on the node."""
    return node.remember("layers", lambda: _by_layer(node)).get(layer, [])


def _by_layer(node: NodeFacts) -> dict[Layer, list[PodFacts]]:
    found: dict[Layer, list[PodFacts]] = {}
    for pod in node.pods:
        if pod.controller is not None and pod.controller.kind != "DaemonSet":
            continue
        labels, spec = pod.pod.metadata.labels, pod.pod.spec
        component = labels.get(_COMPONENT) if labels else None
        images = tuple([item.image for item in (spec.containers if spec else None) or () if item.image])
        layer = _layer_of(owner_name(pod), component, images)
        if layer is not None:
            found.setdefault(layer, []).append(pod)
    return found


def _images(spec: PodSpec | None) -> list[str]:
    return [item.image for item in (spec.containers if spec else None) or [] if item.image]


def waits_for(node: NodeFacts) -> tuple[PodFacts, Layer] | None:
    """The GPU Operator's validator on the node and the layer whose check does not end; None when all passed.

    Its init containers run in the order of the layers, so the first one that is not finished names the lowest layer.
    """
    for pod in node.remember("validators", lambda: _validators(node)):
        if pod.pod.status is None:
            continue
        for status in pod.pod.status.initContainerStatuses or []:
            ended = status.state.terminated if status.state else None
            if status.name in _VALIDATES and not (ended and ended.exitCode == 0):
                return pod, _VALIDATES[status.name]
    return None


def _validators(node: NodeFacts) -> list[PodFacts]:
    return [pod for pod in node.pods if _VALIDATOR.search(owner_name(pod))]


def trouble(pod: PodFacts) -> Trouble | None:
    """The first container of the pod that fails; None when all run, are done or are still young."""
    status = pod.pod.status
    if status is None:
        return None
    for item in chain(status.initContainerStatuses or (), status.containerStatuses or ()):
        waiting = item.state.waiting if item.state else None
        if item.ready and waiting is None:
            continue
        if waiting and waiting.reason in _FAILING:
            return Trouble(pod.ref, item.name, waiting.reason, item.restartCount or 0, last_words(item))
        reason = _looping(item)
        if reason:
            return Trouble(pod.ref, item.name, reason, item.restartCount or 0, last_words(item))
    return None


def _looping(status: ContainerStatus) -> str | None:
    """A container that is up or ended between two crashes of a loop, and so has no waiting reason just now."""
    if status.ready or (status.restartCount or 0) < _LOOPS:
        return None
    for state in (status.state, status.lastState):
        if state and state.terminated and state.terminated.exitCode:
            return state.terminated.reason or "Error"
    return None


def speaking(node: NodeFacts) -> list[PodFacts]:
    """Pods on the node of which there are words: see :func:`said_by`."""
    return node.remember(
        "speaking", lambda: [pod for pod in node.pods if pod.marks & marks.SPEAKS and any(said_by(pod))]
    )


def said_by(pod: PodFacts) -> Iterator[str]:
    """What the pod's containers said when they last ended, why they wait, and what the kubelet says of the pod."""
    status = pod.pod.status
    if status is None:
        return
    for item in [*(status.initContainerStatuses or []), *(status.containerStatuses or [])]:
        for state in (item.state, item.lastState):
            if state and state.terminated and state.terminated.message:
                yield state.terminated.message
        if item.state and item.state.waiting and item.state.waiting.message:
            yield item.state.waiting.message
    if status.message:
        yield status.message


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
        layer = layer_of_set(item)
        if layer in wanted:
            yield item, layer


def layer_of_set(item: OtherObject) -> Layer | None:
    """The layer that a DaemonSet serves."""
    return layer_of(item.metadata.name, item.metadata.labels or {}, images_of(item))


def template_of(item: OtherObject) -> Mapping[str, Any]:
    """The pod spec of a DaemonSet's (Deployment's, StatefulSet's) template, as plain data."""
    return ((item.spec or {}).get("template") or {}).get("spec") or {}


def images_of(item: OtherObject) -> tuple[str, ...]:
    """Images of the containers of a template."""
    return tuple(str(container.get("image", "")) for container in template_of(item).get("containers") or [])


def daemon_ref(item: OtherObject) -> ObjectRef:
    """Reference to a DaemonSet."""
    return ObjectRef("DaemonSet", item.metadata.namespace or "", item.metadata.name)


def kept_off_by_taints(item: OtherObject, node: NodeFacts) -> tuple[str, ...]:
    """Keys of the node's taints that a DaemonSet does not tolerate, without those that pass: the DaemonSet controller
    adds tolerations for not-ready, unreachable, pressure and unschedulable nodes; autoscalers, termination handlers and
    health agents taint nodes that go away or are under repair."""
    tolerations = _placing(item).tolerations or []
    return tuple(key for key in untolerated_taints(node, tolerations) if not _PASSING.search(key))


def selects_node(item: OtherObject, node: NodeFacts) -> bool:
    """Whether a DaemonSet's nodeSelector and required node affinity admit the node."""
    return selects(_placing(item), node.name, node.labels)


_MOST_PLACED = 1000
_placed: dict[int, tuple[OtherObject, PodSpec]] = {}
"""What decides where pods of DaemonSets go, by the identity of the DaemonSet, which the entry holds."""


def _placing(item: OtherObject) -> PodSpec:
    known = _placed.get(id(item))
    if known is None:
        template = template_of(item)
        spec = msgspec.convert({key: template[key] for key in _WHERE if template.get(key)}, PodSpec)
        if len(_placed) >= _MOST_PLACED:
            _placed.clear()
        known = _placed[id(item)] = (item, spec)
    return known[1]


_WHERE = ("nodeSelector", "affinity", "tolerations")


def selector_labels(item: OtherObject) -> list[str]:
    """Labels that a DaemonSet's nodeSelector and required node affinity ask for, as ``key=value`` or keys."""
    spec = template_of(item)
    asked = [f"{key}={value}" for key, value in sorted((spec.get("nodeSelector") or {}).items())]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []:
        for rule in term.get("matchExpressions") or []:
            values = "|".join(str(value) for value in rule.get("values") or [])
            asked.append(f"{rule.get('key')}={values}" if values else str(rule.get("key")))
    return list(dict.fromkeys(asked))
