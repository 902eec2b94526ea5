"""``gpu-advisor audit``."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.kubernetes import FakeKubernetes
from tests.service.cli.running import IDLE, MISMATCH, Cli

OBSERVED = "2026-11-30T09:00:00Z"
KEYS = {
    *("cluster", "observed_at", "findings", "unreadable", "failed_rules", "skipped_rules"),
    *("undecided", "exempted", "exemption_troubles", "disabled_rules"),
}
FINDING_KEYS = {
    "rule",
    "severity",
    "usual_severity",
    "title",
    "detail",
    "remedy",
    "objects",
    "evidence",
    "cost",
    "fingerprint",
}
RANK = ["critical", "high", "medium", "low", "info"]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kubeconfig(path: Path, *, context: str = "lab", port: int | None = None) -> Path:
    server = f"https://127.0.0.1:{port or closed_port()}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "top-secret-token"}}],
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def config(path: Path, *clusters: dict[str, Any], **settings: Any) -> Path:
    path.write_text(yaml.safe_dump({"clusters": list(clusters), **settings}))
    return path


def report(done: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_json_has_what_machines_need(cli: Cli) -> None:
    done = cli("audit", "--snapshot", IDLE, "--observed-at", OBSERVED, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    document = report(done)
    assert set(document) == KEYS
    assert document["cluster"] == "eks-managed-spot-ondemand"
    assert document["observed_at"] == OBSERVED
    assert document["failed_rules"] == []
    assert all(set(finding) == FINDING_KEYS for finding in document["findings"])
    ranks = [RANK.index(finding["severity"]) for finding in document["findings"]]
    assert ranks == sorted(ranks)
    for finding in document["findings"]:
        assert all(set(ref) == {"kind", "namespace", "name"} for ref in finding["objects"])


def test_the_idle_node_of_the_sample_is_found_with_its_cost(cli: Cli) -> None:
    document = report(cli("audit", "--snapshot", IDLE, "--observed-at", OBSERVED, "--format", "json"))
    idle = [finding for finding in document["findings"] if finding["rule"] == "idle-gpu-node"]
    assert [finding["objects"][0]["name"] for finding in idle] == ["ip-192-0-2-12.eu-west-1.compute.internal"]
    assert idle[0]["cost"]["usd_hour"] == pytest.approx(1.123)
    assert idle[0]["cost"]["usd_so_far"] > 0
    assert idle[0]["cost"]["basis"] == "list"


def test_the_driver_mismatch_of_the_sample_is_found(cli: Cli) -> None:
    document = report(cli("audit", "--snapshot", MISMATCH, "--observed-at", OBSERVED, "--format", "json"))
    found = [finding for finding in document["findings"] if finding["rule"] == "driver-cuda-mismatch"]
    assert [{"kind": "Pod", "namespace": "speech", "name": "asr-0"} in finding["objects"] for finding in found] == [
        True
    ]


@pytest.mark.parametrize(
    ("threshold", "code"), [(None, 0), ("critical", 0), ("high", 1), ("medium", 1), ("low", 1), ("info", 1)]
)
def test_fail_on_tells_the_shell(cli: Cli, threshold: str | None, code: int) -> None:
    arguments = ["--fail-on", threshold] if threshold else []
    done = cli("audit", "--snapshot", MISMATCH, "--observed-at", OBSERVED, *arguments)
    assert done.returncode == code, done.stderr


def test_text_is_heaviest_first_with_costs_and_no_colour_in_a_pipe(cli: Cli) -> None:
    done = cli("audit", "--snapshot", IDLE, "--observed-at", OBSERVED)
    text = done.stdout.decode()
    assert b"\x1b[" not in done.stdout
    assert text.startswith("Cluster eks-managed-spot-ondemand · as of Nov 30, 2026 09:00 UTC\n")
    assert "$1.12 per hour" in text
    assert "so far" in text
    assert text.index("\nMEDIUM ") < text.index("\nLOW ")
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize(("language", "word"), [("en", "Fix"), ("es", "Solución"), ("it", "Rimedio")])
def test_text_speaks_the_language_asked_for(cli: Cli, language: str, word: str) -> None:
    done = cli("audit", "--snapshot", IDLE, "--lang", language)
    assert word in done.stdout.decode()


def test_what_could_not_be_read_is_said_not_passed_over(cli: Cli, tmp_path: Path) -> None:
    items = [item for item in json.loads(IDLE.read_text())["items"] if item["kind"] == "Node"]
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items}))
    document = report(cli("audit", "--snapshot", nodes, "--format", "json"))
    assert "idle-gpu-node" not in {finding["rule"] for finding in document["findings"]}
    assert {"rule": "idle-gpu-node", "missing": ["Pod"]} in document["skipped_rules"]
    assert "Pod" in {item["kind"] for item in document["unreadable"]}
    text = cli("audit", "--snapshot", nodes).stdout.decode()
    assert "Could not be read" in text
    judged_not = text.partition("could not judge")[2]
    assert "Pod: " in judged_not
    assert "idle-gpu-node" in judged_not


def test_several_files_are_one_cluster_and_can_be_named(cli: Cli, tmp_path: Path) -> None:
    items = json.loads(IDLE.read_text())["items"]
    paths = []
    for name, wanted in (("nodes", True), ("rest", False)):
        path = tmp_path / f"{name}.json"
        part = [item for item in items if (item["kind"] == "Node") is wanted]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": part}))
        paths.append(path)
    split = cli("audit", "--snapshot", *paths, "--cluster", "a", "--observed-at", OBSERVED, "--format", "json")
    whole = cli("audit", "--snapshot", IDLE, "--cluster", "a", "--observed-at", OBSERVED, "--format", "json")
    assert report(split)["cluster"] == "a"
    assert report(split)["findings"] == report(whole)["findings"]
    assert report(whole)["findings"]


@pytest.mark.parametrize(
    ("body", "said"), [("{", "line 1"), ("hello", "Kubernetes"), ('{"kind": "List"', ""), ("", "")]
)
def test_a_file_that_is_no_snapshot_ends_with_2_and_says_where(cli: Cli, tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "bad.json").write_text(body)
    done = cli("audit", "--snapshot", "bad.json")
    assert done.returncode == 2
    assert b"bad.json" in done.stderr
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--snapshot", "missing.json"],
        ["--snapshot"],
        ["--snapshot", str(IDLE), "--context", "lab"],
        ["--snapshot", str(IDLE), "--observed-at", "2026-11-30"],
        ["--snapshot", str(IDLE), "--observed-at", "2026-11-30T09:00:00"],
        ["--snapshot", str(IDLE), "--cluster", "a b"],
        ["--observed-at", OBSERVED],
        ["--fail-on", "urgent"],
        ["--config", "missing.yaml"],
        ["--kubeconfig", "missing"],
        [],
    ],
)
def test_arguments_that_cannot_be_used_end_with_2_and_a_sentence(cli: Cli, arguments: list[str]) -> None:
    done = cli("audit", *arguments)
    assert done.returncode == 2, done.stdout
    assert done.stdout == b""
    assert b"gpu-advisor" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_cluster_that_cannot_be_reached_ends_with_3(cli: Cli, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "kubeconfig")
    done = cli("audit", "--kubeconfig", file, "--fail-on", "info")
    assert done.returncode == 3
    assert b"cluster lab" in done.stderr
    assert b"top-secret-token" not in done.stderr
    assert b"Traceback" not in done.stderr
    document = report(cli("audit", "--format", "json", KUBECONFIG=str(file)))
    assert document["cluster"] == "lab"
    assert document["error"]["code"] == "cluster-unreachable"


def test_a_live_cluster_is_read_through_its_api_and_equals_its_snapshot(cli: Cli, tmp_path: Path) -> None:
    with FakeKubernetes() as server:
        for item in json.loads(MISMATCH.read_text())["items"]:
            if item["kind"] in ("Node", "Pod", "DaemonSet"):
                server.state.put(item)
        live = cli("audit", "--kubeconfig", server.kubeconfig(tmp_path), "--cluster", "oke", "--format", "json")
        (tmp_path / "all.json").write_bytes(server.state.dump())
        assert all(request.method == "GET" for request in server.requests)
    assert live.returncode == 0, live.stderr
    found = {finding["fingerprint"] for finding in report(live)["findings"]}
    snapshot = cli("audit", "--snapshot", "all.json", "--cluster", "oke", "--format", "json")
    assert {finding["fingerprint"] for finding in report(snapshot)["findings"]} == found
    assert found


def test_an_unknown_context_is_bad_input(cli: Cli, tmp_path: Path) -> None:
    done = cli("audit", "--kubeconfig", kubeconfig(tmp_path / "kubeconfig"), "--context", "prod")
    assert done.returncode == 2
    assert b"prod" in done.stderr


def test_a_context_with_an_odd_name_becomes_a_cluster_name(cli: Cli, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "kubeconfig", context="arn:aws:eks:eu-west-1:1234:cluster/ml")
    document = report(cli("audit", "--kubeconfig", file, "--format", "json"))
    assert document["cluster"] == "arn-aws-eks-eu-west-1-1234-cluster-ml"


def test_one_cluster_that_fails_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    kubeconfig(tmp_path / "kubeconfig")
    (tmp_path / "bad.json").write_text("{")
    file = config(
        tmp_path / "settings.yaml",
        {"name": "away", "kubeconfig": "kubeconfig"},
        {"name": "eks", "snapshot": [str(IDLE)], "observed_at": OBSERVED},
        {"name": "broken", "snapshot": ["bad.json"]},
        {"name": "oke", "snapshot": [str(MISMATCH)], "observed_at": OBSERVED},
    )
    done = cli("audit", "--config", file, "--format", "json")
    assert done.returncode == 3
    audits = json.loads(done.stdout)["audits"]
    assert [audit["cluster"] for audit in audits] == ["away", "eks", "broken", "oke"]
    assert audits[0]["error"]["code"] == "cluster-unreachable"
    assert audits[2]["error"]["code"] == "snapshot-invalid"
    assert audits[1]["findings"]
    assert audits[3]["findings"]
    text = cli("audit", "--config", file)
    assert text.returncode == 3
    assert b"Cluster eks" in text.stdout
    assert b"Cluster oke" in text.stdout
    assert b"cluster away" in text.stderr
    assert b"bad.json" in text.stderr


def test_one_cluster_of_the_settings_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    file = config(
        tmp_path / "settings.yaml",
        {"name": "eks", "snapshot": [str(IDLE)], "observed_at": OBSERVED},
        {"name": "oke", "snapshot": [str(MISMATCH)], "observed_at": OBSERVED},
    )
    assert report(cli("audit", "--config", file, "--cluster", "oke", "--format", "json"))["cluster"] == "oke"
    unknown = cli("audit", "--config", file, "--cluster", "gke")
    assert unknown.returncode == 2
    assert b"eks, oke" in unknown.stderr


def test_thresholds_and_contract_prices_of_the_settings_count(cli: Cli, tmp_path: Path) -> None:
    price = {"provider": "aws", "instance_type": "g5.xlarge", "usd_hour": 0.5}
    file = config(tmp_path / "settings.yaml", prices=[price])
    arguments = ("audit", "--config", file, "--snapshot", IDLE, "--observed-at", OBSERVED, "--format", "json")
    idle = [finding for finding in report(cli(*arguments))["findings"] if finding["rule"] == "idle-gpu-node"]
    assert idle[0]["cost"]["usd_hour"] == 0.5
    assert idle[0]["cost"]["basis"] == "contract"
    config(tmp_path / "settings.yaml", policy={"disabled_rules": ["idle-gpu-node"]})
    assert "idle-gpu-node" not in {finding["rule"] for finding in report(cli(*arguments))["findings"]}


def test_settings_that_cannot_be_used_name_the_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("clusters:\n- name: a\n  snapshots: [x]\n")
    done = cli("audit", "--config", "settings.yaml")
    assert done.returncode == 2
    assert b"settings.yaml, line 3" in done.stderr
    (tmp_path / "settings.yaml").write_text("policy:\n  disabled_rules: [idle-node]\n")
    done = cli("audit", "--config", "settings.yaml", "--snapshot", IDLE)
    assert done.returncode == 2
    assert b"idle-gpu-node" in done.stderr


def test_terminals_that_do_not_speak_utf8_get_escapes_instead_of_a_crash(cli: Cli) -> None:
    done = cli("audit", "--snapshot", IDLE, "--lang", "es", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr


def test_a_reader_that_goes_away_ends_it_quietly(cli: Cli) -> None:
    with cli.start("audit", "--snapshot", IDLE, "--format", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


_WITHOUT_A_DATABASE = """
import sys
from service.main import main
code = main(["audit", "--kubeconfig", sys.argv[1], "--format", "json"])
heavy = {"sqlalchemy", "sqlmodel", "alembic", "litestar", "slack_bolt", "apscheduler", "lingua", "gpuhunt"}
print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_an_audit_of_a_live_cluster_loads_no_database_and_no_server(tmp_path: Path) -> None:
    with FakeKubernetes() as server:
        given = str(server.kubeconfig(tmp_path))
        command = [sys.executable, "-c", _WITHOUT_A_DATABASE, given]
        done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stderr.splitlines()[-1] == "0 []"
