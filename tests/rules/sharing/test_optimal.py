"""The number of GPUs is the least there is: compared with a search of its own that tries every partition."""

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.sharing.devices import Device, device
from rules.sharing.errors import PlanInvalid
from rules.sharing.model import MODES, Isolation, Mode, SharingPlan, SharingRequest, Workload
from rules.sharing.plan import plan
from tests.rules.sharing.test_placement import fits_by_trying_all

Load = tuple[float, Isolation]
"""Memory in GiB and isolation of one replica."""


def holds(gpu: Device, mode: Mode, group: Sequence[Load]) -> bool:
    """Whether one GPU holds a group in a mode, by the rules as the documentation states them."""
    total = sum(memory for memory, _ in group)
    if mode == "whole":
        return len(group) == 1 and total <= gpu.memory_gib
    if mode == "time-slicing":
        return gpu.sliceable and total <= gpu.memory_gib and all(isolation == "none" for _, isolation in group)
    if mode == "mps":
        clear = all(isolation != "fault" for _, isolation in group) and len(group) <= gpu.mps_clients
        return clear and max(memory for memory, _ in group) * len(group) <= gpu.memory_gib
    if gpu.geometry is None:
        return False
    geometry = gpu.geometry
    plain = [item for item in geometry.profiles if not item.extra]

    def cut(position: int, names: tuple[str, ...]) -> bool:
        if position == len(group):
            return True
        for item in plain:
            now = (*names, item.name)
            if item.memory_gib >= group[position][0] and fits_by_trying_all(geometry, now) and cut(position + 1, now):
                return True
        return False

    return cut(0, ())


def least(gpus: Sequence[Device], modes: Sequence[Mode], loads: Sequence[Load], costs: Sequence[int]) -> int | None:
    """The least cost over all partitions of the replicas into GPUs."""
    full = (1 << len(loads)) - 1

    @cache
    def group_cost(mask: int) -> int | None:
        group = [load for index, load in enumerate(loads) if mask >> index & 1]
        fitting = [
            cost for gpu, cost in zip(gpus, costs, strict=True) if any(holds(gpu, mode, group) for mode in modes)
        ]
        return min(fitting, default=None)

    @cache
    def best(mask: int) -> int | None:
        if mask == 0:
            return 0
        first = mask & -mask
        rest, found = mask ^ first, None
        part = rest
        while True:
            here, after = group_cost(part | first), best(rest ^ part)
            if here is not None and after is not None and (found is None or here + after < found):
                found = here + after
            if part == 0:
                return found
            part = (part - 1) & rest

    return best(full)


def check_plan(found: SharingPlan, replicas: int) -> None:
    """What holds for every plan, whatever its number of GPUs."""
    placed = [(item.model, item.replica) for use in found.uses for item in use.placed]
    assert len(placed) == len(set(placed)) == replicas
    for use in found.uses:
        gpu = device(use.gpu)
        assert use.free_gib >= 0
        if use.mode == "mig":
            assert gpu.geometry is not None
            cells = [c for item in use.placed for c in range(item.start or 0, (item.start or 0) + (item.size or 0))]
            assert len(cells) == len(set(cells))
            assert fits_by_trying_all(gpu.geometry, tuple(str(item.profile) for item in use.placed))
            rows = {row.profile: row for row in gpu.geometry.row.profiles}
            assert all(item.start in rows[str(item.profile)].starts for item in use.placed)
            assert all(item.need_gib <= (item.room_gib or 0) + 0.001 for item in use.placed)
        else:
            assert sum(item.need_gib for item in use.placed) <= gpu.memory_gib + 0.001
        if use.mode == "mps":
            assert len(use.placed) <= gpu.mps_clients
            assert all(item.need_gib <= gpu.memory_gib / len(use.placed) + 0.001 for item in use.placed)


