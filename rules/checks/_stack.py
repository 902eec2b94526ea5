"""Why a GPU node offers no GPU: the lowest broken layer, worked out once and told by one rule.

A node that should have a GPU and offers none has one trouble, however many of its parts complain. :func:`diagnose`
names the lowest broken layer; :data:`TOLD_BY` says which rule speaks about it. The other rules stay silent, or tell why
(a DaemonSet that misses a toleration, a kernel without a driver).
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.dra import GPU_DRIVERS
from rules.facts.objects import OtherObject
from rules.facts.resources import count, indirect_claim
from rules.findings import Cost, ObjectRef
from rules.policy import Policy

from ._components import (
    Layer,
    Trouble,
    daemon_ref,
    daemon_sets,
    kept_off_by_taints,
    maker_of_pod,
    maker_of_set,
    pods_of,
    said_by,
    selector_labels,
    selects_node,
    speaking,
    stuck,
    trouble,
    waits_for,
)
from ._kit import age, cost_of, latest, ready_since
from ._node_image import image_without_driver


class Fault(StrEnum):
    """What is wrong on a node that offers no GPU, the lowest layer first where several hold."""

    OTHER_VENDOR = "other_vendor"
    SWITCHED_OFF = "switched_off"
    MISMATCH = "library_mismatch"
    NO_DRIVER = "driver_missing"
    DRIVER = "driver"
    MIG = "mig"
    TOOLKIT = "toolkit"
    PLUGIN = "plugin"
    UNHEALTHY = "unhealthy"
    DRA = "dra"
    KEPT_OFF = "kept_off"
    NOT_SELECTED = "not_selected"
    ABSENT = "plugin_absent"
    BUILT_IN = "built_in"
    UNSEEN = "default"


ZERO = "allocatable-zero-driver"
MISSING = "device-plugin-missing"
TOLD_BY = {
    Fault.OTHER_VENDOR: "gpu-of-another-vendor",
    Fault.MISMATCH: "driver-library-mismatch",
    Fault.NO_DRIVER: "node-image-without-driver",
    Fault.MIG: "mig-config-failed",
    Fault.UNHEALTHY: "allocatable-below-capacity",
    Fault.DRA: "dra-slice-missing",
    Fault.NOT_SELECTED: MISSING,
    Fault.ABSENT: MISSING,
}
"""The rule that tells of a fault; :data:`ZERO` of the others."""

UNHEALTHY = TOLD_BY[Fault.UNHEALTHY]
OFFERS_NONE = (ZERO, *sorted({*TOLD_BY.values()} - {UNHEALTHY}))
"""Every rule that may say of a node that it offers no GPU: with :data:`UNHEALTHY`, which may also say that it offers
fewer than it has, the roots of pods that wait for it."""

LIBRARY_MISMATCH = re.compile(r"LIB_RM_VERSION_MISMATCH|driver/library version mismatch", re.IGNORECASE)
NO_NVML = re.compile(r"libnvidia-ml\.so|could not load NVML|Driver Not Loaded", re.IGNORECASE)
NO_TOOLKIT = re.compile(r"configure the NVIDIA Container Toolkit|Incompatible strategy", re.IGNORECASE)
_BUILT_IN_IMAGE = re.compile(r"bottlerocket|container-optimized os", re.IGNORECASE)
_BUILT_IN_PROVIDERS = frozenset({"gcp", "coreweave"})
_PAUSED_MIG = ("failed", "pending", "rebooting")


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The lowest broken layer of a node.

    Attributes:
        pods: what shows it, the most telling first.
        trouble: how the first of them fails; None where it only never becomes ready.
        validator: the operator's validator, where it waits for this layer.
        daemon_set: the DaemonSet that serves the layer and has no pod here.
        taints: keys of taints that keep it off.
        registered: the kubelet has known a GPU here before: the resource is still listed.
    """

    fault: Fault
    layer: Layer | None = None
    pods: tuple[PodFacts, ...] = ()
    trouble: Trouble | None = None
    validator: PodFacts | None = None
    daemon_set: OtherObject | None = None
    taints: tuple[str, ...] = ()
    registered: bool = False

    @property
    def told_by(self) -> str:
        """Id of the rule that speaks about it."""
        if self.fault == Fault.KEPT_OFF:
            return MISSING if self.layer == Layer.PLUGIN else ZERO
        return TOLD_BY.get(self.fault, ZERO)


