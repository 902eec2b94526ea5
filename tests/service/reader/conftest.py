from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from service.reader.client import ModelReader
from service.reader.settings import ReaderSettings
from tests.fakes.model import FakeModel

Make = Callable[..., ModelReader]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as running:
        yield running


@pytest.fixture
async def make(model: FakeModel, clock: Clock) -> AsyncIterator[Make]:
    """Readers of the stand-in; settings as keywords."""
    made: list[ModelReader] = []

    def reader(**fields: Any) -> ModelReader:
        settings = ReaderSettings(**{"base_url": model.url, "model": "small", **fields})
        made.append(ModelReader(settings, clock=clock))
        return made[-1]

    yield reader
    for item in made:
        await item.close()
