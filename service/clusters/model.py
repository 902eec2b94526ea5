"""What connectors have in common: the protocol and what a collection gives."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

import msgspec

from rules.facts.objects import Event, Node, OtherObject, Pod
from rules.findings import Unreadable
from service.clusters.config import Source

ObservedFrom = Literal["setting", "objects", "file"]


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one cluster at one moment.

    Attributes:
        others: objects of further kinds, by kind.
        read_kinds: kinds read completely; a kind outside it is unknown, not empty.
        unreadable: kinds that could not be read, with the reason.
        observed_at: when the objects were true; None for a live cluster: now.
        observed_from: where ``observed_at`` comes from: the ``setting``, the newest timestamp in the ``objects``, or
            the modification time of the newest ``file``; None for a live cluster.
        version: of the API server, for example ``v1.36.2``; None when it is not known.
        api_groups: that the API server serves, the core group left out; None when it was not asked, or would not say.
        current_at: by kind, when the API server last confirmed its objects, where a cluster is followed; a kind that
            was confirmed too long ago is in ``unreadable``.
        notes: what is less than it should be although it can be read, one sentence each.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    events: tuple[Event, ...]
    others: Mapping[str, tuple[OtherObject, ...]]
    read_kinds: frozenset[str]
    unreadable: tuple[Unreadable, ...]
    observed_at: datetime | None = None
    observed_from: ObservedFrom | None = None
    version: str | None = None
    api_groups: frozenset[str] | None = None
    current_at: Mapping[str, datetime] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Connector(Protocol):
    """Reads one cluster. All three kinds give equal objects for an equal cluster."""

    @property
    def name(self) -> str:
        """The configured name of the cluster."""
        ...

    @property
    def kind(self) -> Source:
        """Which connector it is."""
        ...

    async def collect(self) -> Collected:
        """Read everything that rules need.

        Kinds that cannot be read are in ``unreadable``, as long as the nodes could be read.

        Raises:
            ClusterUnauthorized, ClusterForbidden, ClusterUnreachable, ClusterTimeout, ClusterUnavailable,
            ClusterAnswerInvalid: the cluster could not be read at all.
            ConfigInvalid: its kubeconfig cannot be used.
            SnapshotInvalid: its snapshot cannot be read.
        """
        ...

    async def close(self) -> None:
        """Give connections back. A connector may be collected again afterwards."""
        ...


@runtime_checkable
class Followed(Protocol):
    """A connector that can follow its cluster: ``collect`` then gives what is true now and asks for nothing."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is less than it should be although everything can be read, one sentence each."""
        ...

    def follow(self) -> bool:
        """Begin to follow, in the background, until it is closed; False where the settings do not want it."""
        ...

    async def changed(self) -> None:
        """Wait until something that matters is different from when it was last waited for."""
        ...
