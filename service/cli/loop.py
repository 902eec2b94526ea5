"""Running a coroutine from a command."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """What ``main`` gives, as :func:`asyncio.run` would give it, at the same cost however large that is.

    When asyncio.run takes its SIGINT handler away, the signal module looks that handler up among its constants; the
    error that tells "not found" is dropped, yet it was worded with the handler's repr, which holds the task's, which
    holds that of the whole result: seconds, and hundreds of MiB, for the objects of a large cluster.
    """
    given: list[Result] = []

    async def keep() -> None:
        given.append(await main)

    asyncio.run(keep())
    return given[0]
