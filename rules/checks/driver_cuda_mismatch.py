"""The image of a GPU pod needs a newer driver, or another GPU, than its node has.

What:
    For every unfinished pod that holds a GPU, the CUDA version of the images that use it (from the image's own
    configuration where a registry was asked, else from the tag or the variable CUDA_VERSION) is judged against the
    driver and the GPU of the node. Reported are: driver too old, runs only with the forward compatibility package
    (unless the image carries it and does not crash), and software that has no code for the GPU. CUDA's minor version
    compatibility (same major version, driver at or above the family's floor) is no trouble; it is reported, as a
    suspicion, only when the container keeps crashing and its CUDA is newer than the newest that the driver names.
    Nothing is said where the image's CUDA, the driver or the GPU is unknown. Pods of one owner with the same image,
    driver and GPU are one finding.

Why:
    It is the most common cause of pods that schedule and then fail. Containers bring CUDA along, but the driver comes
    from the node. High while the container crashes or has not yet proved that it runs; a container that has been
    running without a restart is medium or low, because it may not have touched the GPU, or carries the package.

Fix:
    A newer driver on the node, or an image built for an older CUDA.

Source:
    seeds S4, S19; https://docs.nvidia.com/deploy/cuda-compatibility/; the release table of the CUDA toolkit (see
    :mod:`rules.compat`); NVIDIA/k8s-device-plugin internal/lm/nvml.go (labels of driver and runtime version).

Seeds: S4, S19
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from rules.checks._components import last_words
from rules.checks._kit import age, found, names, note, of, owner_of, short
from rules.compat import Verdict, image_cuda
from rules.compat import check as judge
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.images import gpu_containers, reference
from rules.facts.objects import Container, ContainerStatus
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_PROVEN_AFTER_SECONDS = 600
_FORMS = ("driver_too_old", "needs_forward_compat", "arch_unsupported")
_CRASHING = ("CrashLoopBackOff", "RunContainerError", "CreateContainerError", "StartError")
_SYMPTOM = re.compile(
    r"driver version is insufficient|forward compatibility was attempted|no kernel image is available"
    r"|unsupported toolchain|unsatisfied condition: cuda|system has unsupported display driver|CUDA_ERROR_NO_BINARY",
    re.IGNORECASE,
)
_OTHER_CAUSE = re.compile(
    r"out of memory|NCCL|No space left|ImportError|ModuleNotFoundError|Permission denied", re.IGNORECASE
)


class Case(NamedTuple):
    """What the pods of one finding share."""

    owner: ObjectRef
    image: str
    driver: str
    gpu: str | None
    form: str
    software: str
    read_from: str
    floor_driver: str | None
    min_driver: str | None
    source: str | None

    @property
    def identity(self) -> str:
        """What makes it one trouble. The version is not in it: behind one moving tag pods may run two of them."""
        return " ".join([str(self.owner), self.image, self.driver, self.gpu or "", self.form])


class Witness(NamedTuple):
    """One container that shows it: its pod and node, and how it fares (``crashing``, ``running`` or ``new``)."""

    pod: PodFacts
    node: NodeFacts
    state: str
    restarts: int
    said: str | None


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner, image, driver and GPU."""
    cases: dict[str, tuple[Case, list[Witness]]] = {}
    configs = facts.image_configs

    @cache
    def judged(config: str | None, **case: str | None) -> Verdict:
        return judge(**case, image_config=configs[config] if config else None)  # type: ignore[arg-type]

    for node in facts.nodes:
        if node.driver_version is None:
            continue
        for pod in node.gpu_pods:
            yield pod.ref
            for container in gpu_containers(pod):
                shown = _judge(facts, judged, node, pod, container)
                if shown is not None:
                    cases.setdefault(shown[0].identity, (shown[0], []))[1].append(shown[1])
    for _, (case, witnesses) in sorted(cases.items()):
        yield witnesses[0].pod.ref
        yield _finding(facts, case, witnesses)


def _judge(
    facts: ClusterFacts, judged: Callable[..., Verdict], node: NodeFacts, pod: PodFacts, container: Container
) -> tuple[Case, Witness] | None:
    """The case that a container belongs to; None when there is nothing to say of it."""
    tagged = image_cuda(container.image) if container.image else None
    stated = None if tagged and (tagged.cuda or tagged.rocm) else stated_cuda(container)
    cuda = (tagged.cuda if tagged else None) or stated
    named = reference(pod, container)
    verdict = judged(
        named if named in facts.image_configs else None,
        driver=node.driver_version,
        cuda=stated,
        image=container.image,
        gpu=node.product,
        vendor=node.vendor,
        compute_capability=compute_capability(node),
    )
    witness = _witness(facts, node, pod, container)
    configured = verdict.image is not None and verdict.image.how == "config"
    if configured:
        tagged, cuda = verdict.image, verdict.image.cuda if verdict.image else None
    form = str(verdict.verdict)
    if form == "ok_minor_compat" and _suspicious(witness, cuda, node.cuda_ceiling):
        form = "minor_suspect"
    elif form not in _FORMS:
        return None
    if form == "needs_forward_compat" and verdict.image and verdict.image.compat and witness.state != "crashing":
        return None
    software = f"CUDA {cuda}" if cuda else f"ROCm {tagged.rocm}" if tagged and tagged.rocm else "CUDA"
    case = Case(
        owner=owner_of(pod),
        image=container.image or "",
        driver=node.driver_version or "",
        gpu=node.product,
        form=form,
        software=software,
        read_from="configuration of the image" if configured else "tag of the image, or CUDA_VERSION",
        floor_driver=verdict.floor_driver,
        min_driver=verdict.min_driver,
        source=verdict.reasons[0].source,
    )
    return case, witness