@pytest.mark.parametrize("gpu", ["A100-40GB", "A30", "H100-80GB", "RTX PRO 6000"])
@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 44), min_size=1, max_size=6))
def test_mig_needs_no_more_gpus_than_the_best_of_all_partitions(gpu: str, sizes: list[int]) -> None:
    known = device(gpu)
    memories = [size * known.memory_gib / 45 for size in sizes]
    models = tuple(Workload(name=f"m{index}", memory_gib=memory) for index, memory in enumerate(memories))
    found = plan(SharingRequest(models=models, gpus=(gpu,), modes=("mig",)))
    check_plan(found, len(sizes))
    assert found.optimal
    assert found.gpus == least([known], ["mig", "whole"], [(memory, "none") for memory in memories], [1])


@settings(max_examples=60, deadline=None)
@given(
    loads=st.lists(st.tuples(st.integers(1, 39), st.sampled_from(["none", "memory", "fault"])), min_size=1, max_size=6),
    modes=st.sampled_from([MODES, ("time-slicing",), ("mps",), ("mig", "mps"), ("mps", "time-slicing")]),
    gpus=st.sampled_from([("A100-40GB",), ("L4", "A100-40GB"), ("A30", "T4", "A100-40GB")]),
)
def test_mixed_modes_and_kinds_need_no_more_gpus_than_the_best_of_all_partitions(
    loads: list[tuple[int, Isolation]], modes: tuple[Mode, ...], gpus: tuple[str, ...]
) -> None:
    models = tuple(
        Workload(name=f"m{index}", memory_gib=memory, isolation=isolation)
        for index, (memory, isolation) in enumerate(loads)
    )
    found = plan(SharingRequest(models=models, gpus=gpus, modes=modes))
    check_plan(found, len(loads))
    truth = least([device(gpu) for gpu in gpus], [*modes, "whole"], [(float(m), i) for m, i in loads], [1] * len(gpus))
    if found.optimal:
        assert found.gpus == truth
    assert truth is not None
    assert found.lower_bound <= truth <= found.gpus


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 39), min_size=1, max_size=6),
    prices=st.tuples(st.integers(20, 100), st.integers(80, 400)),
)
def test_the_cheapest_plan_costs_no_more_than_the_best_of_all_partitions(
    sizes: list[int], prices: tuple[int, int]
) -> None:
    models = tuple(Workload(name=f"m{index}", memory_gib=size) for index, size in enumerate(sizes))
    gpus = ("L4", "A100-40GB")
    asked = {gpu: price / 100 for gpu, price in zip(gpus, prices, strict=True)}
    found = plan(SharingRequest(models=models, gpus=gpus, prices=asked, objective="cheapest"))
    check_plan(found, len(sizes))
    truth = least([device(gpu) for gpu in gpus], MODES, [(float(size), "none") for size in sizes], prices)
    assert truth is not None
    assert found.usd_hour is not None
    if found.optimal:
        assert round(found.usd_hour * 100) == truth
    assert found.lower_bound * 100 <= truth + 0.01


def test_most_small_cases_are_proven() -> None:
    for count in range(1, 41):
        models = tuple(Workload(name=f"m{index}", memory_gib=1 + index % 19) for index in range(count))
        assert plan(SharingRequest(models=models, gpus=("A100-40GB",), modes=("mig",))).optimal


def test_a_request_that_is_too_large_is_refused_and_a_large_one_is_planned() -> None:
    many = tuple(Workload(name=f"m{index}", memory_gib=1 + index * 0.07, replicas=10) for index in range(200))
    found = plan(SharingRequest(models=many, gpus=("L4", "A100-40GB")))
    check_plan(found, 2000)
    assert found.lower_bound <= found.gpus
    for request in (
        SharingRequest(models=(*many, Workload(name="more", memory_gib=1)), gpus=("L4",)),
        SharingRequest(models=(Workload(name="m", memory_gib=1, replicas=2001),), gpus=("L4",)),
        SharingRequest(models=(Workload(name="m", memory_gib=1e5, replicas=2000),), gpus=("L4",)),
    ):
        with pytest.raises(PlanInvalid, match="models"):
            plan(request)
