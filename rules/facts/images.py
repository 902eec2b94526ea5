"""Images of GPU containers, and the configurations that registries keep of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from rules.facts.model import NodeFacts, PodFacts
from rules.facts.objects import Container

ImageConfigs = Mapping[str, Mapping[str, Any]]
"""OCI image configurations by reference, as :func:`reference` spells it."""


class ImageUse(msgspec.Struct, frozen=True, order=True):
    """An image that GPU containers use, and the architecture of their nodes."""

    reference: str
    arch: Literal["amd64", "arm64"] = "amd64"


def gpu_containers(pod: PodFacts) -> list[Container]:
    """Containers that ask for the GPU; all of them where the pod holds it in another way."""
    containers = (pod.pod.spec.containers if pod.pod.spec else None) or []
    asking = [
        item
        for item in containers
        if item.resources
        and any(
            name in pod.gpu_requests for name in {**(item.resources.requests or {}), **(item.resources.limits or {})}
        )
    ]
    return asking or list(containers)


def reference(pod: PodFacts, container: Container) -> str | None:
    """What names the image of a container best: by digest what runs, once it runs; else the image of the spec.

    A tag may move after the pod was started; the digest in the container's status does not.
    """
    from rules.compat.images import parse  # here, because its package reads YAML, which facts alone do without

    statuses = (pod.pod.status.containerStatuses if pod.pod.status else None) or []
    running = next((item.imageID for item in statuses if item.name == container.name), None)
    read = parse(running) if running else None
    if read is not None and read.digest is not None:
        return f"{read.host}/{read.path}@{read.digest}" if read.host else f"{read.path}@{read.digest}"
    return container.image


def gpu_images(nodes: Iterable[NodeFacts], pods: Iterable[PodFacts]) -> tuple[ImageUse, ...]:
    """The images of all GPU containers of pods that are not finished, each once and in order."""
    arches = {
        node.name: node.node.status.nodeInfo.architecture
        for node in nodes
        if node.node.status and node.node.status.nodeInfo
    }
    found: dict[str, ImageUse] = {}
    for pod in pods:
        if pod.terminal or not (pod.gpu_requests or pod.other_gpu_claim):
            continue
        arm = arches.get(pod.node_name or "") == "arm64"
        for container in gpu_containers(pod):
            named = reference(pod, container)
            if named and not (arm and named in found):
                found[named] = ImageUse(named, "arm64" if arm else "amd64")
    return tuple(sorted(found.values()))
