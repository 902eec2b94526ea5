"""``gpu-advisor advise``."""

import json
from pathlib import Path

import pytest

from tests.service.cli.running import IDLE, SAMPLES, Cli


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "is not worth it"), ("es", "no compensa"), ("it", "non conviene")],
)
def test_text_is_in_the_language(cli: Cli, language: str, words: str) -> None:
    done = cli("advise", "--kind", "notebook", "--gpu", "L4", "--lang", language)
    assert (done.returncode, done.stderr) == (0, b"")
    assert words in done.stdout.decode()


def test_flags_make_the_request_that_a_file_holds(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "request.yaml"
    text = "{kind: batch, models: [{name: m, memory_gib: 3.0, replicas: 4}], gpu: [A100-80GB], nodes: 2, "
    file.write_text(f"{text}interruptible: false, budget_usd_hour: 9.5, team: {{existing_cluster: true}}}}\n", "utf-8")
    flags = ("--kind", "batch", "--model", "m=3GiBx4", "--gpu", "A100-80GB", "--nodes", "2", "--no-interruptible")
    given = cli("advise", *flags, "--budget-usd-hour", "9.5", "--existing-cluster", "--format", "json")
    assert json.loads(given.stdout) == json.loads(cli("advise", "--file", str(file), "--format", "json").stdout)


def test_what_must_be_known_first_has_an_exit_code_of_its_own(cli: Cli) -> None:
    done = cli("advise", "--kind", "batch")
    assert done.returncode == 1
    assert "`models`" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--kind"),
        (("--kind", "game"), "kind"),
        (("--kind", "batch", "--gpu", "X9000"), "gpu[0]"),
        (("--file", "nowhere.yaml"), "nowhere.yaml"),
        (("--file", "-", "--gpus", "4"), "--gpus"),
    ],
)
def test_bad_input_is_said_and_has_exit_code_2(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    done = cli("advise", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in done.stderr.decode()


@pytest.mark.parametrize(("language", "words"), [("en", "A move costs more"), ("es", "Mudarse"), ("it", "Spostarsi")])
def test_a_cluster_is_priced_elsewhere(cli: Cli, language: str, words: str) -> None:
    done = cli("elsewhere", "--snapshot", SAMPLES / "oke-a10-a100-pools.json", "--lang", language)
    assert (done.returncode, done.stderr) == (0, b"")
    assert words in done.stdout.decode()


def test_a_managed_cluster_goes_only_where_it_is_managed(cli: Cli) -> None:
    found = json.loads(cli("elsewhere", "--snapshot", IDLE, "--format", "json").stdout)
    assert found["managed"] is True
    assert found["places"]
    assert cli("elsewhere", "--snapshot", IDLE, "--region", "mars").returncode == 2
