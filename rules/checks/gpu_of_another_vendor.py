"""Software for one maker's GPUs meets a card of another maker.

What:
    The node's GPU is of one maker (PCI id, labels, resource) and what runs there is for another: the only device plugin
    on the node belongs to another maker while the node offers no GPU, or a container ends because it finds no driver of
    its maker ("Found no NVIDIA driver", "no ROCm-capable device"). Pods that wait for the other maker's resource, and
    whose selector admits the node, are named.

Why:
    CUDA software cannot use an AMD card and ROCm software no NVIDIA card; installing the missing driver helps nothing.

Fix:
    The stack of the card's maker: its driver, its device plugin, its resource in the pod, an image built for it.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/812; READMEs of NVIDIA/k8s-device-plugin and
    ROCm/k8s-device-plugin.

Seeds: S2, S4
"""

import re
from collections.abc import Iterator

from rules.checks._components import Layer, maker_of_pod, pods_of, speaking
from rules.checks._kit import cost_note, cost_of, found, names, note, of
from rules.checks._scheduling import selects, untolerated, vendor_of
from rules.checks._stack import Fault, diagnose, offers_none, saying
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_MISSES = {
    "nvidia": re.compile(r"Found no NVIDIA driver|no NVIDIA GPU|libcuda\.so|NVML|nvidia-smi", re.IGNORECASE),
    "amd": re.compile(r"no ROCm-capable device|/dev/kfd|hipErrorNoDevice", re.IGNORECASE),
}
_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        if node.vendor not in _RESOURCES:
            continue
        idle = offers_none(facts, node, policy)
        plugins: tuple[PodFacts, ...] = ()
        if idle:
            cause = diagnose(facts, node)
            plugins = cause.pods if cause.fault == Fault.OTHER_VENDOR else ()
        lost = _lost(node)
        if plugins or lost:
            yield _finding(facts, node, plugins, lost, idle=idle)


def _lost(node: NodeFacts) -> list[PodFacts]:
    """Pods of teams that miss the driver of another maker than the node's."""
    heard = speaking(node)
    if not heard:
        return []
    software = {pod.ref for layer in Layer for pod in pods_of(node, layer)}
    patterns = [pattern for maker, pattern in _MISSES.items() if maker != node.vendor]
    return [pod for pod in heard if pod.ref not in software and any(saying(pod, pattern) for pattern in patterns)]


def _finding(
    facts: ClusterFacts, node: NodeFacts, plugins: tuple[PodFacts, ...], lost: list[PodFacts], *, idle: bool
) -> Finding:
    sets = {
        ObjectRef("DaemonSet", pod.ref.namespace, pod.controller.name)
        for pod in plugins
        if pod.controller and pod.controller.kind == "DaemonSet"
    }
    waiting = [pod.ref for pod in facts.pending_gpu_pods if idle and _means(pod, node)]
    wrong = {maker for pod in plugins if (maker := maker_of_pod(pod))} or {
        "amd" if node.vendor == "nvidia" else "nvidia"
    }
    cost = cost_of(node.price, None) if idle else None
    return found(
        Severity.HIGH,
        node.ref,
        *sorted(sets),
        *(pod.ref for pod in plugins),
        *(pod.ref for pod in lost),
        *waiting,
        remedy=node.vendor if node.vendor in ("amd", "nvidia") else "default",
        identity=str(node.ref),
        cost=cost,
        notes=[*_notes(plugins, lost, waiting), *([cost_note(cost)] if idle else [])],
        node=node.name,
        maker=of(node.vendor, node.gpu_evidence),
        wrong_maker=of(min(wrong)),
        gpu=of(node.product),
        resource=_RESOURCES[node.vendor or "nvidia"],
        plugins=of(names(sets or {pod.ref for pod in plugins})),
        pods=of(names(pod.ref for pod in lost)),
    )


def _means(pod: PodFacts, node: NodeFacts) -> bool:
    """Whether the pod asks for another maker's resource and could otherwise run on the node."""
    makers = {vendor_of(name) for name in pod.gpu_requests}
    if not makers or node.vendor in makers or untolerated(pod, node):
        return False
    return selects(pod.pod.spec, node.name, node.labels)


def _notes(plugins: tuple[PodFacts, ...], lost: list[PodFacts], waiting: list[ObjectRef]) -> Iterator[Note]:
    if plugins:
        yield note("plugin")
    if lost:
        yield note("lost")
    if waiting:
        yield note("asking", asking=names(waiting))


RULE = Rule(
    id="gpu-of-another-vendor",
    family="compatibility",
    severity=Severity.HIGH,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
