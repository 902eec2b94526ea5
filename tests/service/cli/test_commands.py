"""The command line as a whole, ``version`` and ``rules``."""

import json
import os
import pty
from importlib.metadata import version
from pathlib import Path

import pytest

from rules.checks import RULES
from service.main import parser
from tests.service.cli.running import Cli

COMMANDS = ["serve", "demo", "ask", "audit", "compat", "rules", "version"]


def test_help_names_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"    {command} " in done.stdout.decode(), command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_its_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    if command != "version":
        assert "exit code" in said


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["rules", "idle-gpu-node", "extra"], ["--nonsense"]])
def test_nonsense_ends_with_2(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert b"usage: gpu-advisor" in done.stderr


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_that_of_the_package(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.stdout.decode() == f"gpu-advisor {version('gpu-advisor')}\n"


def test_rules_are_listed_heaviest_first(cli: Cli) -> None:
    listed = [line.split()[:2] for line in cli("rules").stdout.decode().splitlines()]
    assert sorted(rule for _, rule in listed) == sorted(rule.id for rule in RULES)
    order = ["critical", "high", "medium", "low", "info"]
    ranks = [order.index(severity) for severity, _ in listed]
    assert ranks == sorted(ranks)


def test_a_rule_is_explained(cli: Cli) -> None:
    text = cli("rules", "idle-gpu-node").stdout.decode()
    assert "What:" in text
    assert "Source:" in text
    document = json.loads(cli("rules", "idle-gpu-node", "--format", "json").stdout)
    assert document["seeds"] == ["S23", "S24"]
    assert set(document["words"]["name"]) == {"en", "es", "it"}


def test_an_unknown_rule_names_the_known_ones(cli: Cli) -> None:
    done = cli("rules", "idle")
    assert done.returncode == 2
    assert b"idle-gpu-node" in done.stderr


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_and_can_be_switched_off(
    env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rules.findings import Severity
    from service.cli.output import Style

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours):
        assert (Style(terminal).severity(Severity.HIGH, "x") != "x") is coloured
    with Path(os.devnull).open("w") as file:
        assert Style(file).severity(Severity.HIGH, "x") == "x"


def test_a_fault_of_ours_is_no_finding_and_no_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import service.cli.version as command
    from service.main import main

    def broken(_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(command, "run", broken)
    assert main(["version"]) == 4
    assert "a bug" in capsys.readouterr().err


def test_a_table_is_shown_in_columns_that_fit() -> None:
    from service.cli.text import wrapped

    table = "Before\n\n| provider | offer |\n| --- | --- |\n| **Nebius** | " + "word " * 30 + "|\n| OVH | x |\n\nAfter"
    lines = list(wrapped(table, 60))
    assert lines[:2] == ["Before", ""]
    assert lines[2].split() == ["provider", "offer"]
    assert set(lines[3]) == {"-", " "}
    assert lines[4].startswith("Nebius    word")
    assert lines[-3].startswith("OVH       x")
    assert lines[-2:] == ["", "After"]
    assert max(map(len, lines)) <= 60
    assert not any("|" in line for line in lines)
