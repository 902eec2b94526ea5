"""What of a pod's containers matters to GPU work: whole GPUs, shared memory, environment, the network it can reach."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.network import fast_network_requests
from rules.facts.objects import Container, PodSpec
from rules.facts.resources import gpu_name, parse_quantity

from ._components import last_words

SHM = "/dev/shm"  # noqa: S108 - a mount point, not a file of ours
_NOT_WHOLE = frozenset({"time-slicing", "mps", "mig-single", "partitioned", "hami"})
_COLLECTIVE_VENDORS = ("nvidia", "amd")
_CRIO_SHM = "io.kubernetes.cri-o.ShmSize"
_SHM_CRASH = re.compile(
    r"shared memory segment|/dev/shm|\bshm\b|bus error|sigbus|insufficient shared memory", re.IGNORECASE
)
_BUS_ERROR = 135
_MEBI = 1024 * 1024


class SharedMemory(msgspec.Struct, frozen=True):
    """What a container has at ``/dev/shm``.

    Attributes:
        kind: ``memory`` (emptyDir in memory), ``disk`` (emptyDir on disk) or ``other`` (hostPath, a claim ...).
        size_mib: its limit; None when it has none.
        source: where the limit stands.
    """

    kind: Literal["memory", "disk", "other"]
    size_mib: int | None
    volume: str


def gpu_containers(pod: PodFacts) -> Iterator[Container]:
    """Containers of the pod that ask for a GPU, by count or by claim; all of them when the pod holds one otherwise."""
    spec = pod.pod.spec
    containers = (spec.containers if spec else None) or []
    asking = [item for item in containers if _asks(item)]
    yield from asking or containers


def _asks(container: Container) -> bool:
    resources = container.resources
    if resources is None:
        return False
    named = {**(resources.requests or {}), **(resources.limits or {})}
    return bool(resources.claims) or any(gpu_name(name) for name in named)


def whole_gpus(facts: ClusterFacts, pod: PodFacts) -> int:
    """Number of whole NVIDIA or AMD GPUs that the pod asks for; shares, MIG devices and partitions are none, also where
    they carry the name of a GPU."""
    total = 0
    for name, amount in pod.gpu_requests.items():
        known = gpu_name(name)
        if known and known.form == "device" and known.vendor in _COLLECTIVE_VENDORS and _whole(facts, pod, name):
            total += amount
    return total or (pod.dra_devices or 0)


def _whole(facts: ClusterFacts, pod: PodFacts, resource: str) -> bool:
    node = facts.node(pod.node_name or "")
    if node:
        return node.sharing.mode not in _NOT_WHOLE
    return facts.remember(f"whether {resource} is a whole GPU", lambda: _whole_somewhere(facts, resource))


def _whole_somewhere(facts: ClusterFacts, resource: str) -> bool:
    nodes = [item for item in facts.gpu_nodes if _offers(item, resource)]
    return not nodes or any(item.sharing.mode not in _NOT_WHOLE for item in nodes)


def _offers(node: NodeFacts, resource: str) -> bool:
    return any(item.name == resource and item.allocatable for item in node.resources)


def amounts(pods: Iterable[PodFacts]) -> list[str]:
    """What the pods ask for together, in the units of each resource (``nvidia.com/gpu: 2``): a unit may be a share of
    a GPU."""
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(pod.gpu_requests or ({"DRA": pod.dra_devices} if pod.dra_devices else {}))
    return [f"{name}: {amount}" for name, amount in sorted(total.items())]


def shared_memory(spec: PodSpec, container: Container) -> SharedMemory | None:
    """What the container mounts at ``/dev/shm``; None when it mounts nothing there and so has the runtime's 64 MB."""
    name = next((item.name for item in container.volumeMounts or () if item.mountPath.rstrip("/") == SHM), None)
    if name is None:
        return None
    volume = next((item for item in spec.volumes or () if item.get("name") == name), {})
    empty = volume.get("emptyDir")
    if not isinstance(empty, dict):
        return SharedMemory("disk" if "emptyDir" in volume else "other", None, name)
    return SharedMemory("memory" if empty.get("medium") == "Memory" else "disk", mebi(empty.get("sizeLimit")), name)


def mebi(amount: Any) -> int | None:
    """A quantity of bytes in MiB; None when it is none."""
    value = parse_quantity(amount) if isinstance(amount, str | int | float) else None
    return None if value is None else int(value / _MEBI)


def has_large_shm(pod: PodFacts) -> bool:
    """Whether shared memory comes some other way than by a mount: from the host, or from a CRI-O annotation."""
    spec = pod.pod.spec
    return bool(spec and spec.hostIPC) or _CRIO_SHM in (pod.pod.metadata.annotations or {})


def env_value(pod: PodFacts, name: str) -> str | None:
    """Value of an environment variable in the first container that sets it as plain text."""
    spec = pod.pod.spec
    for container in (spec.containers if spec else None) or ():
        for variable in container.env or ():
            if variable.name == name:
                return variable.value
    return None


def shm_crash(pod: PodFacts) -> str | None:
    """What a container of the pod said when it died for want of shared memory; None when none did."""
    for status in (pod.pod.status.containerStatuses if pod.pod.status else None) or ():
        said = last_words(status)
        if said and _SHM_CRASH.search(said):
            return said
        for state in (status.state, status.lastState):
            if state and state.terminated and state.terminated.exitCode == _BUS_ERROR:
                return "exit code 135 (bus error)"
    return None


def privileged(pod: PodFacts) -> bool:
    """Whether a container of the pod is privileged, and so sees all devices of the node."""
    spec = pod.pod.spec
    containers = (spec.containers if spec else None) or ()
    return any((item.securityContext or {}).get("privileged") is True for item in containers)


def lacks_ipc_lock(pod: PodFacts) -> bool:
    """Whether no container of the pod that asks for a GPU or a network device may lock memory."""
    spec = pod.pod.spec
    contexts = [item.securityContext or {} for item in (spec.containers if spec else None) or ()]
    return not any(_locks(context) for context in contexts)


def _locks(context: dict[str, Any]) -> bool:
    added = (context.get("capabilities") or {}).get("add") or ()
    names = {str(name).upper().removeprefix("CAP_") for name in added}
    return context.get("privileged") is True or bool(names & {"IPC_LOCK", "ALL"})


def reaches_fast_network(pod: PodFacts) -> bool:
    """Whether the pod has a way to the fast network: it asks for a device, by resource or by claim, attaches a
    network, or sees the devices of its node."""
    spec = pod.pod.spec
    if spec is None or fast_network_requests(spec):
        return True
    if spec.resourceClaims or privileged(pod):
        return True
    annotations = pod.pod.metadata.annotations or {}
    if annotations.get("k8s.v1.cni.cncf.io/networks") or annotations.get("networking.gke.io/interfaces"):
        return True
    paths = [(volume.get("hostPath") or {}).get("path") for volume in spec.volumes or ()]
    return any(isinstance(path, str) and path.startswith("/dev/infiniband") for path in paths)
