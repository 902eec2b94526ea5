from collections.abc import AsyncIterator

import httpx
import pytest

from service.settings import Settings
from tests.service.api.doubles import DoubleAdvisor, serving


@pytest.fixture
def advisor() -> DoubleAdvisor:
    return DoubleAdvisor()


@pytest.fixture
async def client(advisor: DoubleAdvisor) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(Settings(), advisor) as client:
        yield client
