"""Quantities, names of GPUs, and requests counted as the scheduler counts them."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.facts.objects import PodSpec
from rules.facts.resources import count, extended_requests, gpu_name, gpu_requests, indirect_claim, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        (8, 8),
        (0.5, Decimal("0.5")),
        ("500m", Decimal("0.5")),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12E", 12 * 10**18),
        ("2Ei", 2 * 1024**6),
        ("64Gi", 64 * 1024**3),
        ("1k", 1000),
        ("+1.5", Decimal("1.5")),
        ("100n", Decimal("1e-7")),
        ("46068Mi", 46068 * 1024**2),
    ],
)
def test_quantities_have_the_value_that_kubernetes_gives_them(text: Any, value: Any) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1x", "1.2.3", "1e999999999", "²", "0x1F", "1 Gi", "--1", "1e", "nan", "inf"]
)
def test_what_is_no_quantity_is_unknown(text: str) -> None:
    assert parse_quantity(text) is None
    assert count(text) is None


def test_counts_are_whole_and_never_negative() -> None:
    assert [count(text) for text in ("8", "1k", "500m", "1001m", "-1", "0", None)] == [8, 1000, 1, 2, None, 0, None]


@pytest.mark.parametrize(
    ("resource", "vendor", "form", "profile"),
    [
        ("nvidia.com/gpu", "nvidia", "device", None),
        ("nvidia.com/gpu.shared", "nvidia", "shared", None),
        ("nvidia.com/mig-1g.5gb", "nvidia", "mig", "1g.5gb"),
        ("nvidia.com/mig-1g.10gb.me", "nvidia", "mig", "1g.10gb.me"),
        ("nvidia.com/mig-3g.40gb.shared", "nvidia", "shared", "3g.40gb"),
        ("amd.com/gpu", "amd", "device", None),
        ("amd.com/cpx_nps4", "amd", "partition", "cpx_nps4"),
        ("gpu.intel.com/i915", "intel", "device", None),
        ("gpu.intel.com/xe", "intel", "device", None),
        ("habana.ai/gaudi", "habana", "device", None),
        ("aws.amazon.com/neuron", "aws-neuron", "device", None),
    ],
)
def test_gpus_are_told_by_their_resource_name(resource: str, vendor: str, form: str, profile: str | None) -> None:
    known = gpu_name(resource)
    assert known is not None
    assert (known.vendor, known.form, known.profile) == (vendor, form, profile)


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/hostdev",
        "nvidia.com/sriov-rdma-vf",
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "nvidia.com/priority",
        "nvidia.com/mig",
        "gpu.intel.com/monitoring",
        "gpu.intel.com/i915_monitoring",
        "gpu.intel.com/xe_monitoring",
        "gpu.intel.com/millicores",
        "amd.com/nic",
        "vpc.amazonaws.com/efa",
        "rdma/ib",
        "openshift.io/gpu",
        "requests.nvidia.com/gpu",
        "cpu",
        "memory",
        "hugepages-2Mi",
    ],
)
def test_what_only_looks_like_a_gpu_is_none(resource: str) -> None:
    assert gpu_name(resource) is None


@pytest.mark.parametrize(
    ("resource", "way"),
    [
        ("nvidia.com/gpumem", "gpu-memory-resource"),
        ("aliyun.com/gpu-mem", "gpu-memory-resource"),
        ("volcano.sh/vgpu-number", "vgpu-resource"),
        ("microsoft.com/directx", "directx-resource"),
        ("nvidia.com/GA102GL_A10", "passthrough-resource"),
        ("nvidia.com/GRID_T4-1Q", "passthrough-resource"),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", "dra-claim"),
        ("nvidia.com/hostdev", None),
        ("nvidia.com/sriov-rdma-vf", None),
        ("rdma/ib", None),
        ("gpu.intel.com/monitoring", None),
    ],
)
def test_other_ways_to_ask_for_a_part_of_a_gpu(resource: str, way: str | None) -> None:
    assert indirect_claim(resource) == way


GPU = "nvidia.com/gpu"


def spec(**fields: Any) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


def asks(amount: Any, *, sidecar: bool = False, limits_only: bool = False) -> dict[str, Any]:
    resources = {"limits": {GPU: amount}} if limits_only else {"limits": {GPU: amount}, "requests": {GPU: amount}}
    return {"name": "c", "resources": resources, **({"restartPolicy": "Always"} if sidecar else {})}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"containers": [asks(1), asks("2")]}, 3),
        ({"containers": [asks("2", limits_only=True)]}, 2),
        ({"containers": [asks(1)], "initContainers": [asks(4)]}, 4),
        ({"containers": [{"name": "c"}], "initContainers": [asks(1)]}, 1),
        ({"containers": [asks(3)], "initContainers": [asks(1), asks(2)]}, 3),
        ({"containers": [asks(1)], "initContainers": [asks(1, sidecar=True)]}, 2),
        ({"containers": [asks(1)], "initContainers": [asks(1, sidecar=True), asks(2)]}, 3),
        ({"containers": [asks(1)], "initContainers": [asks(3), asks(1, sidecar=True)]}, 3),
        ({"containers": [asks(1)], "overhead": {GPU: "1", "cpu": "250m"}}, 2),
        ({"containers": [asks(0)]}, None),
        ({"containers": None, "initContainers": None}, None),
    ],
)
def test_the_effective_request_is_what_the_scheduler_counts(fields: dict[str, Any], expected: int | None) -> None:
    assert gpu_requests(spec(**fields)).get(GPU) == expected


def test_only_gpus_are_left_of_a_request() -> None:
    several = {"cpu": "4", "rdma/ib": "1", "nvidia.com/mig-1g.5gb": "2", "nvidia.com/gpumem": "3000"}
    fields = spec(containers=[{"name": "c", "resources": {"requests": several}}])
    assert gpu_requests(fields) == {"nvidia.com/mig-1g.5gb": 2}
    assert extended_requests(fields) == {"rdma/ib": 1, "nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpumem": 3000}


amounts = st.fixed_dictionaries({}, optional={GPU: st.integers(0, 4), "amd.com/gpu": st.integers(0, 4)})
containers = st.lists(amounts, min_size=1, max_size=3)
inits = st.lists(st.tuples(amounts, st.booleans()), max_size=5)


def timeline(main: list[dict[str, int]], init: list[tuple[dict[str, int], bool]], resource: str) -> int:
    """The most that ever runs at once, found by going through the life of the pod step by step."""
    running, most = 0, 0
    for amount, sidecar in init:
        most = max(most, running + amount.get(resource, 0))
        if sidecar:
            running += amount.get(resource, 0)
    return max(most, running + sum(amount.get(resource, 0) for amount in main))


@given(containers, inits, amounts)
def test_requests_equal_the_most_that_runs_at_once(
    main: list[dict[str, int]], init: list[tuple[dict[str, int], bool]], overhead: dict[str, int]
) -> None:
    found = gpu_requests(
        spec(
            containers=[{"resources": {"limits": amount}} for amount in main],
            initContainers=[
                {"resources": {"limits": amount}, "restartPolicy": "Always" if sidecar else None}
                for amount, sidecar in init
            ],
            overhead=overhead,
        )
    )
    for resource in (GPU, "amd.com/gpu"):
        assert found.get(resource, 0) == timeline(main, init, resource) + overhead.get(resource, 0)
    assert all(found.values())


@given(st.text(max_size=12) | st.integers() | st.floats(allow_nan=True))
def test_no_quantity_raises(quantity: Any) -> None:
    value = count(quantity)
    assert value is None or value >= 0