def silent_for(facts: ClusterFacts, node: NodeFacts) -> float | None:
    """Seconds since the node came up or became ready, whichever was later."""
    return age(facts, latest(node.since, ready_since(node)))


def broken_nodes(facts: ClusterFacts, policy: Policy) -> Iterator[tuple[NodeFacts, Diagnosis]]:
    """GPU nodes that offer no GPU, and why; each is diagnosed once for all rules."""
    known: dict[str, Diagnosis] = facts.remember(f"diagnoses after {policy.not_ready_grace_seconds} s", dict)
    for node in facts.gpu_nodes:
        if node.name not in known:
            if not offers_none(facts, node, policy):
                continue
            known[node.name] = diagnose(facts, node)
        yield node, known[node.name]


def offers_none(facts: ClusterFacts, node: NodeFacts, policy: Policy) -> bool:
    """Whether a GPU node is ready for longer than the grace period, its GPU software is not just starting, and it
    offers no GPU in any way: no resource, no share, no pass-through, no DRA slice."""
    grace = policy.not_ready_grace_seconds
    ready_for = silent_for(facts, node)
    if node.ready is not True or ready_for is None or ready_for < grace:
        return False
    if any(item.allocatable for item in node.resources) or _offered_in_parts(node) or published_by_dra(facts, node):
        return False
    return not any(_starting(facts, pod, grace) for layer in Layer for pod in pods_of(node, layer))


def _offered_in_parts(node: NodeFacts) -> bool:
    """Memory, virtual GPUs or whole cards for virtual machines, which are no GPU resource of the kubelet."""
    allocatable = (node.node.status.allocatable if node.node.status else None) or {}
    return any(indirect_claim(name) and count(amount) for name, amount in allocatable.items())


def _starting(facts: ClusterFacts, pod: PodFacts, grace: float) -> bool:
    old = age(facts, pod.pod.metadata.creationTimestamp)
    return old is not None and old < grace and trouble(pod) is None


