"""The pod that installs the GPU driver on a node fails again and again.

What:
    A driver pod (of the GPU Operator, an NVIDIADriver, GKE's or AMD's installer) has a container, often the init
    container ``k8s-driver-manager``, in a crash loop or without its image. GPU pods that run on the node are named:
    they hold the old kernel module, so it cannot be unloaded.

Why:
    The node is half broken: pods that run may live on with the old module, new ones fail, and after a reboot there is
    no driver at all.

Fix:
    Let go of the module (drain the GPU pods), or give the node a driver that builds for its kernel.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/2166; NVIDIA/gpu-operator assets/state-driver.

Seeds: S2, S4
"""

from collections.abc import Iterator

from rules.checks._components import Layer, Trouble, pods_of, trouble
from rules.checks._kit import age, found, holders, names, note, of, seconds, short
from rules.checks._stack import kernel
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per failing driver pod."""
    for node in facts.nodes:
        for pod in pods_of(node, Layer.DRIVER):
            yield pod.ref
            fault = trouble(pod)
            if fault is None:
                continue
            yield _finding(facts, node, pod, fault)


def _finding(facts: ClusterFacts, node: NodeFacts, pod: PodFacts, fault: Trouble) -> Finding:
    held = names(item.ref for item in holders(node))
    manager = "driver-manager" in fault.container
    return found(
        Severity.HIGH,
        pod.ref,
        node.ref,
        remedy="image" if fault.reason in _NO_IMAGE else "held" if manager or held else "default",
        identity=f"{node.ref} {pod.controller.name if pod.controller else pod.ref.name}",
        notes=_notes(held, fault),
        failing_pod=short(pod.ref),
        pod_namespace=pod.ref.namespace,
        pod_name=pod.ref.name,
        node=node.name,
        container=fault.container,
        reason=of(fault.reason, "status.containerStatuses[].state, initContainerStatuses[].state"),
        restarts=of(fault.restarts, "status.containerStatuses[].restartCount"),
        pod_age=seconds(age(facts, pod.pod.metadata.creationTimestamp), "metadata.creationTimestamp"),
        kernel=of(kernel(node), "status.nodeInfo.kernelVersion"),
        image=of(_image(pod, fault.container), "spec.containers[].image"),
        holders=of(held),
    )


def _notes(held: list[str], fault: Trouble) -> Iterator[Note]:
    if held:
        yield note("held")
    if fault.message:
        yield note("says", said=fault.message[:200])


def _image(pod: PodFacts, container: str) -> str | None:
    spec = pod.pod.spec
    every = [*((spec.initContainers if spec else None) or []), *((spec.containers if spec else None) or [])]
    return next((item.image for item in every if item.name == container), None)


RULE = Rule(
    id="driver-pod-crashloop",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
