"""How long it takes to decode and derive a large cluster; printed with ``pytest -s``."""

import json
from time import process_time
from typing import Any

from rules.facts.cluster import build
from rules.facts.decode import decode_objects, decode_page
from rules.facts.prices import bundled
from tests.rules.facts.make import DATA, NOW

NODES, PODS, GPU_SHARE = 500, 10_000, 10


def large_cluster() -> list[dict[str, Any]]:
    """Real objects, multiplied: one pod in ten asks for a GPU, one node in four has eight of them."""
    items = json.loads((DATA / "apiserver" / "pending-pods-1.36.json").read_bytes())["items"]
    nodes = [item for item in items if item["kind"] == "Node"]
    pods = [item for item in items if item["kind"] == "Pod"]
    made: list[dict[str, Any]] = []
    for number in range(NODES):
        node = json.loads(json.dumps(nodes[number % len(nodes)]))
        node["metadata"]["name"] = f"n{number}"
        if number % 4:
            node["metadata"]["labels"] = {"node.kubernetes.io/instance-type": "m5.large"}
            node["status"]["allocatable"] = node["status"]["capacity"] = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        made.append(node)
    for number in range(PODS):
        pod = json.loads(json.dumps(pods[number % len(pods)]))
        pod["metadata"]["name"] = f"p{number}"
        pod["spec"]["nodeName"] = f"n{number % NODES}"
        pod["status"]["phase"] = "Running"
        if number % GPU_SHARE:
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "2Gi"}}
        made.append(pod)
    return made


def test_ten_thousand_pods_are_decoded_and_derived_in_a_few_seconds() -> None:
    made = large_cluster()
    data = json.dumps({"kind": "List", "apiVersion": "v1", "items": made}).encode()
    page = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": made[NODES:]}).encode()
    prices = bundled()
    prices.find(provider="aws", instance_type="x", region=None, spot=None, product="H100", gpus=1)

    started = process_time()
    objects = decode_objects(data, "large")
    decoded = process_time()
    live = decode_page(page, "Pod")
    paged = process_time()
    facts = build("large", NOW, nodes=objects.nodes, pods=objects.pods, read_kinds=objects.kinds, prices=prices)
    built = process_time()

    decode_seconds, page_seconds, build_seconds = decoded - started, paged - decoded, built - paged
    print(
        f"\n{PODS} pods, {NODES} nodes, {len(data) / 1e6:.0f} MB: snapshot {decode_seconds * 1000:.0f} ms, "
        f"list page {page_seconds * 1000:.0f} ms, build {build_seconds * 1000:.0f} ms "
        f"({build_seconds / page_seconds:.2f} of the page)"
    )
    assert len(facts.pods) == len(live.items) == PODS
    assert len(facts.gpu_nodes) == NODES // 4
    assert max(decode_seconds, page_seconds, build_seconds) < 5
