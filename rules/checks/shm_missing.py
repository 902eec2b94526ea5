"""A pod with several GPUs has nothing mounted at /dev/shm, so its shared memory is 64 MB.

What:
    A pod asks for two or more whole GPUs, or is a worker of a training job, and a container that asks for them mounts
    nothing at ``/dev/shm``. Left alone: pods with the host's IPC, CRI-O's ``ShmSize`` annotation or
    ``NCCL_SHM_DISABLE``; shares, MIG devices and partitions, which are no set of GPUs that work together; pods with one
    GPU that serve. Workers with one GPU are low: they need it for loading data.

Why:
    Container runtimes give a container 64 MB of shared memory. Between the GPUs of one pod NCCL and RCCL pass data
    through it, and PyTorch's data loaders their batches. When it is full the program dies with an NCCL system error or
    a bus error, or falls back to a slower way. High when a container has already died of it.

Fix:
    Mount an emptyDir with medium Memory and a size limit at /dev/shm. What is written there counts as memory of the
    container, so raise its memory limit by as much.

Source:
    seed S10; https://github.com/NVIDIA/nccl/issues/525;
    https://github.com/vllm-project/production-stack/issues/276; Kubernetes documentation, volumes, emptyDir.

Seeds: S10
"""

from collections.abc import Iterator

from rules.checks._devices import (
    env_value,
    gpu_containers,
    has_large_shm,
    shared_memory,
    shm_crash,
    whole_gpus,
)
from rules.checks._kit import Value, found, gpus, names, note, of, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

DEFAULT_MIB = 64
_TRAINS = frozenset({"PyTorchJob", "TFJob", "PaddleJob", "JAXJob", "JobSet", "TrainJob"})


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    workers = {pod.ref for group in facts.workload_groups if group.ref.kind in _TRAINS for pod in group.pods}
    lacking: list[PodFacts] = []
    for pod in facts.gpu_pods:
        if pod.terminal or pod.is_daemon or not (pod.gpu_requests or pod.dra_devices):
            continue
        yield pod.ref
        wants = whole_gpus(facts, pod) > 1 or (pod.ref in workers and whole_gpus(facts, pod) > 0)
        if wants and not _served(pod) and _without(pod):
            lacking.append(pod)
    for workload, pods in by_workload(facts, lacking).items():
        yield _finding(facts, workload, pods)


def _served(pod: PodFacts) -> bool:
    disabled = env_value(pod, "NCCL_SHM_DISABLE")
    return has_large_shm(pod) or disabled not in (None, "", "0")


def _without(pod: PodFacts) -> list[str]:
    """Names of containers of the pod that ask for GPUs and have no shared memory in memory."""
    spec = pod.pod.spec
    if spec is None:
        return []
    mounts = [(item.name, shared_memory(spec, item)) for item in gpu_containers(pod)]
    return [name for name, mount in mounts if mount is None or mount.kind == "disk"]


def _finding(facts: ClusterFacts, workload: ObjectRef, pods: list[PodFacts]) -> Finding:
    crashed = [pod for pod in pods if shm_crash(pod)]
    on_disk = all(shared_memory(pod.pod.spec, item) for pod in pods if pod.pod.spec for item in gpu_containers(pod))
    most = max(whole_gpus(facts, pod) for pod in pods)
    light = Severity.LOW if most < 2 or (on_disk and not crashed) else Severity.MEDIUM
    return found(
        Severity.HIGH if crashed else light,
        *(pod.ref for pod in sorted(pods, key=lambda pod: (not shm_crash(pod), pod.ref))),
        remedy="disk" if on_disk else "default",
        notes=_notes(facts, crashed, on_disk, most),
        identity=str(workload),
        workload=short(workload),
        kind=workload.kind,
        pods=of(names(pod.ref for pod in pods)),
        gpus=gpus(most, "spec.containers[].resources"),
        container=of(_without(pods[0]), "spec.containers[].volumeMounts"),
        shm=Value(None if on_disk else DEFAULT_MIB, "MiB"),
    )


def _notes(facts: ClusterFacts, crashed: list[PodFacts], on_disk: bool, most: int) -> Iterator[Note]:
    if on_disk:
        yield note("on_disk")
    if most < 2:
        yield note("one_gpu")
    if crashed:
        yield note("crashed", crashed=of(names(pod.ref for pod in crashed)), said=of(_line(shm_crash(crashed[0]))))
    fine = _siblings(facts, crashed)
    if fine:
        yield note("one_gpu_runs", fine=of(names(pod.ref for pod in fine)))


def _siblings(facts: ClusterFacts, crashed: list[PodFacts]) -> list[PodFacts]:
    """Pods beside those that crashed that run the same image on one GPU, which needs no shared memory."""
    if not crashed:
        return []
    running = facts.remember("pods that run on one GPU, by image", lambda: _on_one_gpu(facts))
    images = {(pod.ref.namespace, item.image) for pod in crashed for item in gpu_containers(pod)}
    return list({pod.ref: pod for image in images for pod in running.get(image, ())}.values())


def _on_one_gpu(facts: ClusterFacts) -> dict[tuple[str, str | None], list[PodFacts]]:
    found: dict[tuple[str, str | None], list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        if pod.phase == "Running" and whole_gpus(facts, pod) == 1:
            for item in gpu_containers(pod):
                found.setdefault((pod.ref.namespace, item.image), []).append(pod)
    return found


def _line(said: str | None) -> str | None:
    """The end of what was said, which names the cause, in one line."""
    text = " ".join((said or "").split())
    return text if len(text) <= 120 else f"…{text[-119:]}"


RULE = Rule(
    id="shm-missing",
    family="training",
    severity=Severity.MEDIUM,
    seeds=("S10",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
