"""A GPU node is ready and offers no GPU: driver, container toolkit or device plugin is not ready on it.

What:
    Labels, instance type or PCI id say that the node has a GPU, it has been Ready for longer than the grace period,
    and no GPU resource of it is allocatable. A leftover ``nvidia.com/gpu: 0`` beside allocatable ``.shared`` or MIG
    resources is no fault, and a node whose GPUs are published by a DRA driver (ResourceSlice) needs no resource.
    The lowest broken layer is named, as far as pods of the node and DaemonSets show it: driver, toolkit, device plugin
    (failing, kept off by a taint, not selecting the node, or absent), DRA driver, MIG configuration.

Why:
    The node is paid in full and can run no GPU pod. High; medium where only a label of your own says that it has a
    GPU, because such a label may be wrong.

Fix:
    Repair the lowest broken layer; the layers above follow by themselves. Kubelet publishes the resource when the
    device plugin registers.

Source:
    seeds S2, S3, S5, S26; Kubernetes v1.36.2 pkg/kubelet/nodestatus/setters.go (a resource that was once registered
    keeps its key with 0, so a missing key means that it never was); NVIDIA/gpu-operator
    assets/state-operator-validation; https://github.com/NVIDIA/gpu-operator/issues/487; https://github.com/aws/karpenter-provider-aws/issues/1914.

Seeds: S2, S3, S5, S26
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rules.checks._components import (
    Layer,
    Trouble,
    daemon_ref,
    daemon_sets,
    kept_off_by_taints,
    pods_of,
    selects_node,
    stuck,
    trouble,
    waits_for,
)
from rules.checks._kit import age, cost_note, cost_of, found, latest, note, of, ready_since, seconds, short, tolerations
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_DRA_DRIVERS = ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com")
_BUILT_IN_PLUGIN = re.compile(r"bottlerocket|container-optimized os", re.IGNORECASE)
_MISMATCH = re.compile(r"LIB_RM_VERSION_MISMATCH|Driver/library version mismatch", re.IGNORECASE)
_NO_NVML = re.compile(r"libnvidia-ml\.so|could not load NVML|NVML: Unknown Error|Driver Not Loaded", re.IGNORECASE)
_NO_TOOLKIT = re.compile(r"configure the NVIDIA Container Toolkit|Incompatible strategy", re.IGNORECASE)


class Cause(NamedTuple):
    """The lowest broken layer: remedy key, words for the layer, sentences, the objects that show it, and the keys of
    taints that keep a DaemonSet off."""

    remedy: str
    layer: str
    notes: tuple[Note, ...]
    objects: tuple[ObjectRef, ...] = ()
    taints: tuple[str, ...] = ()


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per GPU node without a usable GPU."""
    for node in facts.gpu_nodes:
        yield node.ref
        ready_for = age(facts, latest(node.since, ready_since(node)))
        if node.ready is not True or ready_for is None or ready_for < policy.not_ready_grace_seconds:
            continue
        if any(item.allocatable for item in node.resources) or _published_by_dra(facts, node):
            continue
        never_registered = not node.resources
        cost = cost_of(node.price, age(facts, node.since) if never_registered else None)
        cause = _cause(facts, node)
        doubtful = node.gpu_evidence == "user-label"
        culprit = next((ref for ref in cause.objects if ref.kind == "Pod"), None)
        located = {"pod_namespace": culprit.namespace, "pod_name": culprit.name} if culprit else {}
        notes = [*cause.notes, cost_note(cost)]
        if doubtful:
            notes.append(note("user_label"))
        if node.unschedulable:
            notes.append(note("cordoned"))
        yield found(
            Severity.MEDIUM if doubtful else Severity.HIGH,
            node.ref,
            *cause.objects,
            remedy=cause.remedy,
            cost=cost,
            identity=str(node.ref),
            notes=notes,
            node=node.name,
            layer=of(cause.layer),
            ready_for=seconds(ready_for, "status.conditions[type=Ready].lastTransitionTime"),
            gpu_evidence=of(node.gpu_evidence),
            gpu=of(node.product),
            resources=of([f"{item.name}={item.allocatable or 0}" for item in node.resources], "status.allocatable"),
            instance_type=of(node.instance_type),
            os_image=of(_os_image(node), "status.nodeInfo.osImage"),
            kernel=of(_kernel(node), "status.nodeInfo.kernelVersion"),
            **located,
            **({"tolerations": tolerations(cause.taints)} if cause.taints else {}),
        )


def _published_by_dra(facts: ClusterFacts, node: NodeFacts) -> bool:
    """Whether a DRA driver publishes the node's GPUs, or may do so where ResourceSlices were not read."""
    if facts.knows("ResourceSlice"):
        specs = [item.spec or {} for item in facts.others.get("ResourceSlice", ())]
        return any(spec.get("nodeName") == node.name and spec.get("driver") in _DRA_DRIVERS for spec in specs)
    plugins = pods_of(node, Layer.DRA)
    return bool(plugins) and not any(trouble(pod) or stuck(pod) for pod in plugins)