def compute_capability(node: NodeFacts) -> str | None:
    """The GPU's compute capability by the node's labels, for example ``8.9``."""
    major = node.labels.get("nvidia.com/gpu.compute.major")
    minor = node.labels.get("nvidia.com/gpu.compute.minor")
    return f"{major}.{minor}" if major and minor else None


def stated_cuda(container: Container) -> str | None:
    """The CUDA version that the container's variable ``CUDA_VERSION`` states."""
    stated = next((item.value for item in container.env or [] if item.name == "CUDA_VERSION"), None)
    return stated if stated and re.fullmatch(r"\d+\.\d+(\.\d+)?", stated) else None


def _witness(facts: ClusterFacts, node: NodeFacts, pod: PodFacts, container: Container) -> Witness:
    statuses = (pod.pod.status.containerStatuses if pod.pod.status else None) or []
    status = next((item for item in statuses if item.name == container.name), None)
    if status is None:
        return Witness(pod, node, "new", 0, None)
    return Witness(pod, node, _state(facts, status), status.restartCount or 0, last_words(status))


def _state(facts: ClusterFacts, status: ContainerStatus) -> str:
    waiting = status.state.waiting if status.state else None
    if waiting and waiting.reason in _CRASHING:
        return "out_of_memory" if _ended_by_memory(status) else "crashing"
    running = status.state.running if status.state else None
    up = age(facts, running.startedAt) if running else None
    proven = up is not None and up >= _PROVEN_AFTER_SECONDS and status.ready is not False
    return "running" if proven and not status.restartCount else "new"


def _ended_by_memory(status: ContainerStatus) -> bool:
    ended = status.lastState.terminated if status.lastState else None
    return bool(ended and ended.reason == "OOMKilled")


def _suspicious(witness: Witness, cuda: str | None, ceiling: str | None) -> bool:
    """Crashing, with a CUDA above what the driver names, and with no other cause in its last words."""
    if witness.state != "crashing" or cuda is None or ceiling is None or _numbers(cuda) <= _numbers(ceiling):
        return False
    said = witness.said or ""
    return bool(_SYMPTOM.search(said)) or not _OTHER_CAUSE.search(said)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _finding(facts: ClusterFacts, case: Case, witnesses: list[Witness]) -> Finding:
    witnesses = sorted(witnesses, key=lambda item: item.pod.ref)
    first = next((item for item in witnesses if item.state == "crashing"), witnesses[0])
    pods = [item.pod.ref for item in witnesses]
    nodes = sorted({item.node.ref for item in witnesses})
    return found(
        _severity(case.form, {item.state for item in witnesses}),
        *pods,
        *nodes,
        remedy=case.form,
        identity=case.identity,
        notes=_notes(facts, case, witnesses, first),
        pod=short(first.pod.ref),
        pod_namespace=first.pod.ref.namespace,
        pod_name=first.pod.ref.name,
        pods=of(names(pods)),
        workload=str(case.owner),
        image=of(case.image, "spec.containers[].image"),
        software=of(case.software, case.read_from),
        node=first.node.name,
        nodes=of(names(nodes)),
        driver=of(case.driver, first.node.driver_source),
        cuda_ceiling=of(first.node.cuda_ceiling, "label of the node"),
        floor_driver=of(case.floor_driver, case.source),
        min_driver=of(case.min_driver, case.source),
        gpu=of(case.gpu),
        restarts=of(max(item.restarts for item in witnesses), "status.containerStatuses[].restartCount"),
    )


def _severity(form: str, states: set[str]) -> Severity:
    if form == "minor_suspect":
        return Severity.MEDIUM
    if states & {"crashing", "new"}:
        return Severity.MEDIUM if form == "needs_forward_compat" and "crashing" not in states else Severity.HIGH
    return Severity.LOW if form == "needs_forward_compat" else Severity.MEDIUM


def _notes(facts: ClusterFacts, case: Case, witnesses: list[Witness], first: Witness) -> Iterator[Note]:
    yield note(case.form)
    states = {item.state for item in witnesses}
    if "crashing" in states:
        yield note("crashing")
    elif states == {"running"}:
        yield note("running")
    if first.said and _SYMPTOM.search(first.said):
        yield note("says", said=_cut(first.said))
    working = _works_elsewhere(facts, case)
    if working is not None:
        yield note("works_elsewhere", other_pod=short(working.ref), other_driver=_driver_of(facts, working))
    if len(witnesses) > 1:
        yield note("several")


def _works_elsewhere(facts: ClusterFacts, case: Case) -> PodFacts | None:
    """A pod with the same image that runs without a restart on a node with another driver."""
    for node in facts.nodes:
        if node.driver_version in (None, case.driver):
            continue
        for pod in node.gpu_pods:
            for container in gpu_containers(pod):
                if container.image == case.image and _witness(facts, node, pod, container).state == "running":
                    return pod
    return None


def _driver_of(facts: ClusterFacts, pod: PodFacts) -> str | None:
    node = facts.node(pod.node_name) if pod.node_name else None
    return node.driver_version if node else None


def _cut(said: str, width: int = 140) -> str:
    line = " ".join(said.split())
    return line if len(line) <= width else line[: width - 1] + "…"


RULE = Rule(
    id="driver-cuda-mismatch",
    family="compatibility",
    severity=Severity.HIGH,
    seeds=("S4", "S19"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
