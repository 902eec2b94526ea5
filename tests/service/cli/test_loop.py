"""Running a coroutine from a command."""

import pytest

from service.cli.loop import run


class Large:
    """Something whose repr would be costly."""

    def __init__(self) -> None:
        self.printed = 0

    def __repr__(self) -> str:
        self.printed += 1
        return "large"


async def given(item: Large) -> Large:
    return item


def test_never_prints_what_a_coroutine_gives() -> None:
    item = Large()

    assert run(given(item)) is item
    assert item.printed == 0


def test_raises_what_the_coroutine_raises() -> None:
    async def fails() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        run(fails())