def _cause(facts: ClusterFacts, node: NodeFacts) -> Cause:
    return (
        _failing(node, Layer.DRIVER)
        or _mig(node)
        or _validator(node)
        or _failing(node, Layer.TOOLKIT)
        or _plugin(node)
        or _failing(node, Layer.DRA)
        or _kept_off(facts, node)
        or _absent(facts, node)
    )


def _failing(node: NodeFacts, layer: Layer) -> Cause | None:
    for pod in pods_of(node, layer):
        fault = trouble(pod)
        if fault is None and not stuck(pod):
            continue
        waiting = waits_for(node)
        objects = (pod.ref, waiting[0].ref) if waiting and waiting[1] == layer else (pod.ref,)
        return Cause(layer, layer, (_pod_note(pod, fault),), objects)
    return None


def _pod_note(pod: PodFacts, fault: Trouble | None) -> Note:
    if fault is None:
        return note("pod_not_ready", failing_pod=short(pod.ref))
    return note(
        "pod_failing",
        failing_pod=short(pod.ref),
        container=fault.container,
        reason=fault.reason,
        restarts=fault.restarts,
    )


def _mig(node: NodeFacts) -> Cause | None:
    state = node.labels.get("nvidia.com/mig.config.state")
    if state not in ("failed", "pending", "rebooting"):
        return None
    wanted = node.labels.get("nvidia.com/mig.config")
    return Cause("mig", "mig", (note("mig", mig_state=state, mig_config=wanted),))


def _validator(node: NodeFacts) -> Cause | None:
    waiting = waits_for(node)
    if waiting is None:
        return None
    pod, layer = waiting
    return Cause(layer, layer, (note("validator", failing_pod=short(pod.ref), layer=layer),), (pod.ref,))


def _plugin(node: NodeFacts) -> Cause | None:
    pods = pods_of(node, Layer.PLUGIN)
    if not pods:
        return None
    objects = tuple(pod.ref for pod in pods)
    if node.vendor == "amd" and all("nvidia" in str(pod.ref) for pod in pods):
        return Cause("other_vendor", "plugin", (note("other_vendor"),), objects)
    for pod in pods:
        fault = trouble(pod)
        if fault is None:
            continue
        said = fault.message or ""
        if _MISMATCH.search(said):
            return Cause("library_mismatch", "driver", (_pod_note(pod, fault), note("library_mismatch")), objects)
        if _NO_NVML.search(said):
            return Cause("driver_missing", "driver", (_pod_note(pod, fault), note("driver_missing")), objects)
        if _NO_TOOLKIT.search(said):
            return Cause("toolkit", "toolkit", (_pod_note(pod, fault), note("toolkit_missing")), objects)
        return Cause("plugin", "plugin", (_pod_note(pod, fault),), objects)
    if any(stuck(pod) for pod in pods):
        return Cause("plugin", "plugin", (_pod_note(pods[0], None),), objects)
    return Cause("plugin", "plugin", (note("plugin_silent", failing_pod=short(pods[0].ref)),), objects)


def _kept_off(facts: ClusterFacts, node: NodeFacts) -> Cause | None:
    """A DaemonSet that would serve the node but may not run there; one that is made for other nodes does not count."""
    missing = [layer for layer in (Layer.DRIVER, Layer.TOOLKIT, Layer.PLUGIN) if not pods_of(node, layer)]
    unselecting: Cause | None = None
    for item, layer in daemon_sets(facts, missing):
        ref = daemon_ref(item)
        if not selects_node(item, node):
            if layer == Layer.PLUGIN and unselecting is None:
                text = note("not_selected", daemon_set=short(ref))
                unselecting = Cause("not_selected", "plugin", (text,), (ref,))
            continue
        taints = list(kept_off_by_taints(item, node))
        if taints:
            text = note("kept_off", daemon_set=short(ref), taints=taints)
            return Cause("toleration", layer, (text,), (ref,), tuple(taints))
    return unselecting


def _absent(facts: ClusterFacts, node: NodeFacts) -> Cause:
    if node.provider == "gcp" or _BUILT_IN_PLUGIN.search(_os_image(node) or ""):
        return Cause("built_in", "unknown", (note("built_in"),))
    if facts.knows("DaemonSet") and not any(daemon_sets(facts, [Layer.PLUGIN, Layer.DRA])):
        return Cause("plugin_absent", "plugin", (note("plugin_absent"),))
    return Cause("default", "unknown", (note("plugin_unseen"),))


def _os_image(node: NodeFacts) -> str | None:
    info = node.node.status.nodeInfo if node.node.status else None
    return info.osImage if info else None


def _kernel(node: NodeFacts) -> str | None:
    info = node.node.status.nodeInfo if node.node.status else None
    return info.kernelVersion if info else None


RULE = Rule(
    id="allocatable-zero-driver",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3", "S5", "S26"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
