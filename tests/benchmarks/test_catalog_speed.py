"""How long ranking over all bundled offers and providers takes; printed."""

import time
from typing import Any

from rules.facts.offers import Catalog, Filters
from rules.facts.offers_search import find_offers, search
from rules.facts.prices import bundled
from rules.facts.providers import bundled_providers

ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"gpu": "h100", "gpu_count": 8, "nodes": 4, "interconnect": "infiniband"},
    {"gpu": ["a100", "h100", "l40s"], "region": "eu", "managed": True, "max_price_usd_hour": 4},
    {"vendor": "nvidia", "min_vram_gb": 40, "spot": True, "scale_to_zero": True, "shared_storage": "any"},
)


def test_ranking_over_all_providers_and_offers() -> None:
    catalog = Catalog(bundled_providers(), bundled())
    began = time.perf_counter()
    rows = sum(map(len, catalog.rows.values()))
    print(f"\n{len(catalog.book.offers)} offers of {len(catalog.providers)} providers made ready (once)", end=": ")
    print(f"{(time.perf_counter() - began) * 1000:.1f} ms, {rows} newest rows")
    for values in ASKED:
        filters = Filters.of(values)
        began = time.perf_counter()
        found = search(catalog, filters)
        searched = time.perf_counter() - began
        began = time.perf_counter()
        offers = find_offers(catalog, filters)
        listed = time.perf_counter() - began
        print(f"{values}: {searched * 1000:.1f} ms to rank providers, {listed * 1000:.1f} ms for {len(offers)} offers")
        assert len(found.matches) + len(found.unlisted) + len(found.ruled_out) == len(catalog.providers)
        assert offers
