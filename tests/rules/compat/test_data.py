"""The data files: reviewable, sourced, consistent, and read only when needed."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rules.compat import data
from rules.compat.nvidia import branch, toolkits
from rules.compat.versions import key, line

ROOT = Path(__file__).parents[3]
FILES = ["cuda.json", "gpus.json", "images.json", "cuda-requirements.json", "rocm.json", "cuda-symptoms.json"]


def tables(name: str) -> dict[str, list[dict[str, Any]]]:
    loaded = json.loads((ROOT / "rules/data" / name).read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("name", FILES)
def test_every_row_has_a_source_and_a_date(name: str) -> None:
    for rows in tables(name).values():
        for row in rows:
            assert row["source"], row
            assert re.fullmatch(r"20[0-9]{2}(-[0-9]{2}){0,2}", row["as_of"]), row


@pytest.mark.parametrize("name", FILES)
def test_one_row_stands_on_one_line(name: str) -> None:
    lines = (ROOT / "rules/data" / name).read_text("utf-8").splitlines()
    rows = sum(len(rows) for rows in tables(name).values())
    assert len(lines) == rows + 2 * len(tables(name)) + 2


def test_nothing_is_read_before_it_is_needed() -> None:
    code = (
        "from rules import compat; from rules.compat import data, words;"
        "print([f.cache_info().currsize for f in (data.cuda, data.gpus, data.images, data.requirements, data.rocm,"
        " data.symptoms, words._words)]);"
        "compat.image_cuda('nvidia/cuda:12.4.1-base'); print(data.symptoms.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[0, 0, 0, 0, 0, 0, 0]", "0"]


def test_toolkits_ascend_with_their_drivers_within_a_line() -> None:
    rows = toolkits()
    assert len({row.version for row in rows}) == len(rows)
    for first, second in pairwise(rows):
        if line(first.version) == line(second.version) and first.driver and second.driver:
            assert key(first.driver) <= key(second.driver)


def test_branches_report_more_cuda_as_they_grow() -> None:
    rows = [row for row in data.cuda().branches if row.max_cuda]
    numbers = [row.branch for row in rows]
    assert numbers == sorted(set(numbers))
    assert [line(row.max_cuda or "") for row in rows] == sorted(line(row.max_cuda or "") for row in rows)


def test_the_floor_of_a_family_is_a_driver_of_a_known_branch() -> None:
    for family in data.cuda().families:
        if family.floor is not None:
            assert branch(int(family.floor.split(".")[0])) is not None


def test_no_pair_of_compat_and_branch_is_listed_twice() -> None:
    pairs = [(row.cuda, row.branch) for row in data.cuda().forward]
    assert len(set(pairs)) == len(pairs)
    assert {row.cuda for row in data.cuda().complete_lists} <= {row.cuda for row in data.cuda().forward}


def test_every_nvidia_card_has_what_a_verdict_needs() -> None:
    for row in data.gpus():
        if row.vendor != "nvidia":
            continue
        assert row.compute_capability, row.id
        assert row.min_branch, row.id
        assert row.first_cuda, row.id
        assert row.brand, row.id
        assert row.oldest_cuda is None or key(row.oldest_cuda) <= key(row.first_cuda), row.id
        assert row.last_branch is None or row.min_branch <= row.last_branch, row.id


def test_cards_of_one_compute_capability_agree_on_their_toolkits_and_last_branch() -> None:
    seen: dict[str, tuple[str | None, ...]] = {}
    for row in data.gpus():
        if row.compute_capability:
            limits = (row.first_cuda, row.oldest_cuda, row.last_cuda, str(row.last_branch))
            assert seen.setdefault(row.compute_capability, limits) == limits, row.id


def test_an_alias_or_label_of_two_cards_means_one_model() -> None:
    models: dict[str, set[str]] = {}
    for row in data.gpus():
        for name in (*row.aliases, *row.labels):
            models.setdefault(name.lower(), set()).add(row.model)
    assert {name: found for name, found in models.items() if len(found) > 1} == {}


def test_kernel_lists_belong_to_known_families() -> None:
    families = {family.id for family in data.images().families}
    assert {row.family for row in data.images().kernels} <= families
    assert {row.family for row in data.images().ranges} <= families


def test_an_amd_module_belongs_to_one_driver() -> None:
    modules = [module for row in data.rocm() for module in row.modules]
    assert len(set(modules)) == len(modules)
    assert all(row.modules_source for row in data.rocm() if row.modules)
