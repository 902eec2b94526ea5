"""The compose file and the image, as far as they can be proved without a container engine."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{([A-Z_]+)")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def dockerfile() -> list[tuple[str, str]]:
    """Instructions of the image file, continuation lines joined: [(INSTRUCTION, arguments)]."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "deploy/Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_compose_file_follows_the_compose_specification() -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    result = subprocess.run([*checker, "docker-compose.yml"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_variable_of_the_compose_file_is_documented_and_none_besides() -> None:
    used = set(VARIABLE.findall((ROOT / "docker-compose.yml").read_text()))
    documented = set(re.findall(r"^([A-Z_]+)=", (ROOT / "deploy/env.example").read_text(), re.MULTILINE))
    assert documented == used


def test_secrets_come_from_the_environment_and_have_no_default(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for secret in ("POSTGRES_PASSWORD", "GPU_ADVISOR_API_TOKEN"):
        assert f"${{{secret}:?" in text, f"{secret} must be demanded"
        assert f"${{{secret}:-" not in text
    assert compose["secrets"]["postgres_password"] == {"environment": "POSTGRES_PASSWORD"}


def test_service_is_locked_down_and_both_services_report_their_health(compose: dict[str, Any]) -> None:
    advisor = compose["services"]["advisor"]
    assert advisor["read_only"] is True
    assert advisor["cap_drop"] == ["ALL"]
    assert advisor["user"] == "10001:10001"
    assert "no-new-privileges:true" in advisor["security_opt"]
    assert all("healthcheck" in service for service in compose["services"].values())
    assert advisor["depends_on"]["db"]["condition"] == "service_healthy"
    assert set(compose["volumes"]) == {
        volume["source"]
        for service in compose["services"].values()
        for volume in service["volumes"]
        if volume["type"] == "volume"
    }


def test_image_runs_as_the_user_that_compose_names_and_never_as_root(
    dockerfile: list[tuple[str, str]], compose: dict[str, Any]
) -> None:
    last_stage = dockerfile[max(i for i, (name, _) in enumerate(dockerfile) if name == "FROM") :]
    assert [value for name, value in last_stage if name == "USER"] == [compose["services"]["advisor"]["user"]]
    assert not any(value.endswith(":latest") or ":" not in value for name, value in dockerfile if name == "FROM")


def test_image_copies_only_what_is_there_and_what_the_ignore_file_lets_through(
    dockerfile: list[tuple[str, str]],
) -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name, value in dockerfile:
        if name == "COPY" and "--from" not in value:
            for source in value.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source.removeprefix("./") in let_through, f"{source} is hidden by .dockerignore"


def test_image_command_and_health_probe_exist_in_the_product(
    dockerfile: list[tuple[str, str]], compose: dict[str, Any]
) -> None:
    instructions = dict(dockerfile)
    entry = json.loads(instructions["ENTRYPOINT"]) + json.loads(instructions["CMD"])
    assert entry[:2] == ["gpu-advisor", "serve"]
    probe = json.loads(instructions["HEALTHCHECK"].split("CMD", 1)[1])
    assert probe == compose["services"]["advisor"]["healthcheck"]["test"][1:]
    assert "/health/ready" in probe[-1]


@pytest.mark.timeout(600)
def test_install_steps_of_the_image_give_a_working_product_in_a_fresh_environment(
    dockerfile: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Copies what the image copies, runs its build step with a bare environment, then uses the result read-only."""
    tree = tmp_path / "src"
    tree.mkdir()
    for name, value in dockerfile:
        if name == "COPY" and "--from" not in value:
            *sources, _ = value.split()
            for source in sources:
                target = tree / source
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / source, target)
    build = next(value for name, value in dockerfile if name == "RUN" and "install.sh" in value).split()
    assert build[0] == "./deploy/install.sh"
    home = tmp_path / "home"
    home.mkdir()
    kept = ("PATH", "PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "no_proxy", "NO_PROXY", "LANG")
    environment = {k: v for k, v in os.environ.items() if k.startswith(kept)}
    cache = Path(os.environ.get("UV_CACHE_DIR", Path.home() / ".cache/uv"))
    environment |= {"HOME": str(home), "UV_CACHE_DIR": str(cache)}
    prefix = tmp_path / "opt"
    subprocess.run([build[0], str(prefix)], cwd=tree, env=environment, check=True, capture_output=True, text=True)
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    asked = subprocess.run(
        [prefix / "bin/gpu-advisor", "ask", "--format", "json", "are drivers preinstalled on gpu nodes?"],
        env=bare,
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(asked.stdout)["topic"] == "drivers_preinstalled"
    sample = ROOT / "tests/data/clusters/karpenter-idle-bill.json"
    audited = subprocess.run(
        [prefix / "bin/gpu-advisor", "audit", "--snapshot", sample, "--format", "json"],
        env=bare,
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(audited.stdout)["failed_rules"] == []
    assert not list(prefix.rglob("hatchling")), "build tools stay out of the image"
