"""Unhealthy GPUs: what counts, what is free, what is left to other rules."""

from datetime import timedelta

import pytest

from rules.words import render
from tests.rules.checks.kit import Plain, findings, keys, node, only, pod

RULE = "allocatable-below-capacity"
SEVEN = {"gpus": {"nvidia.com/gpu": 7}, "capacity": {"nvidia.com/gpu": 8}}


def test_free_is_allocatable_minus_requested() -> None:
    found = only(RULE, node(**SEVEN), pod(on="gpu-1", gpus={"nvidia.com/gpu": 2}))  # type: ignore[arg-type]
    assert [found.value(name) for name in ("capacity", "allocatable", "unhealthy", "requested", "free")] == [
        8,
        7,
        1,
        2,
        5,
    ]
    said = render(found, "en")
    assert "7 − 2 requested = 5" in said.summary
    assert said.remedy.startswith("First read the Xid")


def test_finished_pods_request_nothing() -> None:
    done = pod(on="gpu-1", gpus={"nvidia.com/gpu": 2}, phase="Succeeded")
    assert only(RULE, node(**SEVEN), done).value("requested") == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fine",
    [
        node(gpus={"nvidia.com/gpu": 8}),
        node(gpus={"nvidia.com/gpu": 0}, capacity={"nvidia.com/gpu": 8}),
        node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 16}),
        node(age=timedelta(minutes=5), **SEVEN),  # type: ignore[arg-type]
        node(ready="False", **SEVEN),  # type: ignore[arg-type]
    ],
    ids=["all", "none", "renamed", "young", "not-ready"],
)
def test_healthy_young_unready_nodes_and_zero_are_left_alone(fine: Plain) -> None:
    assert findings(RULE, fine) == []


def test_pods_on_unhealthy_devices_are_pointed_out() -> None:
    assert "overdrawn" in keys(only(RULE, node(**SEVEN), pod(on="gpu-1", gpus={"nvidia.com/gpu": 8})))  # type: ignore[arg-type]


def test_an_amd_node_gets_amd_advice() -> None:
    found = only(RULE, node(gpus={"amd.com/gpu": 7}, capacity={"amd.com/gpu": 8}))
    assert found.remedy == "amd"
    assert "Xid" not in render(found, "en").remedy


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ({"type": "XIDErrors", "status": "True"}, True),
        ({"type": "AcceleratedHardwareReady", "status": "False"}, True),
        ({"type": "AcceleratedHardwareReady", "status": "True"}, False),
        ({"type": "MemoryPressure", "status": "False"}, False),
    ],
)
def test_a_health_condition_of_the_node_is_named(condition: dict[str, str], named: bool) -> None:
    found = only(RULE, node(conditions=[condition], **SEVEN))  # type: ignore[arg-type]
    assert ("condition" in keys(found)) is named


def test_each_resource_is_a_trouble_of_its_own() -> None:
    both = node(
        gpus={"nvidia.com/mig-1g.5gb": 6, "nvidia.com/mig-2g.10gb": 1},
        capacity={"nvidia.com/mig-1g.5gb": 7, "nvidia.com/mig-2g.10gb": 2},
    )
    found = findings(RULE, both)
    assert len({item.fingerprint for item in found}) == 2
