"""``gpu-advisor serve`` and ``gpu-advisor demo`` as processes."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.service.cli.running import IDLE, Cli

STOPS_WITHIN = 25


def first_line_with(pattern: str, process: "subprocess.Popen[bytes]", stream: str) -> str:
    """Read ``stream`` until a line matches; the match's first group. Fails when the process ends before."""
    pipe = getattr(process, stream)
    seen = b""
    for line in pipe:
        seen += line
        found = re.search(pattern, line.decode())
        if found:
            return found[1]
    pytest.fail(f"{pattern} never came:\n{seen.decode()}{process.communicate()}")


@contextmanager
def stopped(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill the process when the test has failed to stop it."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def client(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, trust_env=False, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_answers_until_it_is_told_to_stop(cli: Cli, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "settings.yaml").write_text(
        f"clusters:\n- {{name: eks, snapshot: ['{IDLE}'], observed_at: 2026-11-30T09:00:00Z}}\n"
    )
    process = cli.start("serve", "--config", "settings.yaml", "--port", "0")
    with stopped(process):
        address = first_line_with(r"address=(http://127\.0\.0\.1:\d+)", process, "stderr")
        with client(address) as http:
            assert http.get("/health/ready").status_code == 200
            assert http.get("/v1/clusters").json()["items"][0]["name"] == "eks"
        process.send_signal(number)
        _, said = process.communicate(timeout=STOPS_WITHIN)
        assert process.returncode == 0, said
        assert b"Traceback" not in said
    assert (tmp_path / "gpu-advisor.db").exists()


def test_serve_stops_in_time_though_a_client_keeps_its_connection(cli: Cli) -> None:
    process = cli.start("serve", "--port", "0")
    with stopped(process):
        address = first_line_with(r"address=(http://127\.0\.0\.1:\d+)", process, "stderr")
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as half:
            half.sendall(b"POST /v1/ask HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
            with client(address) as http:
                http.get("/health/live")
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=STOPS_WITHIN)
        assert process.returncode == 0


def test_logs_are_json_lines_when_asked_for_and_know_the_request_not_the_token(cli: Cli) -> None:
    process = cli.start("serve", "--port", "0", GPU_ADVISOR_LOG_FORMAT="json", GPU_ADVISOR_API_TOKEN="s3cret-token")
    with stopped(process):
        address = first_line_with(r'"address": "(http://127\.0\.0\.1:\d+)"', process, "stderr")
        with client(address) as http:
            for token in ("s3cret-token", "wrong-token"):
                headers = {"authorization": f"Bearer {token}", "x-request-id": f"with-{token[:5]}"}
                http.get("/v1/clusters", headers=headers)
        process.send_signal(signal.SIGTERM)
        seen = [json.loads(line) for line in process.stderr or ()]
        assert process.wait(STOPS_WITHIN) == 0
    requests = {line["request_id"]: line["status"] for line in seen if line["event"] == "request"}
    assert requests == {"with-s3cre": 200, "with-wrong": 401}
    assert "cret-token" not in str(seen)
    assert all(line["level"] and line["timestamp"] for line in seen)


def test_serve_refuses_other_machines_without_a_token(cli: Cli) -> None:
    done = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert b"GPU_ADVISOR_API_TOKEN" in done.stderr
    assert b"Traceback" not in done.stderr


def test_settings_that_cannot_be_used_end_with_2_and_the_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("port: 8000\nhots: 127.0.0.1\n")
    done = cli("serve", "--config", "settings.yaml")
    assert done.returncode == 2
    assert b"settings.yaml, line 2" in done.stderr


def test_a_database_that_does_not_answer_ends_it_with_a_sentence(cli: Cli) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"postgresql://advisor:hunter2@127.0.0.1:{probe.getsockname()[1]}/advisor"
        done = cli("serve", "--port", "0", DATABASE_URL=url)
    assert done.returncode == 3, done.stderr
    assert b"the database does not answer" in done.stderr
    assert b"hunter2" not in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_in_use_is_explained(cli: Cli, command: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli(command, "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert b"--port" in done.stderr
    assert b"in use" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(cli: Cli, port: str) -> None:
    assert cli("serve", "--port", port).returncode == 2


def test_the_demo_shows_an_idle_node_with_its_cost_and_a_mismatch(cli: Cli, tmp_path: Path) -> None:
    process = cli.start("demo", "--port", "0", TMPDIR=str(tmp_path))
    with stopped(process):
        address = first_line_with(r"two sample clusters on (http://localhost:\d+)", process, "stdout")
        for language in ("workload per GPU", "carga por GPU", "carico di lavoro per GPU"):
            assert first_line_with(f"(curl .*{language})", process, "stdout").startswith(f"curl -s {address}/v1/ask")
        with client(address) as http:
            asked = {"text": "¿puedo ejecutar más de una carga por GPU?"}
            answer = http.post("/v1/ask", json=asked).json()
            assert answer["language"] == "es"
            assert answer["topic"] == "multiple_workloads_per_gpu"
            assert [item["state"] for item in http.get("/v1/clusters").json()["items"]] == ["ok", "ok"]
            rules = {item["rule"] for item in http.get("/v1/findings?state=open").json()["items"]}
            assert {"idle-gpu-node", "driver-cuda-mismatch"} <= rules
            idle = http.get("/v1/findings?rule=idle-gpu-node&lang=it").json()["items"]
            assert idle[0]["cost"]["usd_hour"] > 1
            assert idle[0]["cost"]["usd_so_far"] > 100
            started = http.post("/v1/clusters/oke-a10-a100-pools/audits")
            assert started.status_code == 202
            assert http.get(started.headers["location"]).json()["state"] in ("queued", "running", "done")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=STOPS_WITHIN)
        assert process.returncode == 0, said
        assert said == b"", "the demo is quiet"
    assert [path.name for path in tmp_path.glob("gpu-advisor-demo-*")] == []


def test_the_demo_says_what_it_found_before_what_to_try(cli: Cli) -> None:
    process = cli.start("demo", "--port", "0")
    with stopped(process):
        line = first_line_with(r"(.*per hour.*)", process, "stdout")
        assert "ip-192-0-2-12" in line
        assert "so far" in line
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOPS_WITHIN)
        assert process.returncode == 0
