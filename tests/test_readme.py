"""The README tells the truth: commands exist, files are there, documented settings are read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.settings import _ENVIRONMENT

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"gpu-advisor ([a-z]+)\b(?= |`|$)", README, re.MULTILINE)) - {"itself"})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_exists(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "service.main", command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_command_of_the_product_is_in_the_readme() -> None:
    from service.main import parser

    actions = [action for action in parser()._actions if action.dest == "==SUPPRESS==" or action.choices]
    names = {str(name) for action in actions for name in action.choices or ()}
    assert names - {"version"} <= set(COMMANDS)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_file_that_the_readme_links_to_is_there(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+)", README))))
def test_every_make_target_of_the_readme_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_variables_of_the_readme_are_read_by_the_settings() -> None:
    named = set(re.findall(r"\b(?:SLACK|GPU_ADVISOR|DATABASE)_[A-Z_]+\b", README))
    assert named <= {*_ENVIRONMENT, "GPU_ADVISOR_CONFIG"}
