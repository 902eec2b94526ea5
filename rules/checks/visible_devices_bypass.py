"""A pod reaches GPUs that the scheduler did not give it.

What:
    A pod on a GPU node asks for no GPU and reaches them all the same: it sets ``NVIDIA_VISIBLE_DEVICES`` to GPUs, or
    mounts the device files. Left alone: DaemonSets and known GPU software, which look at all GPUs and hold none, pods
    that ask for a GPU or claim one, and the values ``void`` and ``none``.

Why:
    The NVIDIA runtime opens the GPUs that the variable names to any container that runs with it, whatever the device
    plugin has given to whom. Such a pod disturbs those whose GPUs it sees, shows in no accounting, and makes GPUs look
    free that are in use. High where it shares a node with pods that were given a GPU, else medium.

Fix:
    Give the pod a real request, or set the variable to ``void``; and close the gap on the nodes.

Source:
    seeds S2, S14; https://github.com/NVIDIA/k8s-device-plugin/issues/61;
    https://github.com/NVIDIA/k8s-device-plugin/issues/195; NVIDIA/k8s-device-plugin README.md (warning under Running
    GPU Jobs); NVIDIA Container Toolkit documentation, accept-nvidia-visible-devices-envvar-when-unprivileged.

Seeds: S2, S14
"""

from collections.abc import Iterator

from rules.checks._devices import env_value
from rules.checks._kit import found, gpus, names, note, of, short
from rules.checks._workloads import by_workload, nodes_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.components import is_component
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_WAYS = ("visible-devices", "device-mount")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    bypassing: list[PodFacts] = []
    for pod in facts.gpu_pods:
        yield pod.ref
        if _opens(facts, pod) and not pod.terminal and not _software(pod):
            bypassing.append(pod)
    for workload, pods in by_workload(facts, bypassing).items():
        nodes = nodes_of(facts, pods)
        given = [pod for node in nodes for pod in node.gpu_pods if pod.gpu_requests or pod.dra_devices]
        ways = {str(pod.other_gpu_claim) for pod in pods}
        free = _sum(nodes, free=True)
        yield found(
            Severity.HIGH if given else Severity.MEDIUM,
            *(pod.ref for pod in pods),
            *(node.ref for node in nodes),
            *(pod.ref for pod in given),
            remedy="default" if "visible-devices" in ways else "mount",
            notes=[
                *([note("given", given=of(names(pod.ref for pod in given)))] if given else []),
                *([note("variable")] if "visible-devices" in ways else []),
                note("maybe_used") if free else note("none_free"),
            ],
            identity=str(workload),
            workload=short(workload),
            kind=workload.kind,
            pods=of(names(pod.ref for pod in pods)),
            variable=of(env_value(pods[0], "NVIDIA_VISIBLE_DEVICES"), "spec.containers[].env"),
            way=of(sorted(ways)),
            nodes=of([node.name for node in nodes]),
            gpus_seen=gpus(_sum(nodes), "Node"),
            free=of(free, "status.allocatable less requests"),
            resource=of(_resource(nodes)),
        )


def _opens(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether the way leads to GPUs. GKE has no NVIDIA runtime that would heed the variable, unless the GPU Operator
    brings it."""
    node = facts.node(pod.node_name or "")
    if node is None or pod.other_gpu_claim not in _WAYS:
        return False
    heeded = node.provider != "gcp" or facts.components["container_toolkit"].present
    return pod.other_gpu_claim == "device-mount" or bool(heeded)


def _software(pod: PodFacts) -> bool:
    owner = pod.controller.name if pod.controller else pod.ref.name
    spec = pod.pod.spec
    images = [item.image for item in (spec.containers if spec else None) or () if item.image]
    return is_component(owner, pod.pod.metadata.labels, images) is not None


def _sum(nodes: list[NodeFacts], *, free: bool = False) -> int | None:
    """Physical GPUs of the nodes, or units that look free; None when it is known for none of them."""
    if free:
        known = [item.free for node in nodes for item in node.resources if item.free is not None]
    else:
        known = [node.physical_gpus for node in nodes if node.physical_gpus is not None]
    return sum(known) if known else None


def _resource(nodes: list[NodeFacts]) -> str:
    names_of = [item.name for node in nodes for item in node.resources if item.allocatable and item.origin == "kubelet"]
    return names_of[0] if names_of else "nvidia.com/gpu"


RULE = Rule(
    id="visible-devices-bypass",
    family="sharing",
    severity=Severity.HIGH,
    seeds=("S2", "S14"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
