"""The whole report of each sample cluster against what people who know it wrote down beside it."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.findings import Report
from tests.rules.checks.kit import DATA, sample

CLUSTERS = [file.stem for file in sorted((DATA / "clusters").glob("*.json"))]


@cache
def expected(name: str) -> dict[str, Any]:
    file: Path = DATA / "clusters" / f"{name}.expected.yaml"
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    return content


@cache
def report(name: str) -> Report:
    return sample(DATA / "clusters" / f"{name}.json")[1]


def named(name: str, topic: str) -> set[str]:
    """All objects that findings of one topic name."""
    rule = topic.replace("_", "-")
    return {str(ref) for item in report(name).findings if item.rule == rule for ref in item.objects}


def raised(name: str) -> set[str]:
    return {item.rule.replace("-", "_") for item in report(name).findings}


@pytest.mark.parametrize("name", CLUSTERS)
def test_all_that_must_be_found_is_found(name: str) -> None:
    missed = [
        (row["topic"], sorted(set(row["objects"]) - named(name, row["topic"])))
        for row in expected(name)["must_find"]
        if row["topic"] not in raised(name) or not set(row["objects"]) <= named(name, row["topic"])
    ]
    assert missed == []


@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_is_raised_that_is_known_to_be_a_false_alarm(name: str) -> None:
    false = [
        row["topic"]
        for row in expected(name)["must_not_find"]
        if row["topic"] in raised(name) and (not row["objects"] or set(row["objects"]) & named(name, row["topic"]))
    ]
    assert false == []


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_waiting_pod_is_told_once(name: str) -> None:
    """Where a root cause names the pod, ``gpu-pod-pending`` does not."""
    echoes = {str(item.objects[0]) for item in report(name).findings if item.rule == "gpu-pod-pending"}
    roots = {"partial-gang", "rollout-deadlock", "mig-resource-mismatch", "untolerated-gpu-taint-pod", "claim-pending"}
    told = {str(ref) for item in report(name).findings if item.rule in roots for ref in item.objects}
    assert not echoes & told
