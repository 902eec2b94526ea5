"""A GPU workload runs an image that its reference does not pin: tag latest or no tag, and no digest.

What:
    A container that asks for a GPU, or a DaemonSet of the GPU software, names its image with ``:latest`` or without a
    tag, and without a digest. The operator's object that says so is named with it.

Why:
    What runs changes when the pod moves to another node: a newer CUDA than the driver there supports, another version
    of the program, and several gigabytes pulled again (imagePullPolicy is Always for such references). Pods of one
    Deployment may run different things.

Fix:
    Name a version, or better the digest that runs now.

Source:
    seeds S4, S19; ROCm/gpu-operator docs/dra/dra-driver.md (its defaults use latest); Kubernetes documentation, images,
    imagePullPolicy.

Seeds: S4, S19
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.checks._components import Layer, daemon_ref, daemon_sets
from rules.checks._devices import gpu_containers
from rules.checks._kit import found, names, note, of, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.components import Role, component_rows, images_of, ref_of
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def floats(image: str) -> bool:
    """Whether a reference names neither digest nor tag, or the tag latest."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding]:
    """Yield one finding per workload, and one per DaemonSet or object of an operator."""
    floating = facts.gpu_pods_where("floating images", _of_pod)
    for workload, pods in by_workload(facts, floating).items():
        images = sorted({image for pod in pods for image in _of_pod(pod)})
        yield _finding(workload, (workload, *(pod.ref for pod in pods)), images, _running(pods))
    yield from _software(facts)


def _of_pod(pod: PodFacts) -> list[str]:
    return [item.image for item in gpu_containers(pod) if item.image and floats(item.image)]


def _running(pods: list[PodFacts]) -> list[str]:
    """Digests that run now."""
    wanted = {item.name for pod in pods for item in gpu_containers(pod) if item.image and floats(item.image)}
    statuses = [item for pod in pods for item in (pod.pod.status.containerStatuses if pod.pod.status else None) or ()]
    return sorted({item.imageID for item in statuses if item.name in wanted and item.imageID and "@" in item.imageID})


def _software(facts: ClusterFacts) -> Iterator[Finding]:
    settings: dict[ObjectRef, list[str]] = {}
    for item in _operators(facts):
        images = sorted({image for image in _images_in(item.spec or {}) if floats(image)})
        if images:
            settings[ref_of(item)] = images
    for daemon, _ in daemon_sets(facts, tuple(Layer)):
        images = [image for image in images_of(daemon) if floats(image)]
        owner = next((own for own in daemon.metadata.ownerReferences or () if own.controller), None)
        above = ObjectRef(owner.kind, daemon.metadata.namespace or "", owner.name) if owner else None
        above = next((ref for ref in settings if owner and (ref.kind, ref.name) == (owner.kind, owner.name)), above)
        if images and above in settings:
            yield _finding(above, (above, daemon_ref(daemon)), sorted({*images, *settings.pop(above)}), [])
        elif images:
            yield _finding(daemon_ref(daemon), (daemon_ref(daemon),), images, [])
    for ref, images in settings.items():
        yield _finding(ref, (ref,), images, [])


def _operators(facts: ClusterFacts) -> Iterator[OtherObject]:
    kinds = {kind.partition("/")[2] for row in component_rows() if row.role == Role.GPU_OPERATOR for kind in row.kinds}
    for kind in sorted(kinds):
        yield from facts.of_kind(kind)


def _images_in(settings: Mapping[str, Any]) -> Iterator[str]:
    """Whole image references in the settings of an operator (AMD's; NVIDIA's name repository, image and version)."""
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _images_in(value)
        elif isinstance(value, str) and value and key.lower().endswith("image") and "/" in value:
            yield value


def _finding(workload: ObjectRef, objects: tuple[ObjectRef, ...], images: list[str], running: list[str]) -> Finding:
    return found(
        Severity.LOW,
        *objects,
        remedy="digest" if running else "default",
        notes=[note("several", running=of(running))] if len(running) > 1 else (),
        identity=str(workload),
        workload=short(workload),
        kind=workload.kind,
        images=of(images, "image"),
        digest=of(running[0] if running else None, "status.containerStatuses[].imageID"),
        pods=of(names(ref for ref in objects if ref.kind == "Pod")),
    )


RULE = Rule(
    id="image-latest",
    family="compatibility",
    severity=Severity.LOW,
    seeds=("S4", "S19"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
    alone="Pod",
)
