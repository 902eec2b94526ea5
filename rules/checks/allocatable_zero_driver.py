"""A GPU node is ready and offers no GPU: driver, container toolkit or device plugin is not ready on it.

What:
    Labels, instance type or PCI id say that the node has a GPU, it has been Ready for longer than the grace period,
    its GPU software is not just starting, and no GPU resource of it is allocatable. A leftover ``nvidia.com/gpu: 0``
    beside allocatable ``.shared`` or MIG resources is no fault, nor is a node whose GPUs are handed out as memory,
    virtual GPUs, pass-through cards or by a DRA driver. The lowest broken layer is named as far as pods of the node and
    DaemonSets show it. Troubles that have a rule of their own are left to it: no plugin on the node, user libraries
    that differ from the module, an image without driver, a failed MIG layout, a missing slice, another maker's card.

Why:
    The node is paid in full and can run no GPU pod. High; medium where only a label of your own says that it has a
    GPU, because such a label may be wrong, and where somebody switched the GPU software off.

Fix:
    Repair the lowest broken layer; the layers above follow by themselves. Kubelet publishes the resource when the
    device plugin registers.

Source:
    seeds S2, S3, S5, S26; Kubernetes v1.36.2 pkg/kubelet/nodestatus/setters.go (a resource that was once registered
    keeps its key with 0, so a missing key means that it never was); NVIDIA/gpu-operator
    assets/state-operator-validation; https://github.com/NVIDIA/gpu-operator/issues/487.

Seeds: S2, S3, S5, S26
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref, stuck
from rules.checks._kit import cost_note, found, note, of, seconds, short, tolerations
from rules.checks._stack import ZERO, Diagnosis, Fault, broken_nodes, kernel, os_image, paid, silent_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per GPU node without a usable GPU that no other rule explains."""
    for node, cause in broken_nodes(facts, policy):
        yield node.ref
        if cause.told_by != ZERO:
            continue
        cost = paid(facts, node, cause)
        objects = [pod.ref for pod in cause.pods]
        objects += [cause.validator.ref] if cause.validator else []
        located = {"pod_namespace": objects[0].namespace, "pod_name": objects[0].name} if objects else {}
        objects += [daemon_ref(cause.daemon_set)] if cause.daemon_set else []
        mild = node.gpu_evidence == "user-label" or cause.fault == Fault.SWITCHED_OFF
        yield found(
            Severity.MEDIUM if mild else Severity.HIGH,
            node.ref,
            *objects,
            remedy=cause.fault,
            cost=cost,
            identity=str(node.ref),
            notes=[*_notes(node, cause), cost_note(cost)],
            node=node.name,
            layer=of(cause.layer or "unknown"),
            ready_for=seconds(silent_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
            gpu_evidence=of(node.gpu_evidence),
            gpu=of(node.product),
            resources=of([f"{item.name}={item.allocatable or 0}" for item in node.resources], "status.allocatable"),
            instance_type=of(node.instance_type),
            os_image=of(os_image(node), "status.nodeInfo.osImage"),
            kernel=of(kernel(node), "status.nodeInfo.kernelVersion"),
            **located,
            **({"tolerations": tolerations(cause.taints)} if cause.taints else {}),
        )


def _notes(node: NodeFacts, cause: Diagnosis) -> Iterator[Note]:
    fault = cause.trouble
    if fault is not None:
        yield note(
            "pod_failing",
            failing_pod=short(fault.pod),
            container=fault.container,
            reason=fault.reason,
            restarts=fault.restarts,
        )
    elif cause.pods and cause.fault == Fault.PLUGIN and not any(stuck(pod) for pod in cause.pods):
        yield note("plugin_silent", failing_pod=short(cause.pods[0].ref))
    elif cause.pods:
        yield note("pod_not_ready", failing_pod=short(cause.pods[0].ref))
    if cause.validator is not None:
        yield note("validator", failing_pod=short(cause.validator.ref), layer=cause.layer)
    if cause.fault == Fault.TOOLKIT and fault is not None:
        yield note("toolkit_missing")
    if cause.fault in (Fault.BUILT_IN, Fault.SWITCHED_OFF):
        yield note(cause.fault)
    if cause.fault == Fault.UNSEEN:
        yield note("plugin_unseen")
    if cause.fault == Fault.KEPT_OFF and cause.daemon_set is not None:
        yield note("kept_off", daemon_set=short(daemon_ref(cause.daemon_set)), taints=list(cause.taints))
    if node.gpu_evidence == "user-label":
        yield note("user_label")
    if node.unschedulable:
        yield note("cordoned")


RULE = Rule(
    id="allocatable-zero-driver",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3", "S5", "S26"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
