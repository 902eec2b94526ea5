"""Where images are, and which addresses may be asked."""

import pytest

from service.registry.names import inner_address, named_in, place_of

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "place"),
    [
        ("python", "docker.io/library/python:latest"),
        ("nvidia/cuda:12.4.1-base", "docker.io/nvidia/cuda:12.4.1-base"),
        ("docker.io/nvidia/cuda:12.4.1-base", "docker.io/nvidia/cuda:12.4.1-base"),
        ("index.docker.io/python:3", "docker.io/library/python:3"),
        ("nvcr.io/nvidia/pytorch:25.04-py3", "nvcr.io/nvidia/pytorch:25.04-py3"),
        ("Registry.Example:5000/a/b/c:V1", "registry.example:5000/a/b/c:V1"),
        (f"docker-pullable://nvcr.io/nvidia/cuda@{DIGEST}", f"nvcr.io/nvidia/cuda@{DIGEST}"),
        (f"nvcr.io/nvidia/cuda:12@{DIGEST}", f"nvcr.io/nvidia/cuda@{DIGEST}"),
        ("[fd00::1]:5000/a/b:1", "[fd00::1]:5000/a/b:1"),
    ],
)
def test_a_reference_names_one_place(image: str, place: str) -> None:
    assert str(place_of(image)) == place


@pytest.mark.parametrize(
    "image",
    [
        "",
        "  ",
        "a b",
        DIGEST,
        "nvcr.io/../x:1",
        "evil.example@nvcr.io/x:1",
        "a/b:../../x",
        "nvcr.io/x@sha256:abc",
        "://",
    ],
)
def test_what_is_no_reference_names_none(image: str) -> None:
    place = place_of(image)
    assert place is None or "library/sha256" in str(place)


def test_docker_hub_is_one_registry_under_all_of_its_names() -> None:
    place = place_of("nvidia/cuda:12")
    assert place is not None
    assert place.base_url == "https://registry-1.docker.io/v2"
    assert named_in("docker.io", ["registry-1.docker.io"])


@pytest.mark.parametrize(
    ("host", "pattern", "named"),
    [
        ("nvcr.io", "nvcr.io", True),
        ("nvcr.io", "NVCR.IO", True),
        ("evil-nvcr.io", "nvcr.io", False),
        ("a.example.com", "*.example.com", True),
        ("example.com", "*.example.com", False),
        ("evilexample.com", "*.example.com", False),
        ("a.example.com:5000", "*.example.com", True),
        ("a.example.com:5000", "a.example.com:5000", True),
        ("a.example.com:5000", "a.example.com:5001", False),
    ],
)
def test_patterns_of_hosts(host: str, pattern: str, named: bool) -> None:
    assert named_in(host, [pattern]) is named


@pytest.mark.parametrize(
    ("address", "inner"),
    [
        ("127.0.0.1", True),
        ("169.254.169.254", True),
        ("::1", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("0.0.0.0", True),
        ("fd00:ec2::254", True),
        ("10.0.0.7", False),
        ("203.0.113.9", False),
        ("a.example.com", False),
    ],
)
def test_this_machine_and_its_link_are_told_from_other_machines(address: str, inner: bool) -> None:
    assert (inner_address([address]) is not None) is inner
