"""MIG slices are put where the placement tables allow them, and refused exactly where no placement exists."""

import json
import re
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest

from rules.sharing.devices import Geometry, any_device, facts
from rules.sharing.placement import leftover, place, smallest

GEOMETRIES = {item.geometry.gpu: item.geometry for item in any_device() if item.geometry is not None}
NAMES = sorted(GEOMETRIES)


def fits_by_trying_all(geometry: Geometry, names: tuple[str, ...]) -> bool:
    """Independent of the planner: every choice of starts, straight from the rows of the table."""
    rows = {row.profile: row for row in geometry.row.profiles}
    chosen = [rows[name] for name in names]
    if sum(row.compute_slices for row in chosen) > geometry.row.compute_slices:
        return False
    if any(names.count(row.profile) > row.max_instances for row in chosen):
        return False
    if sum("+me" in name for name in names) > 1:
        return False
    for starts in product(*(row.starts for row in chosen)):
        cells = [
            cell for row, start in zip(chosen, starts, strict=True) for cell in range(start, start + row.memory_slices)
        ]
        if len(cells) == len(set(cells)):
            return True
    return False


def sets(geometry: Geometry, most: int) -> Iterator[tuple[str, ...]]:
    names = [item.name for item in geometry.profiles if "gfx" not in item.extra and item.extra != "-me"]
    for size in range(1, most + 1):
        yield from combinations_with_replacement(names, size)


@pytest.mark.parametrize("name", ["A100-40GB", "A30-24GB", "RTX-PRO-6000-Blackwell-96GB"])
def test_a_set_of_slices_is_placed_exactly_when_some_choice_of_starts_holds_it(name: str) -> None:
    geometry = GEOMETRIES[name]
    order = [item.name for item in geometry.profiles]
    for names in sets(geometry, 4):
        cuts = place(geometry, [names.count(each) for each in order])
        assert (cuts is not None) == fits_by_trying_all(geometry, names), names
        if cuts is not None:
            assert sorted(cut.profile.name for cut in cuts) == sorted(names)
            cells = [cell for cut in cuts for cell in range(cut.start, cut.start + cut.profile.size)]
            assert len(cells) == len(set(cells))
            assert all(cut.start in cut.profile.starts for cut in cuts)


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_fits_as_often_as_the_table_says_and_no_more(name: str) -> None:
    geometry = GEOMETRIES[name]
    for index, item in enumerate(geometry.profiles):
        counts = [0] * len(geometry.profiles)
        counts[index] = item.most
        assert place(geometry, counts) is not None, item.name
        counts[index] = item.most + 1
        assert place(geometry, counts) is None, item.name


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        (("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"), True),
        (("4g.20gb", "3g.20gb"), True),
        (("3g.20gb", "3g.20gb"), True),
        (("3g.20gb", "3g.20gb", "1g.5gb"), False),
        (("4g.20gb", "4g.20gb"), False),
        (("1g.5gb+me", *["1g.5gb"] * 6), True),
        (("1g.5gb+me", "1g.5gb+me"), False),
        (("2g.10gb", "2g.10gb", "2g.10gb", "1g.10gb"), True),
    ],
)
def test_known_layouts_of_the_a100(names: tuple[str, ...], fits: bool) -> None:
    geometry = GEOMETRIES["A100-40GB"]
    assert (place(geometry, [names.count(item.name) for item in geometry.profiles]) is not None) is fits


def test_what_is_left_beside_slices_can_be_added() -> None:
    geometry = GEOMETRIES["A100-40GB"]
    counts = [1 if item.name == "3g.20gb" else 0 for item in geometry.profiles]
    assert leftover(geometry, counts) == ("4g.20gb",)
    assert leftover(geometry, [1 if item.name == "7g.40gb" else 0 for item in geometry.profiles]) == ()


@pytest.mark.parametrize(
    ("memory", "load", "media", "profile"),
    [
        (4.75, None, False, "1g.5gb"),
        (4.8, None, False, "1g.10gb"),
        (4.0, 0.25, False, "2g.10gb"),
        (4.0, None, True, "1g.5gb+me"),
        (12.0, None, True, "7g.40gb"),
        (19.6, None, False, "7g.40gb"),
        (39.5, None, False, None),
    ],
)
def test_the_smallest_suitable_profile_is_chosen(
    memory: float, load: float | None, media: bool, profile: str | None
) -> None:
    chosen = smallest(GEOMETRIES["A100-40GB"], memory_gib=memory, load=load, media=media, pinned=None)
    assert (chosen.name if chosen else None) == profile


def test_every_row_of_the_table_has_a_source_a_date_and_stands_on_one_line() -> None:
    path = Path(__file__).parents[3] / "rules/data/mig.json"
    tables = json.loads(path.read_text("utf-8"))
    for rows in tables.values():
        for row in rows:
            assert row["source"]
            assert re.fullmatch(r"20[0-9]{2}(-[0-9]{2}){0,2}", row["as_of"])
    assert len(path.read_text("utf-8").splitlines()) == sum(len(rows) for rows in tables.values()) + 2 * len(tables) + 2
    assert {item.gpu for item in facts().geometries} >= set(NAMES)
