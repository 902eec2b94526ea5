from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from service.registry.exchange import Exchange
from service.registry.reader import ImageReader
from service.registry.settings import RegistrySettings
from tests.fakes.registry import FakeRegistry

Make = Callable[..., ImageReader]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as running:
        yield running


@pytest.fixture
async def make(clock: Clock) -> AsyncIterator[Make]:
    """Readers that may ask this machine; settings as keywords."""
    made: list[ImageReader] = []

    def reader(*, resolve: Any = None, **fields: Any) -> ImageReader:
        settings = RegistrySettings(**{"hosts": ("127.0.0.1",), "enabled": True, "request_seconds": 5.0, **fields})
        made.append(ImageReader(settings, exchange=Exchange(settings, resolve=resolve), clock=clock))
        return made[-1]

    yield reader
    for item in made:
        await item.close()
