"""Reading several clusters: side by side, and none stops another."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from rules.errors import AdvisorError, InternalFault

if TYPE_CHECKING:
    from service.clusters import ClusterSettings, Connector

Outcome = TypeVar("Outcome")


async def for_each(
    clusters: "Sequence[ClusterSettings]", work: "Callable[[Connector], Awaitable[Outcome]]", *, parallel: int
) -> list[Outcome | AdvisorError]:
    """What ``work`` makes of every cluster, in their order; an error where it fails.

    Args:
        clusters: to connect to; each connection is closed after its work.
        parallel: how many are read at the same time.
    """
    from service.clusters import connect

    limit = asyncio.Semaphore(parallel)

    async def one(cluster: "ClusterSettings") -> Outcome | AdvisorError:
        async with limit:
            connector = connect(cluster)
            try:
                return await work(connector)
            except AdvisorError as error:
                return error
            except Exception as error:
                return InternalFault(f"reading {cluster.name} failed: {type(error).__name__}: {error}")
            finally:
                await connector.close()

    return list(await asyncio.gather(*map(one, clusters)))
