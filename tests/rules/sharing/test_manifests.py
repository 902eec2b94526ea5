"""The configuration does what the plan says, in the formats that the upstream programs read."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rules.sharing.devices import device
from rules.sharing.manifests import Configuration, configuration
from rules.sharing.model import SharingRequest, Workload
from rules.sharing.placement import place
from rules.sharing.plan import plan

SCHEMAS = Path(__file__).parents[2] / "data/sharing"

REQUESTS = {
    "mig": SharingRequest(
        models=(Workload(name="Small One", memory_gib=3, replicas=12), Workload(name="big", memory_gib=15, replicas=2)),
        gpus=("A100-40GB",),
        modes=("mig",),
    ),
    "mps": SharingRequest(models=(Workload(name="m", memory_gib=4, replicas=7),), gpus=("L4",), modes=("mps",)),
    "time-slicing": SharingRequest(
        models=(Workload(name="m", memory_gib=5, replicas=10),), gpus=("L4",), modes=("time-slicing",)
    ),
    "both": SharingRequest(
        models=(
            Workload(name="strict", memory_gib=4, replicas=3, isolation="fault"),
            Workload(name="loose", memory_gib=0.5, replicas=60),
            Workload(name="huge", parameters_b=70, precision="fp16"),
        ),
        gpus=("L4", "A100-40GB"),
    ),
    "whole": SharingRequest(models=(Workload(name="m", memory_gib=70, replicas=2),), gpus=("H100",)),
    "amd": SharingRequest(models=(Workload(name="m", memory_gib=70, replicas=2),), gpus=("MI300X",)),
}


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def made(name: str) -> Configuration:
    return configuration(plan(REQUESTS[name]))


def config_data(found: Configuration, file: str) -> dict[str, Any]:
    body = next(item.body for item in found.manifests if item.file == file)
    assert (body["apiVersion"], body["kind"]) == ("v1", "ConfigMap")
    return {key: yaml.safe_load(text) for key, text in body["data"].items()}


@pytest.mark.parametrize("name", list(REQUESTS))
def test_everything_validates_against_the_upstream_formats(name: str) -> None:
    found = made(name)
    for manifest in found.manifests:
        if manifest.file == "cluster-policy-patch.yaml":
            jsonschema.validate(yaml.safe_load(yaml.safe_dump(dict(manifest.body))), schema("cluster_policy"))
            continue
        of = "mig_parted" if manifest.file.startswith("mig") else "device_plugin"
        for document in config_data(found, manifest.file).values():
            jsonschema.validate(document, schema(of))


@pytest.mark.parametrize("name", list(REQUESTS))
def test_the_layouts_hold_every_gpu_and_replica_of_the_plan(name: str) -> None:
    planned, found = plan(REQUESTS[name]), made(name)
    assert sum(layout.gpus for layout in found.layouts) == planned.gpus
    assert {pod.body["metadata"]["name"] for pod in found.pods} == {
        item.name.lower().replace(" ", "-") for item in REQUESTS[name].models
    }
    for layout in found.layouts:
        if layout.mode == "mig":
            geometry = device(layout.of).geometry
            assert geometry is not None
            assert place(geometry, [layout.slices.get(item.name, 0) for item in geometry.profiles]) is not None


def test_mig_layouts_are_in_the_config_map_that_the_cluster_policy_names() -> None:
    found = made("mig")
    configs = config_data(found, "mig-parted-config.yaml")["config.yaml"]["mig-configs"]
    assert {layout.name for layout in found.layouts} <= set(configs)
    patch = next(item.body for item in found.manifests if item.file == "cluster-policy-patch.yaml")["spec"]
    assert patch["migManager"]["config"]["name"] == found.manifests[0].body["metadata"]["name"]
    assert patch["mig"] == {"strategy": "mixed"}
    indexes = [index for entry in configs["a100-40gb-one-node"] for index in entry["devices"]]
    assert indexes == list(range(plan(REQUESTS["mig"]).gpus))
    small = next(pod.body for pod in found.pods if pod.body["metadata"]["name"] == "small-one")
    assert small["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/mig-1g.5gb": 1}


@pytest.mark.parametrize(("name", "method", "replicas"), [("mps", "mps", 5), ("time-slicing", "timeSlicing", 4)])
def test_replicas_are_those_of_the_plan_and_more_than_one_is_refused(name: str, method: str, replicas: int) -> None:
    found = made(name)
    layout = next(item for item in found.layouts if item.mode == name)
    sharing = config_data(found, "device-plugin-config.yaml")[layout.name]["sharing"]
    assert list(sharing) == [method]
    assert sharing[method]["failRequestsGreaterThanOne"] is True
    assert sharing[method]["resources"] == [{"name": "nvidia.com/gpu", "replicas": replicas}]
    limits = found.pods[0].body["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu.shared": 1}


def test_whole_gpus_need_no_configuration() -> None:
    assert made("whole").manifests == ()
    assert made("whole").pods[0].body["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert made("amd").pods[0].body["spec"]["containers"][0]["resources"]["limits"] == {"amd.com/gpu": 1}


def test_a_node_is_drained_before_its_mig_layout_changes_and_the_map_is_there_before_the_label() -> None:
    keys = [step.key for step in made("mig").steps]
    assert keys.index("apply") < keys.index("point_operator") < keys.index("drain") < keys.index("label_mig")
    assert keys.index("label_mig") < keys.index("wait_mig") < keys.index("uncordon")
