"""Clusters that somebody wrote down."""

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.errors import SnapshotInvalid
from rules.facts.prices import bundled
from service.clusters import ClusterSettings, Collected, connect, to_facts
from tests.service.clusters.objects import claim, daemon_set, event, node, pod, small_cluster


def write(path: Path, items: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


async def read(*paths: Path, **settings: Any) -> Collected:
    return await connect(ClusterSettings(name="lab", snapshot=[str(path) for path in paths], **settings)).collect()


async def test_reads_several_files_as_one_cluster(tmp_path: Path) -> None:
    nodes = write(tmp_path / "nodes.json", [node("gpu-a")])
    pods = tmp_path / "pods.yaml"
    pods.write_text(yaml.safe_dump_all([pod("busy", on="gpu-a"), pod("waiting")]), encoding="utf-8")
    collected = await read(nodes, pods)
    assert (len(collected.nodes), len(collected.pods)) == (1, 2)


async def test_reads_a_directory_with_compressed_files(tmp_path: Path) -> None:
    write(tmp_path / "nodes.json", [node("gpu-a")])
    pods = {"kind": "List", "items": [pod("busy", on="gpu-a")]}
    (tmp_path / "pods.json.gz").write_bytes(gzip.compress(json.dumps(pods).encode()))
    (tmp_path / "notes.txt").write_text("not Kubernetes", encoding="utf-8")
    (tmp_path / "deeper").mkdir()
    plugins = {"kind": "List", "items": [daemon_set("plugin")]}
    (tmp_path / "deeper" / "more.YAML").write_text(yaml.safe_dump(plugins), encoding="utf-8")
    collected = await read(tmp_path)
    assert collected.read_kinds == {"Node", "Pod", "DaemonSet"}


async def test_kinds_that_nobody_wrote_down_are_unknown(tmp_path: Path) -> None:
    collected = await read(write(tmp_path / "nodes.json", [node("gpu-a")]))
    assert {(item.kind, item.reason) for item in collected.unreadable} == {
        ("Pod", "not-in-snapshot"),
        ("Event", "not-in-snapshot"),
    }
    assert collected.read_kinds == {"Node"}
    assert "kubectl get" in collected.unreadable[0].detail


async def test_keeps_kinds_that_a_live_cluster_is_not_asked_for(tmp_path: Path) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}}
    collected = await read(write(tmp_path / "all.json", [*small_cluster(), deployment]))
    assert set(collected.others) == {"DaemonSet", "ResourceClaim", "Deployment"}


async def test_is_read_anew_every_time(tmp_path: Path) -> None:
    path = write(tmp_path / "all.json", small_cluster())
    connector = connect(ClusterSettings(name="lab", snapshot=[str(path)]))
    assert len((await connector.collect()).pods) == 3
    write(path, [node("gpu-a")])
    assert len((await connector.collect()).pods) == 0


async def test_the_moment_is_the_configured_one_first(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    collected = await read(write(tmp_path / "all.json", small_cluster()), observed_at=moment)
    assert (collected.observed_at, collected.observed_from) == (moment, "setting")
    facts = to_facts("lab", collected, datetime(2030, 1, 1, tzinfo=UTC), bundled())
    assert facts.observed_at == moment


async def test_the_moment_is_else_the_newest_one_in_the_objects(tmp_path: Path) -> None:
    collected = await read(write(tmp_path / "all.json", small_cluster()))
    assert (collected.observed_at, collected.observed_from) == (datetime(2026, 11, 30, 10, tzinfo=UTC), "objects")


async def test_a_routine_event_may_still_tell_the_moment(tmp_path: Path) -> None:
    late = {**event("late", "Pulled"), "lastTimestamp": "2026-11-30T11:00:00Z"}
    collected = await read(write(tmp_path / "all.json", [*small_cluster(), late]))
    assert collected.observed_at == datetime(2026, 11, 30, 11, tzinfo=UTC)
    assert "late" not in {item.metadata.name for item in collected.events}


async def test_the_moment_is_else_that_of_the_newest_file(tmp_path: Path) -> None:
    timeless = claim("c")
    old, new = write(tmp_path / "a.json", [timeless]), write(tmp_path / "b.json", [timeless])
    os.utime(old, (1_000_000_000, 1_000_000_000))
    os.utime(new, (1_700_000_000, 1_700_000_000))
    collected = await read(old, new)
    assert collected.observed_from == "file"
    assert collected.observed_at == datetime.fromtimestamp(1_700_000_000, UTC)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.json", None, "there is no such file"),
        ("bad.json", b'{"kind": "List", "items": [', "bad.json"),
        ("prose.yaml", b"Hello, here is my cluster", "prose.yaml"),
        ("fake.json.gz", b"not gzip", "expected gzip data"),
        ("cut.json.gz", gzip.compress(b"{}" * 5000, mtime=0)[:-20], "expected gzip data"),
    ],
)
async def test_says_which_file_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SnapshotInvalid) as caught:
        await read(tmp_path / name)
    assert says in str(caught.value)
    assert caught.value.source.endswith(name)


