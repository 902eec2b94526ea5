"""Decoding of kubectl's output: what is read, and what is refused with which words."""

import gc
import json
from typing import Any

import pytest
import yaml

from rules.errors import SnapshotInvalid
from rules.facts.decode import Limits, Objects, decode_objects, decode_page, newest_timestamp, not_in_snapshot
from rules.facts.objectset import TAKE_SNAPSHOT
from rules.facts.pause import collector_paused
from tests.rules.facts.make import DATA

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"a": "b"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1", "namespace": "d"}, "spec": {"nodeName": "n1"}}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ds", "namespace": "d"}, "spec": {}}
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD, DAEMON_SET], "metadata": {"resourceVersion": ""}}


def decode(text: str | bytes | dict[str, Any]) -> Objects:
    if isinstance(text, dict):
        text = json.dumps(text)
    return decode_objects(text if isinstance(text, bytes) else text.encode(), "cluster.json")


def refused(text: str | bytes | dict[str, Any]) -> SnapshotInvalid:
    with pytest.raises(SnapshotInvalid) as caught:
        decode(text)
    return caught.value


def without_kind(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


EXPECTED = (["n1"], ["p1"], frozenset({"Node", "Pod", "DaemonSet"}))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LIST),
        json.dumps(LIST, indent=4),
        "\n".join(json.dumps(item) for item in (NODE, POD, DAEMON_SET)),
        "".join(json.dumps(item) for item in (NODE, POD, DAEMON_SET)),
        json.dumps({"kind": "NodeList", "items": [without_kind(NODE)]})
        + json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [without_kind(POD)]})
        + json.dumps({"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": [without_kind(DAEMON_SET)]}),
        json.dumps({"kind": "List", "items": [{"kind": "List", "items": [NODE]}, POD, DAEMON_SET]}),
        yaml.safe_dump(LIST),
        yaml.safe_dump_all([NODE, POD, DAEMON_SET], explicit_start=True),
        yaml.safe_dump({"kind": "NodeList", "items": [without_kind(NODE)]})
        + "---\n"
        + yaml.safe_dump({"kind": "List", "items": [POD, DAEMON_SET]}),
        json.dumps(LIST, indent=4) + "\n---\n" + yaml.safe_dump(NODE),
        yaml.safe_dump(LIST) + "\n" + json.dumps(NODE),
        "\ufeff" + json.dumps(LIST),
        "Warning: v1 ComponentStatus is deprecated in v1.19+\n" + json.dumps(LIST),
        "E1130 09:00:00.000000    1234 memcache.go:287] couldn't get resource list\n" + yaml.safe_dump(LIST),
        json.dumps(LIST) + "\nError from server (Forbidden): secrets is forbidden: User cannot list\n",
        json.dumps(LIST, indent=4).replace('"kind": "List"', '"kind":\nI1130 09:00:00.000000 1 x.go:1] slow\n"List"'),
        "# taken on Monday\n" + yaml.safe_dump(LIST),
    ],
)
def test_every_form_of_kubectl_output_gives_the_same_objects(text: str) -> None:
    objects = decode(text)
    names = ([item.metadata.name for item in objects.nodes], [item.metadata.name for item in objects.pods])
    assert (*names, objects.kinds) == EXPECTED
    assert objects.nodes[0].metadata.labels == {"a": "b"}
    assert objects.pods[0].spec is not None
    assert objects.pods[0].spec.nodeName == "n1"
    daemon_set = objects.others["DaemonSet"][0]
    assert (daemon_set.metadata.name, daemon_set.kind, daemon_set.apiVersion) == ("ds", "DaemonSet", "apps/v1")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_files_of_windows_shells_are_read(encoding: str) -> None:
    assert len(decode(json.dumps(LIST).encode(encoding)).nodes) == 1


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_go_prints_null_for_what_is_empty(form: str) -> None:
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": None, "labels": None, "ownerReferences": None},
        "spec": {"containers": None, "nodeName": None},
        "status": None,
    }
    whole: dict[str, Any] = {"kind": "List", "items": [item, {**NODE, "spec": {"taints": None}}]}
    objects = decode(json.dumps(whole) if form == "json" else yaml.safe_dump(whole))
    assert objects.pods[0].metadata.creationTimestamp is None
    assert objects.pods[0].status is None
    assert decode('{"kind":"PodList","items":null}').kinds == {"Pod"}


