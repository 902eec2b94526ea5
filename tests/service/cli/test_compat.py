"""``gpu-advisor compat``."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.cli.running import ROOT, Cli


def verdict(cli: Cli, *arguments: str) -> dict[str, Any]:
    done = cli("compat", "--format", "json", *arguments)
    assert done.stderr == b""
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_json_has_verdict_reasons_and_what_was_read(cli: Cli) -> None:
    answer = verdict(cli, "--driver", "535.183.01", "--image", "nvidia/cuda:12.8.1-base-ubuntu22.04", "--gpu", "l4")
    assert answer["verdict"] == "ok_minor_compat"
    assert (answer["driver"], answer["cuda"], answer["gpu"]) == ("535.183.01", "12.8.1", "L4")
    assert all({"text", "source"} <= set(reason) for reason in (*answer["reasons"], *answer["warnings"]))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--driver", "550.54.15", "--cuda", "12.4.1"), 0),
        (("--driver", "535.183.01", "--cuda", "12.8"), 0),
        (("--driver", "580.95.05", "--cuda", "13.0", "--gpu", "V100"), 1),
        (("--driver", "620.70.06", "--image", "pytorch/pytorch:latest"), 1),
        (("--driver", "6.3.1", "--cuda", "6.4", "--vendor", "amd"), 0),
        (("--driver", "535.183.01"), 2),
        (("--driver", "535.183.01", "--batch", "x.jsonl"), 2),
        (("--batch", "missing.jsonl"), 2),
        (("--driver", "535", "--cuda", "12.2", "--lang", "de"), 2),
    ],
)
def test_exit_code(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    assert cli("compat", *arguments).returncode == code


@pytest.mark.parametrize(
    ("language", "words"), [("en", "older than"), ("es", "es anterior a"), ("it", "è precedente a")]
)
def test_text_is_in_the_language(cli: Cli, language: str, words: str) -> None:
    done = cli("compat", "--driver", "535.183.01", "--cuda", "12.8", "--gpu", "L4", "--lang", language)
    text = done.stdout.decode()
    assert text.startswith("ok_minor_compat: ")
    assert words in text
    assert "https://docs.nvidia.com" in text


def test_batch_judges_line_by_line_in_order(cli: Cli, tmp_path: Path) -> None:
    cases = yaml.safe_load((ROOT / "tests/data/compat_cases.yaml").read_text("utf-8"))
    batch = tmp_path / "cases.jsonl"
    batch.write_text("\n".join(json.dumps(case) for case in cases), "utf-8")
    done = cli("compat", "--batch", batch)
    assert done.returncode == 0
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [case["id"] for case in cases]
    wrong = [
        case["id"]
        for case, answer in zip(cases, answers, strict=True)
        if answer["verdict"] not in (case["expect"], *case.get("also_ok", ()))
    ]
    assert wrong == []


def test_a_bad_line_costs_no_other_its_verdict(cli: Cli) -> None:
    lines = (
        b'{"id": 1, "driver": 535, "cuda": 12.2}\nnonsense\n[1]\n{"id": 4, "gpu": []}\n\n'
        b'{"id": 5, "driver": "580.65.06", "cuda": "13.0"}\n'
    )
    done = cli("compat", "--batch", "-", stdin=lines)
    assert done.returncode == 2
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("verdict") for answer in answers] == ["ok", None, None, None, "ok"]
    assert [answer["line"] for answer in answers[1:4]] == [2, 3, 4]
    assert answers[3]["id"] == 4
    assert '"gpu"' in answers[3]["error"]["detail"]
