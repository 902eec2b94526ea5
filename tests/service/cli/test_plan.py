"""``gpu-advisor plan``."""

import json
from pathlib import Path

import pytest
import yaml

from tests.service.cli.running import Cli


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "instead of 12 whole ones"), ("es", "en lugar de 12 enteras"), ("it", "al posto di 12 intere")],
)
def test_text_is_in_the_language(cli: Cli, language: str, words: str) -> None:
    done = cli("plan", "--model", "3GiBx12", "--gpu", "A100-40GB", "--mode", "mig", "--lang", language)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert words in text
    assert "nvidia.com/mig.config=a100-40gb-mig" in text


def test_a_file_holds_what_http_takes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "request.yaml"
    file.write_text("models: [{name: llm, parameters_b: 70, precision: fp16}]\ngpus: [H100]\n", "utf-8")
    answer = json.loads(cli("plan", "--file", str(file), "--format", "json").stdout)
    sizing = answer["sizings"][0]
    assert (sizing["weights_gb"], sizing["fits"], sizing["min_gpus"], sizing["gpus"]) == (140, False, 2, 4)


def test_prices_decide_when_the_cheapest_is_asked_for(cli: Cli) -> None:
    arguments = ("plan", "--model", "4GiBx5", "--gpu", "L4", "--gpu", "A100-80GB", "--price", "L4=0.7")
    done = cli(*arguments, "--price", "A100-80GB=2", "--cheapest", "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["by_gpu"] == {"L4": 1}
    assert (answer["usd_hour"], answer["saved_usd_hour"]) == (0.7, 2.8)


def test_manifests_alone_can_be_applied(cli: Cli) -> None:
    done = cli("plan", "--model", "5GiBx10", "--gpu", "L4", "--mode", "time-slicing", "--manifests")
    kinds = [document.get("kind") for document in yaml.safe_load_all(done.stdout)]
    assert kinds == ["ConfigMap", None, "Pod"]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ((), 2, "--model"),
        (("--model", "3"), 2, "3GiBx12"),
        (("--model", "3GiB", "--gpu", "X9000"), 2, "gpus[0]"),
        (("--model", "3GiB", "--price", "L4"), 2, "--price"),
        (("--model", "3GiB", "--file", "x.yaml"), 2, "--file"),
        (("--file", "missing.yaml"), 2, "missing.yaml"),
        (("--model", "70B", "--gpu", "H100"), 1, ""),
        (("--model", "3GiB", "--gpu", "L4", "--cheapest"), 1, ""),
    ],
)
def test_exit_code_and_what_is_wrong(cli: Cli, arguments: tuple[str, ...], code: int, named: str) -> None:
    done = cli("plan", *arguments)
    assert done.returncode == code
    assert named in done.stderr.decode()