def test_an_empty_typed_list_is_a_kind_that_was_read_and_an_empty_list_says_nothing() -> None:
    assert decode('{"kind":"PodList","apiVersion":"v1","items":[]}').kinds == {"Pod"}
    assert decode('{"kind":"List","apiVersion":"v1","items":[]}').kinds == frozenset()
    assert decode("apiVersion: v1\nitems: []\nkind: PodList\n").kinds == {"Pod"}


def test_kinds_that_are_not_in_a_snapshot_are_unknown() -> None:
    missing = not_in_snapshot(decode({"kind": "List", "items": [NODE]}).kinds)
    assert [(item.kind, item.reason) for item in missing] == [("Pod", "not-in-snapshot"), ("Event", "not-in-snapshot")]


def test_namesakes_of_other_groups_are_told_apart() -> None:
    jobs = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "b"}},
        {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "storage"}, "spec": {"taints": 3}},
        {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "n"},
    ]
    objects = decode({"kind": "List", "items": jobs})
    assert {kind: [item.metadata.name for item in items] for kind, items in objects.others.items()} == {
        "Job": ["a"],
        "Job.batch.volcano.sh": ["b"],
        "Node.longhorn.io": ["storage"],
    }
    assert objects.kinds == {"Job", "Job.batch.volcano.sh", "Node.longhorn.io", "Event"}
    assert objects.nodes == ()
    assert objects.events[0].note == "n"


def test_words_and_numbers_of_yaml_stay_as_they_were_written() -> None:
    text = """\
apiVersion: v1
kind: Node
metadata:
  name: 2026-11-30
  creationTimestamp: 2026-11-01T08:00:00Z
  labels: {power: on, yes: no, driver: 1.10, rev: 03, count: 8, exponent: 1e3, octal: 0o17, hex: 0x1F, empty: , t: true}
spec: {unschedulable: true}
status: {capacity: {nvidia.com/gpu: 8, memory: 1e3, cpu: 0.5}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec: {limits: {cpu: 1000, gpu: "8"}, weight: 10, expireAfter: Never, on: off, ratio: 0.5, at: 2026-11-30}
"""
    objects = decode(text)
    node = objects.nodes[0]
    assert node.metadata.name == "2026-11-30"
    assert node.metadata.labels == {
        "power": "on",
        "yes": "no",
        "driver": "1.10",
        "rev": "03",
        "count": "8",
        "exponent": "1e3",
        "octal": "0o17",
        "hex": "0x1F",
        "empty": "",
        "t": "true",
    }
    assert node.spec is not None
    assert node.spec.unschedulable is True
    assert node.status is not None
    assert node.status.capacity == {"nvidia.com/gpu": "8", "memory": "1e3", "cpu": "0.5"}
    assert objects.others["NodePool"][0].spec == {
        "limits": {"cpu": 1000, "gpu": "8"},
        "weight": 10,
        "expireAfter": "Never",
        "on": "off",
        "ratio": 0.5,
        "at": "2026-11-30",
    }


