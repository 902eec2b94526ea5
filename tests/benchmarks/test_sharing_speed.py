"""How long a plan takes. Run with ``pytest tests/benchmarks/test_sharing_speed.py -s``; it prints, it never fails."""

import statistics
import time
from collections.abc import Sequence

import pytest

from rules.sharing.model import MODES, Mode, SharingRequest, Workload
from rules.sharing.plan import plan

ROUNDS = 7


def models(count: int, largest: float) -> tuple[Workload, ...]:
    """Sizes that spread evenly and repeat in no run of the count."""
    return tuple(
        Workload(name=f"model-{index}", memory_gib=round(1 + index * 0.6180339887 % 1 * (largest - 1), 2))
        for index in range(count)
    )


CASES: dict[str, tuple[Sequence[str], tuple[Mode, ...], float]] = {
    "mig on A100-40GB": (("A100-40GB",), ("mig",), 38),
    "mig on H100": (("H100-80GB",), ("mig",), 70),
    "mps on A100-80GB": (("A100-80GB",), ("mps",), 30),
    "time-slicing on L4": (("L4",), ("time-slicing",), 20),
    "all modes on A100-80GB": (("A100-80GB",), MODES, 60),
    "all modes on three GPUs": (("L4", "A100-40GB", "H100-80GB"), MODES, 22),
    "any GPU": (("any",), MODES, 60),
}


@pytest.mark.parametrize("name", list(CASES))
def test_forty_models(name: str) -> None:
    gpus, modes, largest = CASES[name]
    request = SharingRequest(models=models(40, largest), gpus=tuple(gpus), modes=modes)
    first = time.perf_counter()
    found = plan(request)
    first = time.perf_counter() - first
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        again = plan(request)
        times.append(time.perf_counter() - start)
    assert again == found
    proof = "proven" if found.optimal else f"at least {found.lower_bound:g}"
    print(
        f"\n{name}: {found.gpus} GPUs ({proof}); {statistics.median(times) * 1000:.1f} ms, first {first * 1000:.1f} ms"
    )
