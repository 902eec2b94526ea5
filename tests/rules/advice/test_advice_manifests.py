"""Manifests to start from are valid: by the models of the official client, and by the definitions of other projects."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes.client
import pytest
import yaml

from rules.advice.report import document
from tests.rules.advice.catalogue import advice

DATA = Path(__file__).parents[2] / "data/advice"
DEFINITIONS = {
    schema["properties"]["kind"]["const"]: schema
    for schema in map(json.loads, (f.read_text() for f in DATA.glob("*.json")))
}
MODELS = {
    "Deployment": "V1Deployment",
    "Service": "V1Service",
    "Job": "V1Job",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler",
}
PLAIN: dict[str, Any] = {"str": str, "int": int, "bool": bool, "float": float, "object": object, "datetime": datetime}
LLM: dict[str, Any] = {
    "kind": "inference",
    "gpu": ["H100"],
    "models": [{"name": "LLM 70b", "parameters_b": 70, "precision": "fp8"}],
}
NODES: dict[str, Any] = {"kind": "training", "gpu": ["H100"], "gpus": 8, "nodes": 4}
REQUESTS: dict[str, dict[str, Any]] = {
    "scaled": {**LLM, "autoscaling": True},
    "to-zero": {**LLM, "autoscaling": True, "scale_to_zero": True, "storage": "shared"},
    "packed": {
        "kind": "inference",
        "gpu": ["A100"],
        "models": [{"name": "s", "memory_gib": 3, "replicas": 12}],
        "isolation": "fault",
    },
    "batch": {"kind": "batch", "gpu": ["L4"], "parallel": 10, "interruptible": True, "storage": "block"},
    "nodes": NODES,
    "spot-nodes": {**NODES, "interruptible": True, "storage": "none"},
    "amd": {**LLM, "gpu": ["MI300X"], "autoscaling": True},
    "edge": {"kind": "inference", "gpu": ["L4"], "edge": True, "autoscaling": True},
    "notebooks": {"kind": "notebook", "gpu": ["A100-80GB"], "parallel": 8, "storage": "block"},
}


def of(name: str) -> dict[str, dict[str, Any]]:
    """Manifests of a request, read back from their YAML, by file."""
    told = document(advice(**REQUESTS[name]), "en")["manifests"]
    return {item["file"]: yaml.safe_load(item["yaml"]) for item in told}


def check(value: Any, kind: str, where: str) -> None:
    """Every field of a value is one of the model, of the right type, and none that is demanded is missing."""
    if match := re.fullmatch(r"List\[(.+)\]", kind):
        assert isinstance(value, list), where
        for index, item in enumerate(value):
            check(item, match[1], f"{where}[{index}]")
    elif match := re.fullmatch(r"Dict\[str, (.+)\]", kind):
        assert isinstance(value, dict), where
        for key, item in value.items():
            check(item, match[1], f"{where}.{key}")
    elif kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), f"{where}: {value!r}"
        assert kind == "bool" or not isinstance(value, bool), where
    else:
        check_model(value, getattr(kubernetes.client, kind), where)


def check_model(value: Any, model: Any, where: str) -> None:
    assert isinstance(value, dict), where
    names = {name: field for field, name in model.attribute_map.items()}
    for key, item in value.items():
        assert key in names, f"{where}.{key} is no field of {model.__name__}"
        if model.openapi_types[names[key]] == "IntOrString":
            assert isinstance(item, int | str), where
        else:
            check(item, model.openapi_types[names[key]], f"{where}.{key}")
    # the client refuses a model that lacks what the API demands
    model(**{names[key]: item for key, item in value.items()})


@pytest.mark.parametrize("name", list(REQUESTS))
def test_every_manifest_is_valid(name: str) -> None:
    found = of(name)
    assert found
    for file, body in found.items():
        if body["kind"] in MODELS:
            check(body, MODELS[body["kind"]], file)
        else:
            jsonschema.validate(body, DEFINITIONS[body["kind"]])
        if body["kind"] == "JobSet":
            for job in body["spec"]["replicatedJobs"]:
                check(job["template"], "V1JobTemplateSpec", f"{file}.template")


@pytest.mark.parametrize(
    "wrong", [{"spec": {"replica": 1}}, {"spec": {"replicas": "1", "selector": {}, "template": {}}}, {"spec": {}}]
)
def test_the_check_sees_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check(wrong, "V1Deployment", "wrong")


def pod_of(body: dict[str, Any]) -> dict[str, Any]:
    spec = body["spec"]
    if body["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    pod: dict[str, Any] = spec["template"]["spec"]
    return pod


@pytest.mark.parametrize("name", list(REQUESTS))
def test_pods_ask_for_a_gpu_tolerate_its_taint_and_have_room_in_shm(name: str) -> None:
    bodies = [body for body in of(name).values() if body["kind"] in ("Deployment", "Job", "JobSet")]
    assert bodies
    for body in bodies:
        pod = pod_of(body)
        limits = pod["containers"][0]["resources"]["limits"]
        assert any(key.startswith(("nvidia.com/", "amd.com/")) for key in limits)
        assert any(each["key"] in ("nvidia.com/gpu", "amd.com/gpu") for each in pod["tolerations"])
        assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
        assert "REPLACE-WITH-GPU-PRODUCT" in pod["nodeSelector"].values()
        spot = "REPLACE-WITH-SPOT-TAINT" in {each["key"] for each in pod["tolerations"]}
        assert spot == bool(REQUESTS[name].get("interruptible"))
        claims = [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        assert len(claims) == len([mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == "data"])


def test_training_over_nodes_has_workers_rdma_a_queue_and_a_shared_volume() -> None:
    found = of("nodes")
    assert found["pvc.yaml"]["spec"]["accessModes"] == ["ReadWriteMany"]
    job_set = found["jobset-training.yaml"]
    job = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["parallelism"], job["completions"], job["completionMode"]) == (4, 4, "Indexed")
    container = job["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert any("rdma" in key for key in container["resources"]["limits"])
    assert "--rdzv-endpoint=training-workers-0-0.training:29500" in container["args"]
    assert job_set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == found["queue.yaml"]["metadata"]["name"]
    assert "pvc.yaml" not in of("spot-nodes")


def test_shares_ask_for_the_resource_of_the_plan() -> None:
    limits = pod_of(of("packed")["deployment-s.yaml"])["containers"][0]["resources"]["limits"]
    assert "nvidia.com/mig-1g.5gb" in limits
    assert "amd.com/gpu" in pod_of(of("amd")["deployment-llm-70b.yaml"])["containers"][0]["resources"]["limits"]


def test_scaling_decides_who_sets_the_replicas() -> None:
    assert "replicas" not in of("scaled")["deployment-llm-70b.yaml"]["spec"]
    assert of("to-zero")["scaledobject-llm-70b.yaml"]["spec"]["minReplicaCount"] == 0
    assert of("packed")["deployment-s.yaml"]["spec"]["replicas"] == 12


def test_on_the_edge_the_runtime_is_named() -> None:
    (file,) = [body for body in of("edge").values() if body["kind"] == "Deployment"]
    assert pod_of(file)["runtimeClassName"] == "nvidia"


def test_no_manifests_where_kubernetes_is_not_advised_or_one_model_spans_nodes() -> None:
    assert advice(kind="notebook", gpu=["L4"]).manifests == ()
    spanning = advice(kind="inference", gpu=["H100"], gpus=8, nodes=2, autoscaling=True)
    assert spanning.manifests == ()
    assert "one_model_many_nodes" in {remark.key for remark in spanning.remarks}
