"""Memory of a replica: stated, or worked out from parameters with the assumptions named."""

import pytest

from rules.sharing.errors import PlanInvalid
from rules.sharing.memory import kv_cache_gib, missing, need, weights_gb
from rules.sharing.model import KvCache, Workload


@pytest.mark.parametrize(
    ("parameters", "precision", "weights"),
    [(70, "fp16", 140), (405, "fp8", 405), (8, "bf16", 16), (13, "int4", 6.5), (1.5, "fp32", 6)],
)
def test_weights_are_parameters_times_the_bytes_of_the_precision(
    parameters: float, precision: str, weights: float
) -> None:
    assert weights_gb(Workload(name="m", parameters_b=parameters, precision=precision)) == weights  # type: ignore[arg-type]


def test_stated_memory_is_taken_as_it_is() -> None:
    stated = need(Workload(name="m", memory_gib=9.5))
    assert stated is not None
    assert (stated.memory_gib, stated.minimum_gib, stated.estimated) == (9.5, 9.5, False)


def test_decimal_gigabytes_are_a_little_less() -> None:
    stated = need(Workload(name="m", memory_gb=10))
    assert stated is not None
    assert stated.memory_gib == pytest.approx(9.313, abs=0.001)


def test_an_estimate_names_what_it_assumed_and_what_it_needs_at_least() -> None:
    found = need(Workload(name="m", parameters_b=70, precision="fp8"))
    assert found is not None
    assert found.estimated
    assert found.assumptions == ("cache_fifth", "runtime_share")
    assert found.minimum_gib == pytest.approx(65.19 / 0.9, abs=0.01)
    assert found.memory_gib == pytest.approx(65.19 * 1.2 / 0.9, abs=0.01)


def test_the_cache_of_a_known_model_is_worked_out() -> None:
    cache = KvCache(layers=80, kv_heads=8, head_dim=128, context_tokens=32768)
    assert kv_cache_gib(cache) == 10
    found = need(Workload(name="m", parameters_b=70, precision="fp16", kv=cache))
    assert found is not None
    assert found.memory_gib == pytest.approx((130.39 + 10) / 0.9, abs=0.01)
    assert "cache_worked_out" in found.assumptions


def test_training_holds_optimizer_and_gradients_too() -> None:
    found = need(Workload(name="m", parameters_b=7, task="training"))
    assert found is not None
    assert found.minimum_gib == pytest.approx(7 * 16 / 1.073741824 / 0.9, abs=0.01)


@pytest.mark.parametrize(
    ("workload", "fields"),
    [
        (Workload(name="m"), ("memory_gib",)),
        (Workload(name="m", parameters_b=7), ("precision",)),
        (Workload(name="m", precision="fp16"), ("memory_gib",)),
        (Workload(name="m", weights_gb=94), ()),
        (Workload(name="m", weights_gb=94, task="training"), ("parameters_b",)),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_guessed(workload: Workload, fields: tuple[str, ...]) -> None:
    assert missing(workload) == fields
    assert (need(workload) is None) == bool(fields)


def test_two_statements_of_the_memory_are_refused() -> None:
    with pytest.raises(PlanInvalid, match="memory_gb"):
        need(Workload(name="m", memory_gib=1, memory_gb=1))
