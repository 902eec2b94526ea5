"""One audit, once, of a cluster: read it and judge it. Knows no database, so that command lines start without one."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from rules.engine import Rule, evaluate
from rules.facts.cluster import ClusterFacts, FactsBuilder
from rules.facts.prices import PriceBook
from rules.findings import Report
from rules.policy import Policy
from service.clusters import Connector, to_facts
from service.errors import ClusterTimeout

if TYPE_CHECKING:
    from service.registry.reader import ImageConfigs


async def run_audit_once(
    connector: Connector,
    *,
    now: datetime,
    policy: Policy,
    prices: PriceBook,
    rules: Sequence[Rule] | None = None,
    deadline_seconds: float | None = None,
    images: "ImageConfigs | None" = None,
    builder: FactsBuilder | None = None,
) -> tuple[ClusterFacts, Report]:
    """Read a cluster and judge it; nothing is stored.

    Args:
        now: timezone-aware; the moment of observation of a live cluster.
        rules: None takes all rules.
        deadline_seconds: hard end, beyond the connector's own; None for none.
        images: reads image configurations; None leaves images to their tags.
        builder: keeps facts of objects that did not change since it was used last; None derives all.

    Raises:
        ClusterError, ConfigInvalid, SnapshotInvalid: the cluster could not be read.
        ClusterTimeout: the deadline passed.
    """
    if rules is None:
        from rules.checks import RULES

        rules = RULES
    try:
        async with asyncio.timeout(deadline_seconds):
            collected = await connector.collect()
            # in a thread: a large cluster takes long enough to hold up answers and health checks
            facts = await asyncio.to_thread(to_facts, connector.name, collected, now, prices, builder)
            if images is not None and facts.gpu_images:
                configs = await images.configs(facts.gpu_images)
                facts = msgspec.structs.replace(facts, image_configs=configs)
            return facts, await asyncio.to_thread(evaluate, facts, policy, rules)
    except TimeoutError as error:
        raise ClusterTimeout(
            connector.name,
            f"the audit did not end within {deadline_seconds:g} s" if deadline_seconds else "no answer in time",
            "See whether its API server is slow or far away; audit.deadline_seconds gives it more time.",
        ) from error
