"""The big cluster is what it says: deterministic, complete, and of the make-up that the benchmark speaks of."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from rules.facts.cluster import ClusterFacts, build
from rules.facts.decode import decode_page
from rules.facts.prices import bundled
from tests.benchmarks import big_cluster, big_pods
from tests.benchmarks.big_text import NOW

NODES, PODS = 100, 2_000


def facts(pages: big_cluster.Pages) -> ClusterFacts:
    read = {
        kind: [item for path in pages.of(kind) for item in decode_page(path.read_bytes(), kind).items]
        for kind in big_cluster.API_VERSIONS
    }
    kinds = tuple(read)
    nodes, pods, events = read.pop("Node"), read.pop("Pod"), read.pop("Event")
    return build("big", NOW, nodes=nodes, pods=pods, events=events, others=read, read_kinds=kinds, prices=bundled())


def test_its_make_up(tmp_path: Path) -> None:
    known = facts(big_cluster.pages(NODES, PODS, 500, tmp_path))

    assert len(known.nodes) == NODES
    assert len(known.pods) == PODS
    assert len(known.gpu_nodes) == NODES // 5
    wanting = [pod for pod in known.pods if pod.gpu_requests]
    assert len(wanting) == PODS // 20
    assert len(known.pending_gpu_pods) == big_pods.numbers(NODES, PODS).waiting
    assert len({str(pod.pod.spec) for pod in known.pending_gpu_pods}) == len(known.pending_gpu_pods)
    owners = [pod.pod.metadata.ownerReferences or [] for pod in known.pods]
    daemons = Counter(owner.name for found in owners for owner in found if owner.kind == "DaemonSet")
    assert daemons == {
        **dict.fromkeys(big_pods.EVERYWHERE, NODES),
        **dict.fromkeys(big_pods.ON_GPU_NODES, NODES // 5),
    }


def test_every_object_is_itself_and_in_the_order_of_the_server() -> None:
    for kind in big_cluster.API_VERSIONS:
        names = [
            (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for item in big_cluster.objects(kind, NODES, PODS)
        ]
        assert names, kind
        assert len(set(names)) == len(names), kind
    pods = [
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in big_cluster.objects("Pod", NODES, PODS)
    ]
    assert pods == sorted(pods)


def test_pods_are_as_large_as_real_ones() -> None:
    sizes = [len(text) for text in big_cluster.texts("Pod", NODES, PODS)]

    assert min(sizes) > 4_000
    assert 6_500 < sum(sizes) / len(sizes) < 9_000  # a real cluster's had 8,650 (kubectl get --raw)
    assert max(sizes) < 10_000


def test_pages_follow_each_other_by_token(tmp_path: Path) -> None:
    pages = big_cluster.pages(NODES, PODS, 600, tmp_path).of("Pod")
    read = [msgspec.json.decode(path.read_bytes()) for path in pages]

    assert [len(page["items"]) for page in read] == [600, 600, 600, 200]
    assert [page["metadata"].get("continue") for page in read] == [*map(big_cluster.token, (1, 2, 3)), None]
    assert [page["metadata"].get("remainingItemCount") for page in read] == [1400, 800, 200, None]


def test_two_writers_write_the_same(tmp_path: Path) -> None:
    one, two = (big_cluster.pages(NODES, PODS, 500, tmp_path / name) for name in ("one", "two"))

    assert [path.name for path in one.of("*")] == [path.name for path in two.of("*")]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(one.of("*"), two.of("*"), strict=True))


def test_changes_are_later_versions_of_pods_that_are_there() -> None:
    there = {item["metadata"]["uid"]: item for item in big_cluster.objects("Pod", NODES, PODS)}
    changed = [msgspec.json.decode(text) for text in big_cluster.changed_pods(300, NODES, PODS, first=40)]

    assert len({item["metadata"]["uid"] for item in changed}) == 300
    for item in changed:
        before = there[item["metadata"]["uid"]]
        assert int(item["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
        assert item["status"]["containerStatuses"] != before["status"]["containerStatuses"]
        assert item["spec"] == before["spec"]


def test_too_few_pods_for_the_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="nodes need more than"):
        big_pods.numbers(100, 500)
