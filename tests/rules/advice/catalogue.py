"""The bundled catalogue, and advice over it."""

from functools import cache
from typing import Any

from rules.advice.advise import advise
from rules.advice.model import Advice
from rules.advice.request import read
from rules.facts.offers import Catalog
from rules.facts.prices import bundled
from rules.facts.providers import bundled_providers


@cache
def catalog() -> Catalog:
    """As it is packaged."""
    return Catalog(bundled_providers(), bundled())


def advice(**request: Any) -> Advice:
    """Advice on a request in plain data."""
    return advise(read(request), catalog())
