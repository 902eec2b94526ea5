"""What follows from a pod: what it asks for, what it holds, and who owns it."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from rules.facts.dra import ClaimUse, Dra
from rules.facts.marks import marks_of
from rules.facts.model import PodFacts
from rules.facts.objects import Container, OwnerReference, Pod, PodSpec
from rules.facts.resources import extended_requests, gpu_name, indirect_claim
from rules.findings import ObjectRef

_EMPTY: Mapping[str, int] = {}
_TERMINAL = ("Succeeded", "Failed")

_FRACTION_ANNOTATIONS = frozenset({"gpu-fraction", "gpu-memory", "runai/gpu-fraction", "runai/gpu-memory"})
"""KAI and Run:ai: such a pod asks for no GPU itself (NVIDIA/KAI-Scheduler pkg/common/constants, 2026-03)."""

_HAMI_ASSIGNED = "hami.io/vgpu-devices-allocated"
_NO_DEVICES = frozenset({"", "void", "none"})
_DEVICE_PATHS = ("/dev/nvidia", "/dev/dri", "/dev/kfd")
_SYSTEM_NAMESPACES = frozenset(
    {
        "kube-system",
        "gpu-operator",
        "nvidia-gpu-operator",
        "nvidia-device-plugin",
        "nvidia-network-operator",
        "gpu-resources",
        "dra-driver-nvidia-gpu",
        "kube-amd-gpu",
    }
)
"""Where drivers, plugins and exporters live, which see all GPUs by design (default namespaces of the charts)."""


def pod_facts(pod: Pod, gpu_nodes: frozenset[str], dra: Dra) -> PodFacts:
    """Derive the facts of one pod.

    Args:
        gpu_nodes: names of nodes that have a GPU; only there a look at the devices means anything.
        dra: the cluster's slices and claims.
    """
    metadata, spec = pod.metadata, pod.spec
    phase = (pod.status.phase if pod.status else None) or "Unknown"
    terminal = phase in _TERMINAL
    controller = _controller(metadata.ownerReferences)
    if spec is None:
        ref = ObjectRef("Pod", metadata.namespace or "", metadata.name)
        marks = marks_of(pod, controller, phase)
        return PodFacts(ref, pod, phase, None, terminal, _EMPTY, None, controller, marks=marks)
    requests = extended_requests(spec)
    gpus = {name: amount for name, amount in requests.items() if gpu_name(name)} if requests else _EMPTY
    claim = dra.claim_of(pod) if spec.resourceClaims else None
    node_name = spec.nodeName or None
    look = node_name in gpu_nodes and not _is_system(pod, controller)
    return PodFacts(
        ref=ObjectRef("Pod", metadata.namespace or "", metadata.name),
        pod=pod,
        phase=phase,
        node_name=node_name,
        terminal=terminal,
        gpu_requests=gpus,
        other_gpu_claim=None if gpus else _other_claim(pod, spec, requests, claim, look),
        controller=controller,
        dra_devices=claim.wanted if claim else None,
        marks=marks_of(pod, controller, phase),
    )


def _other_claim(
    pod: Pod,
    spec: PodSpec,
    requests: Mapping[str, int],
    claim: ClaimUse | None,
    look_inside: bool,
) -> str | None:
    if claim is not None:
        return "dra-claim"
    for name in requests:
        indirect = indirect_claim(name)
        if indirect is not None:
            return indirect
    annotations = pod.metadata.annotations
    if annotations:
        if not _FRACTION_ANNOTATIONS.isdisjoint(annotations) and any(map(annotations.get, _FRACTION_ANNOTATIONS)):
            return "fraction-annotation"
        if annotations.get(_HAMI_ASSIGNED, "").strip(";:, "):
            return "hami-annotation"
    return (_visible_devices(spec) or _device_mount(spec)) if look_inside else None


def _is_system(pod: Pod, controller: OwnerReference | None) -> bool:
    """Parts of the node's own stack, which look at all GPUs and hold none."""
    daemon = controller is not None and controller.kind in ("DaemonSet", "Node")
    return daemon or (pod.metadata.namespace or "") in _SYSTEM_NAMESPACES


def _containers(spec: PodSpec) -> Iterable[Container]:
    yield from spec.containers or ()
    for container in spec.initContainers or ():
        if container.restartPolicy == "Always":
            yield container


def _visible_devices(spec: PodSpec) -> str | None:
    """With the NVIDIA runtime as default, this variable opens GPUs to a container that asked for none
    (NVIDIA/k8s-device-plugin README, warning under "Running GPU Jobs")."""
    for container in _containers(spec):
        for variable in container.env or ():
            if variable.name == "NVIDIA_VISIBLE_DEVICES" and (variable.value or "").lower() not in _NO_DEVICES:
                return "visible-devices"
    return None


def _device_mount(spec: PodSpec) -> str | None:
    for volume in spec.volumes or ():
        host = volume.get("hostPath")
        path = host.get("path") if isinstance(host, dict) else None
        if isinstance(path, str) and path.startswith(_DEVICE_PATHS):
            return "device-mount"
    return None


def _controller(owners: list[OwnerReference] | None) -> OwnerReference | None:
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


def ended_at(pod: Pod) -> datetime | None:
    """When the last container of a finished pod ended; None when its status does not say."""
    if pod.status is None:
        return None
    ends = [
        status.state.terminated.finishedAt
        for status in (*(pod.status.containerStatuses or ()), *(pod.status.initContainerStatuses or ()))
        if status.state is not None and status.state.terminated is not None and status.state.terminated.finishedAt
    ]
    return max(ends, default=None)
