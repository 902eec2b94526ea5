"""The registry from the command line: one image, and a whole audit."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.main import main
from tests.fakes.registry import FakeRegistry
from tests.rules.checks.kit import NOW, container_status, node, pod

LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-L4",
    "nvidia.com/cuda.driver-version.full": "535.183.01",
}


@pytest.fixture(autouse=True)
def away_from_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GPU_ADVISOR_CONFIG", "GPU_ADVISOR_REGISTRY_AUTH"):
        monkeypatch.delenv(name, raising=False)


def config(tmp_path: Path, **registry: Any) -> str:
    file = tmp_path / "gpu-advisor.yaml"
    file.write_text(json.dumps({"registry": {"hosts": ["127.0.0.1"], **registry}}), "utf-8")
    return str(file)


def compat(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    capsys.readouterr()
    main(["compat", "--driver", "535.183.01", "--gpu", "L4", "--format", "json", *arguments])
    out, err = capsys.readouterr()
    return json.loads(out), err


def test_the_registry_decides_over_the_tag(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.add("team/train", "cuda11.8", env=["CUDA_VERSION=13.0.1"])
    image = ("--image", f"{registry.host}/team/train:cuda11.8")
    assert compat(capsys, *image)[0]["verdict"] == "ok"
    answer, warning = compat(capsys, *image, "--registry", "--config", config(tmp_path))
    assert (answer["cuda"], answer["image"]["how"], warning) == ("13.0.1", "config", "")
    assert answer["verdict"] == "needs_forward_compat"


def test_without_an_answer_the_tag_decides_and_that_is_said(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = ("--image", f"{registry.host}/team/none:cuda11.8", "--registry")
    answer, warning = compat(capsys, *image, "--config", config(tmp_path))
    assert answer["verdict"] == "ok"
    assert "no such image" in warning
    answer, warning = compat(capsys, *image)
    assert answer["verdict"] == "ok"
    assert "registry.hosts" in warning


def test_arguments_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--cuda", "12.4", "--registry"], ["--batch", "x.jsonl", "--registry"]):
        assert main(["compat", *arguments]) == 2
    assert "--image" in capsys.readouterr().err


@pytest.mark.parametrize("enabled", [True, False])
def test_an_audit_knows_what_a_moving_tag_holds_when_it_may_ask(
    registry: FakeRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str], enabled: bool
) -> None:
    digest = registry.add("team/train", "latest", env=["CUDA_VERSION=13.0.1"])
    status = container_status(waiting="CrashLoopBackOff", restarts=9)
    status["containerStatuses"][0]["imageID"] = f"{registry.host}/team/train@{digest}"
    train = pod(on="gpu-1", image=f"{registry.host}/team/train:latest", gpus={"nvidia.com/gpu": 1}, status=status)
    snapshot = tmp_path / "dump.json"
    snapshot.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node(labels=LABELS), train]}))
    capsys.readouterr()
    arguments = ["--snapshot", str(snapshot), "--observed-at", NOW.isoformat(), "--format", "json"]
    main(["audit", *arguments, "--config", config(tmp_path, enabled=enabled)])
    found = [item["rule"] for item in json.loads(capsys.readouterr().out)["findings"]]
    assert ("driver-cuda-mismatch" in found) is enabled
    assert bool(registry.requests) is enabled