def test_yaml_and_json_of_every_sample_decode_to_the_same() -> None:
    for path in sorted((DATA / "clusters").glob("*.json")):
        data = path.read_bytes()
        as_yaml = yaml.safe_dump(json.loads(data)).encode()
        assert decode_objects(as_yaml, "y") == decode_objects(data, "j"), path.name


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", None, "no Kubernetes object"),
        (" \n\n", None, "no Kubernetes object"),
        ("---\n...\n", None, "no Kubernetes object"),
        ("{}", "kind", "kind of a Kubernetes object"),
        ("[]", "line 1", "bare list"),
        ("hello", "line 1", "expected Kubernetes objects"),
        ("NAME   STATUS   ROLES\nn1     Ready\n", "line 1", "add -o json"),
        ('{"kind":"Node"}', None, "missing required field `metadata`"),
        ('{"kind":"Node","metadata":{}}', "metadata.name", "name of the object"),
        ('{"kind":"NodeList"}', "items", "items of the NodeList"),
        ('{"kind":"List"}', "items", "items of the List"),
        ('{"kind":"List","items":[3]}', "items[0]", "expected `object`, got `int`"),
        ('{"kind":"List","items":[{"metadata":{"name":"x"}}]}', "items[0].kind", "kind of a Kubernetes object"),
        (
            {"kind": "List", "items": [NODE, {**POD, "spec": {"nodeName": 7}}]},
            "items[1].spec.nodeName",
            "got `int`",
        ),
        (
            json.dumps(NODE) + json.dumps({"kind": "PodList", "items": [{"metadata": {"name": 1}}]}),
            "document 2, items[0].metadata.name",
            "got `int`",
        ),
        ('{"kind":"PodList",\n "items":[}', "line 2, column 11", "JSON is malformed"),
        ('{"kind":"PodList",\n "items":[', "line 2, column 11", "the file is not complete"),
        ('{"kind":"Status","message":"Unauthorized"}', None, "Unauthorized"),
        ('{"kind":"Config","apiVersion":"v1"}', None, "kubeconfig"),
        ("apiVersion: v1\nkind: Config\n", None, "kubeconfig"),
        ("Unable to connect to the server: dial tcp: i/o timeout\n", None, "i/o timeout"),
        ("kind: Pod\nmetadata: {name: a\nspec: 1\n", "line 3, column 5", "did not find expected"),
        ("kind: Pod\nmetadata:\n  name: [1]\n", "metadata.name", "expected `str`, got `array`"),
        ("kind: [Pod]\n", "kind", "expected a word"),
        ("kind: Pod\n? [a]\n: b\n", "line 2, column 3", "a key"),
        ('{"kind":"Node","metadata":{"name":"n","creationTimestamp":"2026-11-30"}}', "metadata.creationTimestamp", ""),
        (
            '{"kind":"Node","metadata":{"name":"n","creationTimestamp":"2026-11-30T09:00:00"}}',
            "metadata.creationTimestamp",
            "timezone",
        ),
        ('{"kind":"Pod","metadata":{"name":"a\udcff"}}'.encode("utf-8", "surrogateescape"), None, "UTF-8"),
        (b"kind: Pod\nmetadata: {name: a\xff}", None, "expected YAML"),
        (b"\xff\xfe{", None, "UTF-16"),
        (b"\x1f\x8b\x08\x00", None, "gzip"),
        (b"PK\x03\x04", None, "zip"),
        (b"k8s\x00\n\x0b", None, "protobuf"),
        ('{"kind":"List","items":' + "[" * 3000, None, "levels of nesting"),
        ("a: " + "{a: " * 300, "line 1", "levels of nesting"),
    ],
)
def test_anything_else_is_refused_with_place_and_expectation(text: Any, position: str | None, words: str) -> None:
    error = refused(text)
    assert error.source == "cluster.json"
    if position is None or not position.startswith("line 1"):
        assert error.position == position
    else:
        assert (error.position or "").startswith(position)
    assert words in error.expected


def test_a_refusal_tells_how_to_write_the_right_file() -> None:
    assert TAKE_SNAPSHOT in str(refused("hello"))


def test_aliases_are_refused_before_they_grow() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    error = refused(bomb)
    assert error.position == "line 2, column 8"
    assert "alias" in error.expected


def test_limits_are_named_when_they_are_passed() -> None:
    data = json.dumps(LIST).encode()
    with pytest.raises(SnapshotInvalid, match="at most 10 bytes"):
        decode_objects(data, "f", Limits(max_bytes=10))
    with pytest.raises(SnapshotInvalid, match=r"at most 10 bytes of YAML.*use -o json"):
        decode_objects(yaml.safe_dump(LIST).encode(), "f", Limits(max_yaml_bytes=10))
    deep: Any = "end"
    for _ in range(30):
        deep = [deep]
    nested = {
        "kind": "List",
        "items": [{"kind": "X", "apiVersion": "x/v1", "metadata": {"name": "x"}, "spec": {"a": deep}}],
    }
    assert decode(nested).kinds == {"X"}
    for text in (json.dumps(nested), yaml.safe_dump(nested)):
        with pytest.raises(SnapshotInvalid, match="levels of nesting"):
            decode_objects(text.encode(), "f", Limits(max_nesting=20))


