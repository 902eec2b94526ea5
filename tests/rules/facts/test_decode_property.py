"""No bytes whatever make the decoder fail in another way than by saying what is wrong."""

import json
from contextlib import suppress
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rules.errors import SnapshotInvalid
from rules.facts.decode import Objects, decode_objects, decode_page, newest_timestamp
from tests.rules.facts.make import DATA, cluster

SAMPLE = (DATA / "cases" / "26-cuda-pod-without-a-gpu-request" / "cluster.json").read_bytes()
AS_YAML = yaml.safe_dump(json.loads(SAMPLE)).encode()

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
fields = ("metadata", "spec", "status", "labels", "name", "items", "containers", "resources", "conditions", "kind")
objects = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["Node", "Pod", "Event", "List", "PodList", "Job", "Status", ""]) | values,
        "apiVersion": st.sampled_from(["v1", "batch/v1", "batch.volcano.sh/v1alpha1"]) | values,
        "metadata": st.dictionaries(st.sampled_from(fields), values, max_size=3) | values,
        "spec": st.dictionaries(st.sampled_from(fields), values, max_size=3) | values,
        "status": values,
        "items": st.lists(values, max_size=3) | values,
    },
)


def decoded(data: bytes) -> Objects | None:
    try:
        found = decode_objects(data, "f")
    except SnapshotInvalid:
        return None
    newest_timestamp(found)
    cluster(found.nodes, found.pods, found.others, events=found.events)
    return found


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\x00" * 8)
@example(b"{" * 100_000)
@example(b"- " * 5_000)
@example(b"? " * 5_000)
@example(b'{"kind":"\\ud800"}')
@example(b'{"kind":"List","items":[' + b"9" * 5_000 + b"]}")
@example(b"kind: !!python/object/apply:os.system [id]\n")
@example(b"%YAML 9.9\n---\nkind: Pod\n")
def test_any_bytes(data: bytes) -> None:
    decoded(data)
    with suppress(SnapshotInvalid):
        decode_page(data, "Pod")


@settings(max_examples=300, deadline=None)
@given(st.lists(objects, max_size=3), st.booleans())
def test_any_objects_in_json_and_yaml(items: list[Any], as_list: bool) -> None:
    documents: list[Any] = [{"kind": "List", "items": items}] if as_list else items
    decoded("\n".join(json.dumps(item) for item in documents).encode())
    decoded(yaml.safe_dump_all(documents, allow_unicode=True).encode("utf-8", "replace"))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([SAMPLE, AS_YAML]), st.data())
def test_a_damaged_file(sample: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sample)))
    length = data.draw(st.integers(0, 40))
    middle = data.draw(st.binary(max_size=6) | st.sampled_from([b"{", b"}", b'"', b"\n---\n", b"null", b"*a", b"\0"]))
    decoded(sample[:start] + middle + sample[start + length :])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(SAMPLE) - 3))
def test_a_file_that_was_cut_off_is_never_taken_for_a_whole_one(end: int) -> None:
    assert decoded(SAMPLE[:end]) is None
