"""Connecting to clusters and reading them."""

from datetime import datetime
from typing import TYPE_CHECKING

from service.clusters.config import ClusterSettings
from service.clusters.model import Collected, Connector

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts
    from rules.facts.prices import PriceBook

__all__ = ["ClusterSettings", "Collected", "Connector", "connect", "to_facts"]


def connect(settings: ClusterSettings) -> Connector:
    """The connector that ``settings`` ask for. Nothing is opened or read before ``collect``."""
    if settings.source == "snapshot":
        from service.clusters.snapshot import SnapshotConnector

        return SnapshotConnector(settings)
    from service.clusters.live import LiveConnector

    return LiveConnector(settings)


def to_facts(name: str, collected: Collected, now: datetime, prices: "PriceBook") -> "ClusterFacts":
    """Facts about what was collected.

    Args:
        name: of the cluster.
        collected: its objects.
        now: with a zone; the moment of observation of a live cluster. A snapshot brings its own.
        prices: to say what nodes cost.
    """
    from rules.facts.cluster import build

    return build(
        name,
        collected.observed_at or now,
        nodes=collected.nodes,
        pods=collected.pods,
        events=collected.events,
        others=collected.others,
        read_kinds=collected.read_kinds,
        unreadable=collected.unreadable,
        prices=prices,
        api_groups=collected.api_groups,
    )
