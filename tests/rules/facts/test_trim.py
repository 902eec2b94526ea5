"""What is dropped of nodes and pods changes no finding, what is alike is held once, and the normal form stays."""

import json
from pathlib import Path

import msgspec
import pytest

from rules.checks import RULES
from rules.engine import evaluate
from rules.facts.decode import Objects, decode_objects, newest_timestamp
from rules.facts.objects import Pod
from rules.facts.trim import Shelf, trim_node, trim_pod
from rules.policy import Policy
from tests.benchmarks import big_cluster
from tests.rules.checks.kit import DATA, NOW, facts_of
from tests.rules.facts.make import container, pod

SAMPLES = sorted([*(DATA / "clusters").glob("*.json"), *(DATA / "cases").glob("*/cluster.json")])


def trimmed(objects: Objects) -> Objects:
    shelf = Shelf()
    return msgspec.structs.replace(
        objects,
        nodes=tuple(trim_node(item, shelf) for item in objects.nodes),
        pods=tuple(trim_pod(item, shelf) for item in objects.pods),
    )


def says_the_same(objects: Objects) -> int:
    """Judges the objects as they are and as they are kept; gives the number of findings."""
    at = newest_timestamp(objects) or NOW
    reports = [evaluate(facts_of(each, "lab", at), Policy(), RULES) for each in (objects, trimmed(objects))]
    assert reports[0] == reports[1]
    assert not reports[0].failed_rules
    return len(reports[0].findings)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem if path.stem != "cluster" else path.parent.name)
def test_findings_are_the_same_with_and_without_what_is_dropped(sample: Path) -> None:
    assert says_the_same(decode_objects(sample.read_bytes(), sample.name)) > 0


def test_findings_of_a_large_mixed_cluster_are_the_same() -> None:
    items = [item for kind in big_cluster.API_VERSIONS for item in big_cluster.objects(kind, nodes=60, pods=900)]
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    assert says_the_same(decode_objects(listed, "large")) > 20


@pytest.mark.parametrize("sample", SAMPLES[:4], ids=lambda path: path.stem)
def test_what_is_kept_stays_as_it_is(sample: Path) -> None:
    once = trimmed(decode_objects(sample.read_bytes(), sample.name))
    assert trimmed(once) == once


def test_pods_of_one_template_share_its_parts() -> None:
    shelf = Shelf()
    made = [
        pod(
            f"web-{number}",
            container({"cpu": "1"}, image="web:1", env=[{"name": "A", "value": "b"}]),
            spec={"volumes": [{"name": f"kube-api-access-{number}", "projected": {}}], "tolerations": [{"key": "a"}]},
        )
        for number in range(2)
    ]
    first, second = (trim_pod(item, shelf).spec for item in made)
    assert first is not None
    assert second is not None
    assert first.containers is second.containers
    assert first.tolerations is second.tolerations
    assert first.volumes is second.volumes is None


def test_the_pin_of_a_daemon_to_its_node_is_dropped_and_any_other_affinity_stays() -> None:
    def affinity(node: str) -> dict[str, object]:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    def kept(owner: str, on: str | None, wanted: str) -> object:
        made = pod("p", on=on, owner=owner, spec={"affinity": affinity(wanted)})
        spec = trim_pod(made, Shelf()).spec
        return spec.affinity if spec else None

    assert kept("DaemonSet", "n1", "n1") is None
    assert kept("DaemonSet", None, "n1") == affinity("n1")
    assert kept("DaemonSet", "n2", "n1") == affinity("n1")
    assert kept("ReplicaSet", "n1", "n1") == affinity("n1")


def test_placement_is_kept_while_a_pod_waits_and_readiness_always() -> None:
    conditions = [{"type": name, "status": "True"} for name in ("Initialized", "PodScheduled", "Ready")]

    def kept(phase: str) -> list[str]:
        status = trim_pod(pod("p", phase=phase, status={"conditions": conditions}), Shelf()).status
        return [item.type for item in (status.conditions if status else None) or ()]

    assert kept("Pending") == ["PodScheduled", "Ready"]
    assert kept("Running") == ["Ready"]


def test_a_shelf_forgets_before_it_grows_without_end() -> None:
    shelf = Shelf(limit=10)
    made = [trim_pod(pod(f"p{number}", container(image=f"image:{number}")), shelf) for number in range(100)]
    assert all(isinstance(item, Pod) for item in made)
    assert all(len(kept) <= 10 for kept in shelf._kept.values())
