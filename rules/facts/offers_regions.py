"""Where a region of a provider is: country codes (ISO 3166, lower case), and the areas ``eu`` and ``latam``.

The table is ``rules/data/regions.json``; ``eu`` means the 27 member states, so that it answers for data protection:
London, Oslo and Zurich are not in it.
"""

import re
from functools import cache, lru_cache
from pathlib import Path

import msgspec

_DATA = Path(__file__).parent.parent / "data" / "regions.json"


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str
    countries: dict[str, str]
    source: str
    as_of: str


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    regions: tuple[_Row, ...]
    places: dict[str, str]
    areas: dict[str, frozenset[str]]
    areas_source: str
    areas_as_of: str


@cache
def _tables() -> _Tables:
    return msgspec.json.decode(_DATA.read_bytes(), type=_Tables)


@cache
def _countries() -> dict[tuple[str, str], str]:
    return {(row.provider, name.lower()): code for row in _tables().regions for name, code in row.countries.items()}


@lru_cache(maxsize=4096)
def countries_of(provider: str, region: str | None) -> frozenset[str] | None:
    """Countries that a region is in: one, or several where a price list names several; None when unknown.

    A list such as ``EU / US`` gives the codes ``eu`` (somewhere in the Union) and ``us``.
    """
    if region is None or region == "all":
        return None
    code = _countries().get((provider, region.lower()))
    if code is not None:
        return frozenset({code})
    suffix = re.fullmatch(r".*, ([A-Z]{2})", region)
    if suffix:
        return frozenset({suffix[1].lower()})
    places = _tables().places
    parts = [part.strip().lower() for part in region.split(" / ")]
    if len(parts) > 1:
        codes = {places.get(part, part if part in ("eu", "us") else None) for part in parts}
        return None if None in codes else frozenset(filter(None, codes))
    words = [word for word in re.split(r"[^a-z]+", region.lower()) if word in places]
    return frozenset({places[words[0]]}) if words else None


def in_area(countries: frozenset[str] | None, area: str) -> bool | None:
    """Whether what is offered in these countries is offered in a country or area; None when that cannot be told.

    Args:
        area: a country code, ``eu`` or ``latam``.
    """
    if countries is None:
        return None
    members = _tables().areas.get(area, frozenset()) | {area}
    if countries & members:
        return True
    return None if any(_wider(code, area) for code in countries) else False


def _wider(code: str, area: str) -> bool:
    """Whether ``code`` is an area in which the country ``area`` lies."""
    return area in _tables().areas.get(code, frozenset())


def is_place(word: str) -> bool:
    """Whether a word can be a country code or an area, and not the name of a provider's region."""
    return word in _tables().areas or re.fullmatch(r"[a-z]{2}", word) is not None
