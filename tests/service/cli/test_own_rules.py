"""Rules and wishes of a team on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.service.cli.running import IDLE, Cli

OBSERVED = "2026-11-30T09:00:00Z"
RULES = """\
rules:
  - id: gpu-node-without-team
    scope: node
    when: |
      node.gpu.present &&
      !("team" in node.labels)
    severity: high
    title: {en: "GPU node {node} belongs to no team", es: "El nodo GPU {node} no es de nadie"}
    detail: "It has {cards}."
    remedy: "`kubectl label node {node} team=TEAM`"
    values:
      cards: {value: node.gpu.count, unit: GPU}
    source: https://wiki.example/gpu-teams
  - id: old-driver
    scope: node
    when: node.driver.olderThan("400")
    title: Old driver
    detail: It is old.
    remedy: Renew it.
"""
WISHES = """\
policy:
  disabled_rules: [gpu-pod-pending]
  severity: {idle-gpu-node: info}
  exemptions:
    - {rules: [gpu-node-without-team], name: "*-11.eu-west-1.*", reason: goes next week, until: 2026-12-05}
    - {rules: [gpu-node-without-team], reason: first try, until: 2026-11-01}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "gpu-advisor.yaml"
    file.write_text(text)
    return file


def audit(cli: Cli, config: Path, *more: str) -> dict[str, Any]:
    done = cli(*("audit", "--config", config, "--snapshot", IDLE, "--observed-at", OBSERVED, "--format", "json"), *more)
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_the_audit_asks_rules_of_the_team_and_follows_its_wishes(cli: Cli, tmp_path: Path) -> None:
    report = audit(cli, written(tmp_path, RULES + WISHES), "--lang", "es")
    own = [item for item in report["findings"] if item["rule"] == "gpu-node-without-team"]
    assert {item["title"] for item in own} == {
        "El nodo GPU ip-192-0-2-12.eu-west-1.compute.internal no es de nadie",
        "El nodo GPU ip-192-0-2-21.eu-west-1.compute.internal no es de nadie",
    }
    assert all(item["detail"].startswith("It has ") for item in own)
    [idle] = [item for item in report["findings"] if item["rule"] == "idle-gpu-node"]
    assert (idle["severity"], idle["usual_severity"]) == ("info", "medium")
    [hidden] = report["exempted"]
    assert (hidden["reason"], hidden["until"], hidden["by"]) == (
        "goes next week",
        "2026-12-05",
        "policy.exemptions[0]",
    )
    assert hidden["finding"]["objects"][0]["name"] == "ip-192-0-2-11.eu-west-1.compute.internal"
    [trouble] = report["exemption_troubles"]
    assert (trouble["by"], trouble["problem"], trouble["until"]) == ("policy.exemptions[1]", "ended", "2026-11-01")
    assert report["disabled_rules"] == ["gpu-pod-pending"]
    [undecided] = report["undecided"]
    assert (undecided["rule"], undecided["unknown"]) == ("old-driver", ["node.driver"])


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Exempted, so not among", "until Dec 5, 2026: goes next week", "it ended on Nov 1, 2026 (first try)"]),
        ("es", ["Exento: no figura", "hasta 5 dic 2026: goes next week", "venció el 1 nov 2026 (first try)"]),
        ("it", ["Esentato, quindi non tra", "fino al 5 dic 2026: goes next week", "è scaduta il 1 nov 2026"]),
    ],
)
def test_text_says_what_is_hidden_and_why(cli: Cli, tmp_path: Path, language: str, expected: list[str]) -> None:
    config = written(tmp_path, RULES + WISHES)
    done = cli("audit", "--config", config, "--snapshot", IDLE, "--observed-at", OBSERVED, "--lang", language)
    text = " ".join(done.stdout.decode().split())
    usually = {"en": "usually medium", "es": "normalmente medio", "it": "di norma medio"}[language]
    off = {"en": "Switched off", "es": "Desactivadas", "it": "Disattivate"}[language]
    unknown = {"en": "node.driver unknown", "es": "node.driver sin conocer", "it": "node.driver non noto"}[language]
    for words in (*expected, usually, f"{off}: gpu-pod-pending", f"old-driver: {unknown}"):
        assert words in text


def test_rules_of_the_team_are_listed_and_explained(cli: Cli, tmp_path: Path) -> None:
    config = written(tmp_path, RULES)
    listed = cli("rules", "--config", config).stdout.decode()
    assert "gpu-node-without-team" in listed
    assert "idle-gpu-node" in listed
    explained = cli("rules", "gpu-node-without-team", GPU_ADVISOR_CONFIG=str(config)).stdout.decode()
    for words in ("high, custom", "What:", '!("team" in node.labels)', "https://wiki.example/gpu-teams"):
        assert words in explained
    detail = json.loads(cli("rules", "gpu-node-without-team", "--config", config, "--format", "json").stdout)
    assert (detail["needs"], detail["words"]["title"]["es"]) == (["Node"], "El nodo GPU {node} no es de nadie")
    assert cli("rules", "gpu-node-without-team").returncode == 2


@pytest.mark.parametrize("command", [("rules",), ("audit", "--snapshot", IDLE), ("serve", "--port", "0")])
def test_a_wrong_expression_is_bad_input_and_names_its_place(
    cli: Cli, tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    config = written(tmp_path, RULES.replace('!("team" in node.labels)', '!("team" in node.lables)'))
    done = cli(*command, "--config", config)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0] == (
        f"gpu-advisor: {config}, line 6: rule 'gpu-node-without-team', `when`, line 2, column 18: "
        "there is no fact 'lables'; did you mean 'labels'? facts of a node: age_seconds, annotations, architecture, "
        "conditions, container_runtime, cordoned, created, cuda_ceiling, driver, gpu, instance_type, kernel, kubelet, "
        "labels, name, os_image, pods, pool, price_usd_hour, provider, ready, region, spot, taints, zone"
    )
    assert done.stderr.decode().splitlines()[1:] == [
        '    !("team" in node.lables)',
        "                     ^",
    ]


def test_a_rule_of_the_team_that_fails_tells_the_shell(cli: Cli, tmp_path: Path) -> None:
    config = written(tmp_path, RULES.replace('!("team" in node.labels)', 'node.labels.team == "x"'))
    done = cli("audit", "--config", config, "--snapshot", IDLE, "--observed-at", OBSERVED)
    assert done.returncode == 4
    text = " ".join(done.stdout.decode().split())
    assert "gpu-node-without-team (Node/ip-192-0-2-11" in text
    assert "there is no key 'team'; ask for it first" in text
