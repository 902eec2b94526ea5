"""What comes over the wire, as JSON: pages of lists and lines of watches."""

import json
from pathlib import Path

import pytest

from service.clusters.kinds import BY_KIND
from service.clusters.wire import PageInvalid, decode_event, decode_json
from tests.service.clusters.objects import daemon_set, node, pod

RECORDED = Path(__file__).parents[2] / "data" / "apiserver"
NODES, PODS = BY_KIND["Node"], BY_KIND["Pod"]


def _line(kind: str, item: object) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def test_a_page_says_where_a_watch_takes_over() -> None:
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"330","continue":"abc"},"items":[]}'
    page = decode_json(PODS, body)
    assert (page.resource_version, page.continue_token, list(page.items)) == ("330", "abc", [])


@pytest.mark.parametrize("change", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_brings_the_trimmed_object_and_its_version(change: str) -> None:
    item = node("gpu-a")
    item["metadata"]["resourceVersion"] = "327"
    event = decode_event(NODES, _line(change, item))
    page = decode_json(NODES, json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [item]}).encode())
    assert (event.type, event.resource_version, event.status) == (change, "327", None)
    assert [event.object] == list(page.items)


def test_a_change_of_another_kind_keeps_its_kind() -> None:
    event = decode_event(BY_KIND["DaemonSet"], _line("ADDED", daemon_set("plugin")))
    assert (event.object.kind, event.object.apiVersion) == ("DaemonSet", "apps/v1")


def test_bookmarks_move_on_and_may_end_the_initial_events() -> None:
    bookmark = {"kind": "Node", "apiVersion": "v1", "metadata": {"resourceVersion": "400"}}
    event = decode_event(NODES, _line("BOOKMARK", bookmark))
    assert (event.type, event.resource_version, event.object, event.initial_events_end) == (
        "BOOKMARK",
        "400",
        None,
        False,
    )
    bookmark["metadata"] = {"resourceVersion": "401", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert decode_event(NODES, _line("BOOKMARK", bookmark)).initial_events_end


def test_an_error_is_told_as_recorded() -> None:
    recorded = (RECORDED / "watch-too-old.txt").read_bytes().splitlines()
    line = next(line for line in recorded if line.startswith(b"{"))
    event = decode_event(NODES, line)
    assert event.type == "ERROR"
    assert event.status is not None
    assert (event.status.code, event.status.reason) == (410, "Expired")
    assert event.status.message == "too old resource version: 5 (340)"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "expected a change"),
        (b'{"type":"ADDED","object":{"metada', "expected a change"),
        (b'{"type":"RENAMED","object":{"metadata":{}}}', "'RENAMED'"),
        (b'{"type":"ADDED","object":{"metadata":{"name":3}}}', "metadata.name: expected a change"),
        (b'{"kind":"PodList"}', "expected a change"),
        (b"[]", "expected a change"),
        (b"\xff\xfe", "expected a change"),
    ],
)
def test_a_line_that_is_no_change_is_refused_with_the_place(line: bytes, says: str) -> None:
    with pytest.raises(PageInvalid, match=says):
        decode_event(PODS, line)


def test_a_change_of_a_pod_is_a_pod() -> None:
    item = pod("busy", on="gpu-a")
    assert decode_event(PODS, _line("ADDED", item)).object.spec.nodeName == "gpu-a"
