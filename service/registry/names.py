"""Where an image is: its registry, repository and tag or digest; and which addresses may be asked at all."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from rules.compat.images import parse

DOCKER_HUB = "docker.io"
_HUB_API = "registry-1.docker.io"
_HUB_NAMES = frozenset({DOCKER_HUB, "index.docker.io", "registry.hub.docker.com", _HUB_API})
_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::\d{1,5})?\Z"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


class Place(msgspec.Struct, frozen=True):
    """One image in one registry.

    Attributes:
        host: as people write it, with the port where there is one; ``docker.io`` for Docker Hub.
        repository: with ``library/`` where Docker Hub wants it.
        reference: the digest, or else the tag.
    """

    host: str
    repository: str
    reference: str

    @property
    def pinned(self) -> bool:
        """True for a digest: what it names never changes."""
        return DIGEST.match(self.reference) is not None

    @property
    def base_url(self) -> str:
        """The registry's API, for example ``https://registry-1.docker.io/v2``."""
        host = _HUB_API if self.host == DOCKER_HUB else self.host
        return f"{'http' if is_loopback(host_name(host)) else 'https'}://{host}/v2"

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}{'@' if self.pinned else ':'}{self.reference}"


def place_of(image: str) -> Place | None:
    """Where ``image`` is; None for a text that names no image in a registry (an image id, nonsense)."""
    read = parse(image)
    if read is None:
        return None
    host = known_name(read.host or DOCKER_HUB)
    reference = read.digest or read.tag or "latest"
    if not _HOST.match(host) or not (DIGEST.match(reference) if read.digest else _TAG.match(reference)):
        return None
    single = host == DOCKER_HUB and "/" not in read.path
    return Place(host, f"library/{read.path}" if single else read.path, reference)


def known_name(host: str) -> str:
    """``host`` in lower case; all names of Docker Hub become ``docker.io``."""
    lowered = host.lower()
    return DOCKER_HUB if lowered in _HUB_NAMES else lowered


def host_name(host: str) -> str:
    """``host`` without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def netloc_of(url: str) -> str:
    """Host and port of a URL, without a user; empty for what is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def named_in(host: str, patterns: Iterable[str]) -> bool:
    """Whether one of ``patterns`` (``nvcr.io``, ``*.example.com``, each with or without a port) is ``host``."""
    full, bare = known_name(host), host_name(known_name(host))
    for pattern in map(known_name, patterns):
        if pattern.startswith("*."):
            if bare.endswith(pattern[1:]) or full.endswith(pattern[1:]):
                return True
        elif pattern in (full, bare):
            return True
    return False


def is_loopback(name: str) -> bool:
    """Whether a host name or address is this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def inner_address(addresses: Sequence[str]) -> str | None:
    """The first of ``addresses`` that lies in this machine or on its link (where clouds serve credentials to it), or
    that is no address of one host; None when all are of other machines. Private networks are other machines."""
    for text in addresses:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
        mapped = getattr(address, "ipv4_mapped", None) or address
        if mapped.is_loopback or mapped.is_link_local or mapped.is_multicast or mapped.is_unspecified:
            return text
        if str(mapped) in _METADATA:
            return text
    return None


_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"})
"""Metadata services outside the link-local range: AWS over IPv6, Alibaba, Azure's host, Oracle."""
