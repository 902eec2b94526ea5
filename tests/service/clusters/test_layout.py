"""Pods are read by the places of their fields where these lie as API servers put them, and else decoded."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from service.clusters.kinds import BY_KIND
from service.clusters.protobuf import layout
from service.clusters.wire import PageInvalid, decode, decode_json, remembering
from tests.benchmarks import big_cluster
from tests.fakes.kubernetes_protobuf import encode_list, encode_object, wrap
from tests.service.clusters.test_protobuf import recorded

PODS = BY_KIND["Pod"]
META = {"resourceVersion": "7"}


def places(body: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """The pods of a list."""
    body, begin, end = layout.unwrapped(body, "PodList")
    found = layout.items(body, begin, end)
    assert found is not None
    return body, found[1]


def fields(raw: bytes) -> list[bytes]:
    """The fields of a message, each with its tag."""
    found, at = [], 0
    while at < len(raw):
        begin, (tag, at) = at, varint(raw, at)
        length, at = varint(raw, at)
        at += length if tag & 7 == 2 else 0
        found.append(raw[begin:at])
    return found


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while True:
        byte = raw[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at


def chunk(tag: bytes, body: bytes) -> bytes:
    """A field with its length."""
    length, number = b"", len(body)
    while number > 127:
        length, number = length + bytes((number & 127 | 128,)), number >> 7
    return tag + length + bytes((number,)) + body


@pytest.fixture(scope="module")
def pods() -> list[dict[str, Any]]:
    """Pods of all looks."""
    return list(big_cluster.objects("Pod", nodes=40, pods=600))


def test_pods_of_a_real_server_lie_as_they_are_thought_to() -> None:
    body, found = places(base64.b64decode(recorded("list-protobuf.txt")))
    assert found
    for begin, end in found:
        parts = layout.pod(body, begin, end)
        assert parts is not None
        assert layout.metadata_head(body, parts[0], parts[1]) is not None
        assert layout.running(body, parts[4], end) is not None


def test_pods_of_all_looks_are_those_of_json(pods: list[dict[str, Any]]) -> None:
    text = msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": META, "items": pods})
    assert list(decode(PODS, encode_list("Pod", META, pods)).items) == list(decode_json(PODS, text).items)


def _backwards(raw: bytes) -> bytes:
    """Repeated fields keep their order among themselves: that is what their order means."""
    numbered = [(varint(field, 0)[0], field) for field in fields(raw)]
    return b"".join(field for _, field in sorted(numbered, key=lambda pair: -pair[0]))


def _parts_backwards(raw: bytes) -> bytes:
    parts = []
    for field in fields(raw):
        _, begin = varint(field, 1)
        parts.append(chunk(field[:1], _backwards(field[begin:])))
    return b"".join(parts)


@pytest.mark.parametrize("turned", [_backwards, _parts_backwards], ids=["pod", "parts"])
def test_fields_in_another_order_give_equal_pods(pods: list[dict[str, Any]], turned: Callable[[bytes], bytes]) -> None:
    usual = [encode_object("Pod", pod) for pod in pods]
    body = wrap("Pod", META, [turned(raw) for raw in usual])
    moved, found = places(body)
    begin, end = found[0]
    parts = layout.pod(moved, begin, end)
    assert parts is None or layout.metadata_head(moved, parts[0], parts[1]) is None
    assert list(decode(PODS, body).items) == list(decode(PODS, wrap("Pod", META, usual)).items)


@pytest.mark.parametrize("length", [138, 139])
def test_metadata_is_not_cut_where_a_length_looks_like_managed_fields(pods: list[dict[str, Any]], length: int) -> None:
    """An entry of 138 bytes has the length ``8a 01``, which are the bytes that begin managed fields."""
    pod = {**pods[0], "metadata": {**pods[0]["metadata"], "annotations": {"k": "v" * (length - 6), "z": "last"}}}
    read = next(iter(decode(PODS, encode_list("Pod", META, [pod])).items))
    assert read.metadata.annotations == pod["metadata"]["annotations"]
    assert [owner.name for owner in read.metadata.ownerReferences] == [
        owner["name"] for owner in pod["metadata"]["ownerReferences"]
    ]


def test_what_a_container_said_at_its_end_is_never_taken_for_its_id(pods: list[dict[str, Any]]) -> None:
    pod = next(pod for pod in pods if pod["status"]["phase"] == "Running" and pod["status"].get("containerStatuses"))
    said = "BMcontainerd://" + "0" * 64 + "\n\x05Ready\x12\x04True"
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": said}}
    status = {**pod["status"]["containerStatuses"][0], "lastState": ended, "restartCount": 3}
    changed = {**pod, "status": {**pod["status"], "containerStatuses": [status]}}
    read = next(iter(decode(PODS, encode_list("Pod", META, [changed])).items)).status.containerStatuses[0]
    assert (read.imageID, read.restartCount) == (status["imageID"], 3)
    assert read.lastState.terminated.message == said


def test_a_list_that_is_cut_says_so(pods: list[dict[str, Any]]) -> None:
    raw = encode_object("Pod", pods[0])
    body = wrap("Pod", META, [raw, raw[:-40]])
    with pytest.raises(PageInvalid, match=r"items\[1\]: expected a Pod"):
        list(decode(PODS, body).items)


def test_what_pods_share_is_kept_until_the_last_list_is_read(pods: list[dict[str, Any]]) -> None:
    body = encode_list("Pod", META, [pods[0]])
    with remembering():
        [first] = decode(PODS, body).items
        with remembering():
            pass  # another list ends meanwhile
        [second] = decode(PODS, body).items
    [later] = decode(PODS, body).items
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.labels == later.metadata.labels
    assert first.metadata.labels is not later.metadata.labels