def test_unusual_objects_of_other_kinds_do_not_spoil_a_snapshot() -> None:
    items: list[dict[str, Any]] = [
        {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "data": {"spec": {"a": 1}}},
        {
            "apiVersion": "x/v1",
            "kind": "Odd",
            "metadata": {"name": "o"},
            "spec": "text",
            "status": [1],
            "items": {"a": 1},
        },
        {"apiVersion": "x/v1", "kind": "AllowList", "metadata": {"name": "l"}, "spec": {"a": 1}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}},
    ]
    for text in (json.dumps({"kind": "List", "items": items}), yaml.safe_dump({"kind": "List", "items": items})):
        others = decode(text).others
        assert others["Odd"][0].spec is None
        assert others["AllowList"][0].spec == {"a": 1}
        assert others["Secret"][0].data is None
    assert decode({**items[1], "kind": "Odd"}).others["Odd"][0].metadata.name == "o"


def test_merging_keeps_the_later_one_of_two_objects_with_one_name() -> None:
    first = decode(LIST)
    later = decode({"kind": "List", "items": [{**POD, "spec": {"nodeName": "n2"}}, {**DAEMON_SET, "spec": {"x": 1}}]})
    merged = first.merge(later)
    assert [item.spec.nodeName for item in merged.pods if item.spec] == ["n2"]
    assert [item.spec for item in merged.others["DaemonSet"]] == [{"x": 1}]
    assert merged.kinds == {"Node", "Pod", "DaemonSet"}
    assert first.merge(Objects()) == first


def test_the_newest_timestamp_is_the_moment_of_the_snapshot() -> None:
    text = """
kind: List
items:
- kind: Pod
  metadata: {name: p, creationTimestamp: "2026-11-01T00:00:00Z", deletionTimestamp: "2027-01-01T00:00:00Z"}
  status: {containerStatuses: [{name: c, state: {running: {startedAt: "2026-11-02T00:00:00Z"}}}]}
- kind: Node
  metadata: {name: n}
  status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-11-03T00:00:00+01:00"}]}
"""
    newest = newest_timestamp(decode(text))
    assert newest is not None
    assert newest.isoformat() == "2026-11-03T00:00:00+01:00"
    event = {"kind": "Event", "metadata": {"name": "e"}, "series": {"lastObservedTime": "2026-11-04T00:00:00.123456Z"}}
    with_event = decode(text).merge(decode(event))
    assert str(newest_timestamp(with_event)) == "2026-11-04 00:00:00.123456+00:00"
    lease = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "l"},
        "spec": {"renewTime": "2026-11-05T00:00:00.000000Z"},
    }
    assert str(newest_timestamp(with_event.merge(decode(lease)))) == "2026-11-05 00:00:00+00:00"
    assert newest_timestamp(Objects()) is None


def recorded(name: str) -> bytes:
    return (DATA / "apiserver" / name).read_bytes().split(b"\n\n", 2)[2]


def test_pages_of_a_real_api_server_are_decoded() -> None:
    page = decode_page(recorded("list-page-1.txt"), "Pod")
    assert (len(page.items), page.remaining, page.resourceVersion) == (2, 22, "324")
    assert page.continue_
    assert page.items[0].metadata.name == "aws-node-a800004"
    node = decode_page(recorded("nodes-json.txt"), "Node").items[0]
    assert node.status.allocatable["nvidia.com/gpu"] == "8"


def test_items_of_a_page_get_kind_and_version_of_their_list() -> None:
    page = decode_page(b'{"kind":"JobList","apiVersion":"batch/v1","items":[{"metadata":{"name":"j"}}]}', "Job")
    assert [(item.kind, item.apiVersion) for item in page.items] == [("Job", "batch/v1")]
    assert (page.continue_, page.remaining) == ("", None)
    assert decode_page(b'{"kind":"PodList","items":null}', "Pod").items == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"kind":"Status","message":"no"}', "found Status no"),
        (b'{"kind":"NodeList","items":[]}', "expected PodList, found NodeList"),
        (b"404 page not found\n", "expected a PodList"),
        (b'{"kind":"PodList","items":[{"metadata":{"name":1}}]}', "expected `str`, got `int`"),
        (b"", "truncated"),
    ],
)
def test_an_answer_that_is_no_such_list_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(SnapshotInvalid) as caught:
        decode_page(body, "Pod")
    assert words in str(caught.value)


def test_a_page_that_was_cut_off_is_refused() -> None:
    with pytest.raises(SnapshotInvalid, match="expected a PodList"):
        decode_page(recorded("list-page-2.txt"), "Pod")


def test_the_last_of_overlapping_pauses_switches_the_collector_on_again() -> None:
    assert gc.isenabled()
    first, second = collector_paused(), collector_paused()
    with first:
        second.__enter__()
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
