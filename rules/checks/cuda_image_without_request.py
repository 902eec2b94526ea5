"""A pod with a CUDA image runs on a GPU node without asking for a GPU, and may use one unseen.

What:
    A pod on an NVIDIA node asks for no GPU, yet runs an image of the CUDA family (told by its path and tag), and runs
    with the NVIDIA runtime: it names RuntimeClass ``nvidia``, or other pods on the node get their GPU without naming
    one, so that it is the default. Left alone: DaemonSets, known GPU software and its namespaces, and pods that set
    ``NVIDIA_VISIBLE_DEVICES`` (another rule speaks of those that open GPUs).

Why:
    CUDA images set ``NVIDIA_VISIBLE_DEVICES=all`` inside, where no pod spec shows it, and the NVIDIA runtime heeds it.
    The pod then sees every GPU of the node, outside of what the scheduler counts. Whether it uses one cannot be seen
    from the API, so it is low.

Fix:
    Ask for a GPU if it needs one; else set the variable to ``void``, or move the pod off the GPU node.

Source:
    seeds S2, S14; https://github.com/NVIDIA/k8s-device-plugin/issues/87; NVIDIA/k8s-device-plugin README.md (warning
    under Running GPU Jobs).

Seeds: S2, S14
"""

import re
from collections.abc import Iterator

from rules.checks._devices import env_value
from rules.checks._kit import found, names, note, of, short
from rules.checks._workloads import by_workload, nodes_of
from rules.compat import image_cuda
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.components import is_component, repository
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_CUDA_PATHS = re.compile(
    r"(?:^|/)(?:nvidia/(?:cuda|pytorch|tensorflow|tritonserver|nemo)|[^/]*vllm[^/]*|tritonserver)\b"
)
_SYSTEM = re.compile(r"^kube-|gpu-operator|device-plugin|network-operator|dcgm|gpu-resources|dra-driver|monitoring")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    seeing: list[PodFacts] = []
    for node in facts.gpu_nodes:
        if node.vendor not in (None, "nvidia") or node.provider == "gcp":
            continue
        default = _runtime_is_default(node)
        for pod in node.pods:
            yield pod.ref
            if _may_see(pod, default):
                seeing.append(pod)
    for workload, pods in by_workload(facts, seeing).items():
        nodes = nodes_of(facts, pods)
        certain = any(_named(pod) for pod in pods)
        yield found(
            Severity.LOW,
            *(pod.ref for pod in pods),
            *(node.ref for node in nodes),
            notes=[note("runtime_named" if certain else "runtime_default")],
            identity=str(workload),
            workload=short(workload),
            kind=workload.kind,
            pods=of(names(pod.ref for pod in pods)),
            images=of(sorted({image for pod in pods for image in _cuda_images(pod)}), "spec.containers[].image"),
            nodes=of([node.name for node in nodes]),
        )


def _may_see(pod: PodFacts, default: bool) -> bool:
    if pod.is_daemon or pod.gpu_requests or pod.other_gpu_claim or _SYSTEM.search(pod.ref.namespace):
        return False
    if env_value(pod, "NVIDIA_VISIBLE_DEVICES") is not None or not (default or _named(pod)):
        return False
    owner = pod.controller.name if pod.controller else pod.ref.name
    images = _cuda_images(pod)
    return bool(images) and is_component(owner, pod.pod.metadata.labels, images) is None


def _named(pod: PodFacts) -> bool:
    return bool(pod.pod.spec and (pod.pod.spec.runtimeClassName or "").startswith("nvidia"))


def _runtime_is_default(node: NodeFacts) -> bool:
    """Whether pods that were given a GPU run there without naming a runtime class."""
    given = [pod for pod in node.gpu_pods if any(name.startswith("nvidia.com/") for name in pod.gpu_requests)]
    running = [pod for pod in given if pod.phase == "Running" and pod.pod.spec]
    return any(not pod.pod.spec.runtimeClassName for pod in running if pod.pod.spec)


def _cuda_images(pod: PodFacts) -> list[str]:
    spec = pod.pod.spec
    images = [item.image for item in (spec.containers if spec else None) or () if item.image]
    return [image for image in images if image_cuda(image).cuda or _CUDA_PATHS.search(repository(image))]


RULE = Rule(
    id="cuda-image-without-request",
    family="sharing",
    severity=Severity.LOW,
    seeds=("S2", "S14"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
