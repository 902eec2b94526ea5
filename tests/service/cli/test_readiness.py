"""``gpu-advisor readiness`` as people run it."""

import json
from pathlib import Path

import pytest

from service.main import main

CLUSTERS = Path(__file__).parents[2] / "data/clusters"
COREWEAVE = str(CLUSTERS / "coreweave-h100-infiniband.json")


def test_json_has_a_state_and_objects_for_every_requirement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["readiness", "--snapshot", COREWEAVE, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["cluster"], document["state"]) == ("coreweave-h100-infiniband", "not_met")
    states = {item["topic"]: item["state"] for item in document["requirements"]}
    assert states == {
        "interconnect": "met",
        "gang_scheduling": "not_met",
        "training_operator": "met",
        "shared_storage": "met",
    }
    gang = next(item for item in document["requirements"] if item["topic"] == "gang_scheduling")
    assert {"kind": "PyTorchJob", "namespace": "train", "name": "pretrain-7b"} in gang["objects"]
    assert gang["next_step"]


@pytest.mark.parametrize(
    ("lang", "said"),
    [("en", "Gang scheduling: not met"), ("es", "no cumplido"), ("it", "non soddisfatto")],
)
def test_text_speaks_three_languages(capsys: pytest.CaptureFixture[str], lang: str, said: str) -> None:
    assert main(["readiness", "--snapshot", COREWEAVE, "--lang", lang]) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "PyTorchJob/train/pretrain-7b" in out


def test_require_turns_what_is_missing_into_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["readiness", "--snapshot", COREWEAVE, "--require"]) == 1
    assert capsys.readouterr().err == ""


def test_the_clusters_of_the_settings_are_all_read_and_a_lost_one_stops_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"clusters:\n  - {{name: gpu, snapshot: [{COREWEAVE}]}}\n  - {{name: lost, snapshot: [{tmp_path}/no.json]}}\n"
    )
    assert main(["readiness", "--config", str(config), "--format", "json"]) == 2
    first, second = json.loads(capsys.readouterr().out)["clusters"]
    assert (first["cluster"], first["state"]) == ("gpu", "not_met")
    assert second["error"]["code"] == "snapshot-invalid"
    assert main(["readiness", "--config", str(config), "--cluster", "gpu", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"] == "gpu"


def test_an_unknown_cluster_is_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"clusters:\n  - {{name: gpu, snapshot: [{COREWEAVE}]}}\n")
    assert main(["readiness", "--config", str(config), "--cluster", "other"]) == 2
    assert "other" in capsys.readouterr().err
