from collections.abc import Iterator

import pytest

from tests.fakes.price_catalogs import PriceCatalogs


@pytest.fixture
def catalogs() -> Iterator[PriceCatalogs]:
    with PriceCatalogs() as running:
        yield running