def published_by_dra(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether a DRA driver publishes the node's GPUs, or may do so where ResourceSlices were not read."""
    if facts.knows("ResourceSlice"):
        specs = [item.spec or {} for item in facts.others.get("ResourceSlice", ())]
        return any(spec.get("nodeName") == node.name and spec.get("driver") in GPU_DRIVERS for spec in specs)
    plugins = pods_of(node, Layer.DRA)
    return bool(plugins) and not any(trouble(pod) or stuck(pod) for pod in plugins)


def diagnose(facts: ClusterFacts, node: NodeFacts) -> Diagnosis:
    """The lowest broken layer of a node that offers no GPU."""
    found = (
        _of_another_vendor(node)
        or _switched_off(node)
        or _failing(node, Layer.DRIVER)
        or _mig(node)
        or _bare_image(facts, node)
        or _said(node)
        or _validator(node)
        or _failing(node, Layer.TOOLKIT)
        or _plugin(node)
        or _failing(node, Layer.DRA)
        or _no_pod(facts, node)
    )
    waiting = waits_for(node)
    if found.fault == Fault.UNSEEN and waiting is not None:
        found = msgspec.structs.replace(found, layer=waiting[1], validator=waiting[0])
    return msgspec.structs.replace(found, registered=any(item.capacity is not None for item in node.resources))


def _of_another_vendor(node: NodeFacts) -> Diagnosis | None:
    pods = pods_of(node, Layer.PLUGIN)
    makers = {maker_of_pod(pod) for pod in pods}
    if node.vendor is None or not pods or None in makers or node.vendor in makers:
        return None
    return Diagnosis(fault=Fault.OTHER_VENDOR, layer=Layer.PLUGIN, pods=tuple(pods), trouble=trouble(pods[0]))


def _switched_off(node: NodeFacts) -> Diagnosis | None:
    """Labels by which an administrator keeps the GPU Operator off a node (NVIDIA/gpu-operator state_manager.go)."""
    keys = ("nvidia.com/gpu.deploy.operands", "nvidia.com/gpu.deploy.device-plugin")
    return Diagnosis(fault=Fault.SWITCHED_OFF) if any(node.labels.get(key) == "false" for key in keys) else None


def _failing(node: NodeFacts, layer: Layer) -> Diagnosis | None:
    faults = {Layer.DRIVER: Fault.DRIVER, Layer.TOOLKIT: Fault.TOOLKIT, Layer.DRA: Fault.DRA}
    for pod in pods_of(node, layer):
        fault = trouble(pod)
        if fault is None and not stuck(pod):
            continue
        waiting = waits_for(node)
        validator = waiting[0] if waiting and waiting[1] == layer else None
        return Diagnosis(fault=faults[layer], layer=layer, pods=(pod,), trouble=fault, validator=validator)
    return None


def _mig(node: NodeFacts) -> Diagnosis | None:
    state = node.labels.get("nvidia.com/mig.config.state")
    return Diagnosis(fault=Fault.MIG) if state in _PAUSED_MIG else None


def _bare_image(facts: ClusterFacts, node: NodeFacts) -> Diagnosis | None:
    """The image carries no driver, and no driver DaemonSet is there to install one."""
    if image_without_driver(facts, node) is None or pods_of(node, Layer.DRIVER):
        return None
    if any(selects_node(item, node) for item in serving(facts, node, Layer.DRIVER)):
        return None
    pods = tuple(pod for pod in pods_of(node, Layer.PLUGIN) if trouble(pod) or stuck(pod))
    fault = trouble(pods[0]) if pods else None
    return Diagnosis(fault=Fault.NO_DRIVER, layer=Layer.DRIVER, pods=pods, trouble=fault)


def _said(node: NodeFacts) -> Diagnosis | None:
    """What the GPU software says before it ends: user libraries that differ from the module, or no library at all."""
    plugins = pods_of(node, Layer.PLUGIN)
    for pattern, fault in ((LIBRARY_MISMATCH, Fault.MISMATCH), (NO_NVML, Fault.NO_DRIVER)):
        pods = [pod for pod in (plugins if fault == Fault.NO_DRIVER else speaking(node)) if saying(pod, pattern)]
        if pods:
            first = next((pod for pod in pods if pod in plugins), pods[0])
            ordered = (first, *(pod for pod in pods if pod is not first))
            unseen = fault == Fault.NO_DRIVER and _driver_is_there(node, first)
            named = (Fault.TOOLKIT, Layer.TOOLKIT) if unseen else (fault, Layer.DRIVER)
            return Diagnosis(fault=named[0], layer=named[1], pods=ordered, trouble=trouble(first))
    return None


def _driver_is_there(node: NodeFacts, plugin: PodFacts) -> bool:
    """Whether a plugin that finds no library more likely runs without the NVIDIA runtime than without a driver: the
    driver's own pod is well, or it is a k3s or RKE2 node, which needs a runtime class for it."""
    if pods_of(node, Layer.DRIVER):
        return True
    return needs_runtime_class(node) and not (plugin.pod.spec and plugin.pod.spec.runtimeClassName)


def needs_runtime_class(node: NodeFacts) -> bool:
    """k3s and RKE2 register the NVIDIA runtime beside the default one (k3s documentation, NVIDIA Container Runtime)."""
    info = node.node.status.nodeInfo if node.node.status else None
    return "k3s" in ((info.containerRuntimeVersion if info else None) or "") or bool(
        info and info.kubeletVersion and re.search(r"\+(?:k3s|rke2)", info.kubeletVersion)
    )


def saying(pod: PodFacts, pattern: re.Pattern[str]) -> str | None:
    """The words of the pod's containers that match."""
    return next((text for text in said_by(pod) if pattern.search(text)), None)


def _validator(node: NodeFacts) -> Diagnosis | None:
    waiting = waits_for(node)
    if waiting is None or waiting[1] == Layer.PLUGIN:
        return None
    pod, layer = waiting
    fault = Fault.DRIVER if layer == Layer.DRIVER else Fault.TOOLKIT
    return Diagnosis(fault=fault, layer=layer, validator=pod)


def _plugin(node: NodeFacts) -> Diagnosis | None:
    pods = pods_of(node, Layer.PLUGIN)
    if not pods:
        return None
    for pod in pods:
        fault = trouble(pod)
        if fault is not None:
            toolkit = NO_TOOLKIT.search(fault.message or "")
            named = (Fault.TOOLKIT, Layer.TOOLKIT) if toolkit else (Fault.PLUGIN, Layer.PLUGIN)
            return Diagnosis(fault=named[0], layer=named[1], pods=(pod,), trouble=fault)
    # The kubelet counts unhealthy devices in capacity as long as their plugin is connected (devicemanager/manager.go).
    lost = any(item.capacity for item in node.resources) and not any(map(stuck, pods))
    return Diagnosis(fault=Fault.UNHEALTHY if lost else Fault.PLUGIN, layer=Layer.PLUGIN, pods=tuple(pods))


def _no_pod(facts: ClusterFacts, node: NodeFacts) -> Diagnosis:
    """No plugin pod is on the node: its DaemonSet is kept off, made for other nodes, or not there."""
    for layer in (Layer.DRIVER, Layer.TOOLKIT, Layer.PLUGIN):
        if pods_of(node, layer):
            continue
        mine = [item for item in serving(facts, node, layer) if selects_node(item, node)]
        barred = [(item, kept_off_by_taints(item, node)) for item in mine]
        if barred and all(taints for _, taints in barred):
            item, taints = barred[0]
            return Diagnosis(fault=Fault.KEPT_OFF, layer=layer, daemon_set=item, taints=taints)
        if mine and layer == Layer.PLUGIN:
            return Diagnosis(fault=Fault.UNSEEN, daemon_set=mine[0])
    if built_in(node):
        return Diagnosis(fault=Fault.BUILT_IN)
    dra = [item for item in serving(facts, node, Layer.DRA) if selects_node(item, node)]
    if dra:
        return Diagnosis(fault=Fault.DRA, layer=Layer.DRA, daemon_set=dra[0])
    others = list(serving(facts, node, Layer.PLUGIN))
    if others:
        return Diagnosis(fault=Fault.NOT_SELECTED, layer=Layer.PLUGIN, daemon_set=others[0])
    if _hands_out_by_dra(facts, node):
        return Diagnosis(fault=Fault.DRA, layer=Layer.DRA)
    known = facts.knows("DaemonSet")
    return Diagnosis(fault=Fault.ABSENT, layer=Layer.PLUGIN) if known else Diagnosis(fault=Fault.UNSEEN)


def serving(facts: ClusterFacts, node: NodeFacts, layer: Layer) -> Iterator[OtherObject]:
    """DaemonSets of a layer that are not for the GPUs of another maker than the node's."""
    for item, _ in daemon_sets(facts, [layer]):
        if node.vendor is None or maker_of_set(item) in (None, node.vendor):
            yield item


def _hands_out_by_dra(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether the cluster has a GPU driver's device class, or slices, for the node's maker."""
    drivers = {driver for driver, maker in GPU_DRIVERS.items() if node.vendor in (None, maker)}
    named = any(item.metadata.name in drivers for item in facts.of_kind("DeviceClass"))
    return named or any((item.spec or {}).get("driver") in drivers for item in facts.of_kind("ResourceSlice"))


def built_in(node: NodeFacts) -> bool:
    """Whether the provider or the node image brings the device plugin, unseen in the objects: GKE, CoreWeave, EKS Auto
    Mode, Bottlerocket and Container-Optimized OS (NVIDIA variants; documents of the providers, read 2026-08)."""
    if node.labels.get("gke-no-default-nvidia-gpu-device-plugin") == "true":
        return False
    auto_mode = node.labels.get("eks.amazonaws.com/compute-type") == "auto"
    return auto_mode or node.provider in _BUILT_IN_PROVIDERS or bool(_BUILT_IN_IMAGE.search(os_image(node) or ""))


def os_image(node: NodeFacts) -> str | None:
    """``status.nodeInfo.osImage``."""
    info = node.node.status.nodeInfo if node.node.status else None
    return info.osImage if info else None


def kernel(node: NodeFacts) -> str | None:
    """``status.nodeInfo.kernelVersion``."""
    info = node.node.status.nodeInfo if node.node.status else None
    return info.kernelVersion if info else None


def paid(facts: ClusterFacts, node: NodeFacts, diagnosis: Diagnosis) -> Cost | None:
    """What the node costs; since its creation where it has never offered a GPU."""
    return cost_of(node.price, None if diagnosis.registered else age(facts, node.since))


def refs(items: Iterable[NodeFacts | PodFacts]) -> list[ObjectRef]:
    """References to nodes or pods, sorted."""
    return sorted({item.ref for item in items})


def barred_plugins(
    facts: ClusterFacts, policy: Policy, *, registered: bool
) -> list[tuple[OtherObject, list[tuple[NodeFacts, Diagnosis]]]]:
    """DaemonSets of device plugins that taints keep off GPU nodes, with those nodes.

    Args:
        registered: nodes where the kubelet has known a GPU before (the plugin ran there), or those where it has not.
    """
    found: dict[ObjectRef, tuple[OtherObject, list[tuple[NodeFacts, Diagnosis]]]] = {}
    for node, cause in broken_nodes(facts, policy):
        barred = cause.fault == Fault.KEPT_OFF and cause.layer == Layer.PLUGIN
        if barred and cause.daemon_set is not None and cause.registered is registered:
            item = cause.daemon_set
            found.setdefault(daemon_ref(item), (item, []))[1].append((node, cause))
    return [found[ref] for ref in sorted(found)]


_NFD_WORKER = re.compile(r"node-feature-discovery-worker|nfd-worker")
_BY_DISCOVERY = re.compile(r"^feature\.node\.kubernetes\.io/|^nvidia\.com/gpu\.|^nvidia\.com/mps\.")


def nfd_deadlocks(facts: ClusterFacts, policy: Policy) -> list[tuple[OtherObject, list[tuple[NodeFacts, Diagnosis]]]]:
    """NFD workers that a taint keeps off GPU nodes without a plugin, where the plugin waits for their labels."""
    workers = [item for item in facts.others.get("DaemonSet", ()) if _NFD_WORKER.search(item.metadata.name)]
    found: list[tuple[OtherObject, list[tuple[NodeFacts, Diagnosis]]]] = []
    if not workers:
        return found
    stranded = [
        (node, cause)
        for node, cause in broken_nodes(facts, policy)
        if cause.fault in (Fault.NOT_SELECTED, Fault.ABSENT) and not _discovered(node) and _waits_for_labels(cause)
    ]
    for worker in workers:
        mine = [
            (node, cause) for node, cause in stranded if selects_node(worker, node) and kept_off_by_taints(worker, node)
        ]
        if mine:
            found.append((worker, mine))
    return found


def _discovered(node: NodeFacts) -> bool:
    return any(label.startswith("feature.node.kubernetes.io/") for label in node.labels)


def _waits_for_labels(cause: Diagnosis) -> bool:
    """The GPU Operator makes its DaemonSets only when a GPU node is labelled, so there may be none to look at."""
    if cause.daemon_set is None:
        return True
    return any(_BY_DISCOVERY.match(label) for label in selector_labels(cause.daemon_set))
