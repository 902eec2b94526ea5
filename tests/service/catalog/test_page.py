"""``docs/providers.md`` tells the truth: its commands run, its settings are read, its numbers are right."""

import re
from pathlib import Path

import pytest

from rules.facts.prices import bundled
from rules.facts.providers import bundled_providers
from service.catalog.filter_words import MEANING
from service.catalog.settings import CatalogSettings
from service.catalog.sources import ASKED_BY_GPUHUNT, PUBLISHED_BY_GPUHUNT
from service.settings import load
from tests.service.cli.running import Cli

PAGE = (Path(__file__).parents[3] / "docs" / "providers.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ gpu-advisor (.+)$", PAGE, re.MULTILINE)
SETTINGS = re.search(r"```yaml file=settings\.yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    assert SETTINGS is not None
    path = tmp_path / "settings.yaml"
    path.write_text(SETTINGS[1], encoding="utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_runs(command: str, tmp_path: Path, settings: Path) -> None:
    import shlex

    done = Cli(tmp_path)(*shlex.split(command))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.strip()
    assert not done.stderr


def test_the_settings_of_the_page_do_what_it_says(tmp_path: Path, settings: Path) -> None:
    known = load(settings, {})
    assert known.catalog.rate.usd_per_eur == 1.16
    cli = Cli(tmp_path)
    found = cli("providers", "--config", "settings.yaml", "--gpu", "h100", "--region", "it").stdout.decode()
    assert "our-dc" in found
    assert "your contract" in found
    aws = cli("offers", "--config", "settings.yaml", "--providers", "aws", "--gpu", "h100").stdout.decode()
    assert "$31.50" in aws


def test_the_numbers_of_the_page_are_right() -> None:
    assert f"knows {len(bundled_providers())} GPU cloud providers" in PAGE
    assert f"{round(len(bundled().offers), -2):,} prices" in PAGE
    assert f"prices of {len({offer.provider for offer in bundled().offers})} of them" in PAGE
    dates = sorted(offer.as_of for offer in bundled().offers if offer.as_of)
    assert f"from {dates[0][:7]} to {dates[-1][:7]}" in PAGE
    assert f"newest {CatalogSettings().keep} different" in PAGE


def test_every_filter_and_source_that_the_page_names_exists() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows
    assert set(rows) <= set(MEANING)
    fetched = PAGE[PAGE.index("No account is needed") : PAGE.index("## Your own")]
    assert set(re.findall(r"`(\w+)`", fetched)) == set(ASKED_BY_GPUHUNT)
    assert len(PUBLISHED_BY_GPUHUNT) == 9
