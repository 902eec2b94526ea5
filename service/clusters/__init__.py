"""Connecting to clusters and reading them."""

from datetime import datetime
from typing import TYPE_CHECKING

from service.clusters.config import ClusterSettings
from service.clusters.model import Collected, Connector

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts, FactsBuilder
    from rules.facts.prices import PriceBook

__all__ = ["ClusterSettings", "Collected", "Connector", "connect", "to_facts"]


def connect(settings: ClusterSettings) -> Connector:
    """The connector that ``settings`` ask for. Nothing is opened or read before ``collect``."""
    if settings.source == "snapshot":
        from service.clusters.snapshot import SnapshotConnector

        return SnapshotConnector(settings)
    from service.clusters.live import LiveConnector

    return LiveConnector(settings)


def to_facts(
    name: str, collected: Collected, now: datetime, prices: "PriceBook", builder: "FactsBuilder | None" = None
) -> "ClusterFacts":
    """Facts about what was collected.

    Args:
        name: of the cluster.
        collected: its objects.
        now: with a zone; the moment of observation of a live cluster. A snapshot brings its own.
        prices: to say what nodes cost.
        builder: of this cluster and these prices, which keeps facts of objects that did not change.
    """
    from rules.facts.cluster import FactsBuilder

    return (builder or FactsBuilder(name, prices)).build(
        collected.observed_at or now,
        nodes=collected.nodes,
        pods=collected.pods,
        events=collected.events,
        others=collected.others,
        read_kinds=collected.read_kinds,
        unreadable=collected.unreadable,
        api_groups=collected.api_groups,
    )
