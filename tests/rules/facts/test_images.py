"""Images of GPU containers, as a registry would be asked for them."""

from typing import Any

from rules.facts.images import ImageUse
from tests.rules.checks.kit import cluster, container_status, node, pod

DIGEST = "sha256:" + "a" * 64


def uses(image_id: str | None) -> list[ImageUse]:
    status = container_status(ready=True)
    if image_id:
        status["containerStatuses"][0]["imageID"] = image_id
    train = pod("train", on="gpu-1", image="nvcr.io/team/train:latest", gpus={"nvidia.com/gpu": 1}, status=status)
    return list(cluster(node("gpu-1", gpus={"nvidia.com/gpu": 8}), train).gpu_images)


def test_what_runs_is_named_by_its_digest() -> None:
    assert uses(f"nvcr.io/team/train@{DIGEST}") == [ImageUse(f"nvcr.io/team/train@{DIGEST}")]
    assert uses(f"docker-pullable://team/train@{DIGEST}") == [ImageUse(f"team/train@{DIGEST}")]


def test_without_a_digest_in_a_registry_the_image_of_the_spec_counts() -> None:
    for image_id in (None, DIGEST, f"docker://{DIGEST}", "nonsense here"):
        assert uses(image_id) == [ImageUse("nvcr.io/team/train:latest")]


def test_only_gpu_containers_of_pods_that_are_not_finished_are_asked_for() -> None:
    cpu = pod("web", on="gpu-1", image="nginx:1")
    done = pod("done", on="gpu-1", image="nvcr.io/team/done:1", gpus={"nvidia.com/gpu": 1}, phase="Succeeded")
    waiting = pod("waiting", image="nvcr.io/team/waiting:1", gpus={"nvidia.com/gpu": 1}, phase="Pending")
    found = cluster(node("gpu-1", gpus={"nvidia.com/gpu": 8}), cpu, done, waiting).gpu_images
    assert found == (ImageUse("nvcr.io/team/waiting:1"),)


def test_the_architecture_is_that_of_the_node_and_amd64_where_both_run_it() -> None:
    def gpu_node(name: str, arch: str) -> dict[str, Any]:
        made = node(name, gpus={"nvidia.com/gpu": 8})
        made["status"]["nodeInfo"] = {"architecture": arch}
        return made

    nodes = (gpu_node("a", "arm64"), gpu_node("b", "amd64"))
    pods = [pod(f"p-{on}", on=on, image="x/y:1", gpus={"nvidia.com/gpu": 1}) for on in ("a", "b")]
    assert cluster(*nodes, pods[0]).gpu_images == (ImageUse("x/y:1", "arm64"),)
    assert cluster(*nodes, *pods).gpu_images == (ImageUse("x/y:1", "amd64"),)
    assert cluster(*nodes, *reversed(pods)).gpu_images == (ImageUse("x/y:1", "amd64"),)