async def test_an_empty_directory_is_not_an_empty_cluster(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInvalid, match=r"no \.json, \.yaml or \.yml file"):
        await read(tmp_path)


def operator_pod(name: str, **labels: str) -> dict[str, Any]:
    made = pod(name, on="gpu-a", gpus=0, namespace="gpu-operator")
    made["metadata"]["labels"] = labels
    return made


def must_gather(folder: Path) -> Path:
    """What the script of the GPU Operator writes: objects of its own namespace, descriptions and logs."""
    folder.mkdir()

    def dump(name: str, document: dict[str, Any]) -> None:
        (folder / name).write_text(yaml.safe_dump(document), encoding="utf-8")

    operator = operator_pod("gpu-operator-6f", app="gpu-operator")
    dump("cluster_policy.yaml", {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cp"}})
    dump("gpu_operator_pod.yaml", operator)
    dump("gpu_operand_pods.yaml", {"kind": "List", "items": [operator, operator_pod("driver-x", app="driver")]})
    dump("gpu_operand_ds.yaml", {"kind": "List", "items": [daemon_set("nvidia-driver-daemonset")]})
    for name in ("gpu_nodes.descr", "gpu_nodes.status", "gpu_nodes.labels", "must-gather.log", "version"):
        (folder / name).write_text("for people", encoding="utf-8")
    (folder / "nvidia-bug-report_gpu-a.log.gz").write_bytes(gzip.compress(b"log"))
    return folder


async def test_a_must_gather_is_read_and_its_pods_are_never_all_pods(
    tmp_path: Path, said: list[dict[str, Any]]
) -> None:
    folder = must_gather(tmp_path / "nvidia-gpu-operator_20261130_0900")
    nodes = write(tmp_path / "nodes.json", [node("gpu-a")])
    collected = await read(nodes, folder)
    assert len(collected.pods) == 2
    assert set(collected.others) == {"ClusterPolicy", "DaemonSet"}
    assert collected.read_kinds == {"Node", "ClusterPolicy"}
    assert {item.kind for item in collected.unreadable} == {"Pod", "Event", "DaemonSet"}
    assert "2 *.log" in said[0]["skipped"]
    copied = tmp_path / "renamed.yaml"
    copied.write_bytes((folder / "gpu_operand_pods.yaml").read_bytes())
    assert "Pod" not in (await read(nodes, copied)).read_kinds


async def test_a_node_whose_pods_may_be_missing_is_not_called_idle(tmp_path: Path) -> None:
    from rules.checks import RULES
    from rules.engine import evaluate
    from rules.policy import Policy

    nodes = write(tmp_path / "nodes.json", [node("gpu-a"), node("gpu-b")])
    one = tmp_path / "pod.json"
    one.write_text(json.dumps(pod("busy", on="gpu-a")), encoding="utf-8")
    every = write(tmp_path / "pods.json", [pod("busy", on="gpu-a"), pod("too", on="gpu-b")])
    folder = must_gather(tmp_path / "must-gather")
    for files, judged in (((nodes, one), False), ((nodes, folder), False), ((nodes, every), True)):
        facts = to_facts("lab", await read(*files), datetime(2026, 11, 30, 10, tzinfo=UTC), bundled())
        report = evaluate(facts, Policy(), RULES)
        assert "idle-gpu-node" not in {item.rule for item in report.findings}
        assert ("idle-gpu-node" not in {item.rule for item in report.skipped_rules}) is judged
