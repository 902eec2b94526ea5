"""What an API server says of itself: its version, and which API groups it serves."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from service.clusters.kinds import KindSpec
from service.clusters.refusals import Refused
from service.clusters.transport import Transport
from service.errors import ClusterAnswerInvalid

Served = Mapping[str, frozenset[str]]
"""Versions by API group."""


class _Version(msgspec.Struct, rename={"git_version": "gitVersion"}):
    git_version: str | None = None


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    name: str
    versions: list[_GroupVersion]


class _Groups(msgspec.Struct):
    groups: list[_Group]


_Shape = TypeVar("_Shape", _Version, _Groups)


async def server_version(transport: Transport) -> str | None:
    """For example ``v1.36.2``; None where a reader may not know.

    Raises:
        ClusterTrouble: the server cannot be asked.
    """
    with suppress(Refused):  # clusters may forbid even this
        return _answer(transport, await transport.get("/version"), _Version, "/version").git_version
    return None


async def served_versions(transport: Transport) -> Served | None:
    """Versions by API group, the core group left out; None when discovery is forbidden.

    Raises:
        ClusterTrouble: the server cannot be asked.
    """
    with suppress(Refused):
        groups = _answer(transport, await transport.get("/apis"), _Groups, "/apis").groups
        return {group.name: frozenset(entry.version for entry in group.versions) for group in groups}
    return None


def best_version(spec: KindSpec, served: Served | None) -> str | None:
    """The best version to ask for; None when none is served.

    The core group is not in ``/apis`` and always there. Where discovery is refused, the kind is asked for blindly.
    """
    if not spec.group or served is None:
        return spec.versions[0]
    return next((version for version in spec.versions if version in served.get(spec.group, ())), None)


def not_an_api_server(transport: Transport, detail: str) -> ClusterAnswerInvalid:
    """The error for an answer that no Kubernetes API server would give."""
    return ClusterAnswerInvalid(
        transport.cluster,
        f"{transport.server} does not answer like a Kubernetes API server: {detail}",
        "Check that the server address leads to the API server and not to a proxy or login page before it.",
    )


def _answer(transport: Transport, body: bytes, shape: type[_Shape], path: str) -> _Shape:
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.DecodeError as error:
        raise not_an_api_server(transport, f"{path} gave {error}") from error
