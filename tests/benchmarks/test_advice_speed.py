"""How long advice over all bundled offers and providers takes, planner and ranking together; printed."""

import time
from typing import Any

from rules.advice.advise import advise
from rules.advice.request import read
from tests.rules.advice.catalogue import catalog

ASKED: tuple[dict[str, Any], ...] = (
    {"kind": "notebook", "gpu": ["L4"]},
    {"kind": "inference", "models": [{"name": "small", "replicas": 12, "memory_gib": 3}]},
    {"kind": "inference", "models": [{"name": "llm", "parameters_b": 70, "precision": "fp16"}]},
    {"kind": "training", "gpu": ["H100"], "gpus": 8, "nodes": 4, "storage": "shared"},
    {"kind": "batch", "gpu": ["L4"], "parallel": 6, "interruptible": True, "region": "eu"},
)


def test_advice_over_all_providers_and_offers() -> None:
    found = catalog()
    print(f"\n{len(found.book.offers)} offers of {len(found.providers)} providers, {len(found.rows)} with offers")
    for request in map(read, ASKED):
        advise(request, found)
        took = []
        for _ in range(5):
            began = time.perf_counter()
            advice = advise(request, found)
            took.append(time.perf_counter() - began)
        print(f"{request.kind}: best {min(took) * 1000:.1f} ms, worst {max(took) * 1000:.1f} ms, {advice.found} ranked")
        assert advice.providers
