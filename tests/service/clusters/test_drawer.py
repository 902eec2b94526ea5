"""What a mirror takes from lists and changes."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rules.findings import Unreadable
from service.clusters.drawer import Drawer, matters
from service.clusters.kinds import BY_KIND
from service.clusters.wire import WatchEvent, decode_event
from service.errors import ClusterUnreachable
from tests.service.clusters.objects import event, node, pod


def change(kind: str, item: dict[str, Any], version: int) -> WatchEvent:
    """A change as the API server would write it."""
    item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(version), "uid": item["metadata"]["name"]}}
    return decode_event(BY_KIND[item["kind"]], msgspec.json.encode({"type": kind, "object": item}))


def bookmark(kind: str, version: int) -> WatchEvent:
    body = {"type": "BOOKMARK", "object": {"kind": kind, "metadata": {"resourceVersion": str(version)}}}
    return decode_event(BY_KIND[kind], msgspec.json.encode(body))


def listed(*items: dict[str, Any], version: int) -> list[Any]:
    return [change("ADDED", item, version).object for item in items]


@pytest.fixture(name="pods")
def _pods() -> Drawer:
    drawer = Drawer(BY_KIND["Pod"], stale_after=100)
    drawer.replace(listed(pod("a"), pod("b"), version=10), "10", now=0)
    return drawer


def names(drawer: Drawer) -> set[str]:
    return {name for _, name in drawer.objects}


def test_changes_in_order_are_filed(pods: Drawer) -> None:
    assert pods.apply(change("ADDED", pod("c"), 11), 1)
    assert pods.apply(change("MODIFIED", pod("a", on="gpu-a"), 12), 1)
    assert pods.apply(change("DELETED", pod("b"), 13), 1)
    assert names(pods) == {"a", "c"}
    assert pods.objects[("default", "a")].spec.nodeName == "gpu-a"
    assert (pods.revision, pods.doubtful) == ("13", False)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_older_than_what_is_known_is_left_out_and_makes_doubtful(pods: Drawer, kind: str) -> None:
    pods.apply(change("MODIFIED", pod("a", on="gpu-a"), 12), 1)
    assert not pods.apply(change(kind, pod("a"), 11), 2)
    assert pods.objects[("default", "a")].spec.nodeName == "gpu-a"
    assert pods.doubtful
    pods.replace(listed(pod("a"), version=11), "11", now=3)
    assert not pods.doubtful


def test_a_deleted_object_does_not_come_back_by_an_old_change(pods: Drawer) -> None:
    pods.apply(change("DELETED", pod("a"), 20), 1)
    pods.apply(change("MODIFIED", pod("a"), 15), 1)
    assert names(pods) == {"b"}


def test_a_bookmark_moves_on_without_a_change_and_one_from_before_is_doubtful(pods: Drawer) -> None:
    assert not pods.apply(bookmark("Pod", 50), 1)
    assert (pods.revision, pods.heard) == ("50", 1)
    assert not pods.apply(bookmark("Pod", 50), 2)
    assert not pods.doubtful
    pods.apply(bookmark("Pod", 40), 3)
    assert (pods.doubtful, pods.heard) == (True, 2)


def test_objects_that_did_not_change_stay_the_same_instance_over_a_list(pods: Drawer) -> None:
    before = dict(pods.objects)
    changed = pods.replace([*listed(pod("a"), version=10), *listed(pod("b", on="x"), version=30)], "30", now=5)
    assert changed
    assert pods.objects[("default", "a")] is before[("default", "a")]
    assert pods.objects[("default", "b")] is not before[("default", "b")]
    assert not pods.replace(list(pods.objects.values()), "31", now=6)


def test_a_namesake_made_anew_at_the_same_version_is_another_object(pods: Drawer) -> None:
    again = msgspec.structs.replace(
        pods.objects[("default", "a")],
        metadata=msgspec.structs.replace(pods.objects[("default", "a")].metadata, uid="other"),
    )
    pods.replace([again], "10", now=1)
    assert pods.objects[("default", "a")].metadata.uid == "other"


def test_heartbeats_of_nodes_and_versions_do_not_matter_and_labels_do() -> None:
    nodes = Drawer(BY_KIND["Node"], stale_after=100)
    nodes.replace(listed(node("n", {"driver": "550"}), version=10), "10", now=0)
    beating = node("n", {"driver": "550"})
    beating["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-30T10:05:00Z"
    assert not nodes.apply(change("MODIFIED", beating, 11), 1)
    assert nodes.objects[("", "n")].status.conditions[0].lastHeartbeatTime == datetime(2026, 11, 30, 10, 5, tzinfo=UTC)
    assert nodes.apply(change("MODIFIED", node("n"), 12), 1)


def test_events_are_kept_but_are_no_reason_to_look_again() -> None:
    events = Drawer(BY_KIND["Event"], stale_after=100)
    assert not events.replace(listed(event("e1", "FailedScheduling"), version=5), "5", now=0)
    assert not events.apply(change("ADDED", event("e2", "FailedScheduling"), 6), 0)
    assert names(events) == {"e1", "e2"}


def test_what_was_not_confirmed_for_too_long_is_unknown_and_says_why(pods: Drawer) -> None:
    assert pods.unreadable(100) is None
    pods.fail(ClusterUnreachable("lab", "connection refused", "Check it."))
    assert pods.unreadable(100) is None
    assert pods.unreadable(101) == Unreadable(
        "Pod", "error", "pods are not current since 101 s: connection refused. Check it."
    )
    pods.confirm(200)
    assert pods.unreadable(201) is None


def test_a_refused_kind_holds_nothing_any_more(pods: Drawer) -> None:
    why = Unreadable("Pod", "forbidden", "no right")
    pods.refuse(why)
    assert (pods.unreadable(0), pods.objects, pods.revision) == (why, {}, "")


def test_nothing_was_read_so_far() -> None:
    fresh = Drawer(BY_KIND["Pod"], "team-a", stale_after=100)
    found = fresh.unreadable(0)
    assert found is not None
    assert found.detail == "pods in the namespace team-a were not read so far: no answer yet"


def test_opaque_versions_are_taken_in_the_order_of_their_arrival(pods: Drawer) -> None:
    pods.replace(pods.objects.values(), "abc", now=1)
    assert pods.apply(change("DELETED", pod("a"), 3), 2)
    assert not pods.doubtful


def test_what_matters_is_told_for_every_field() -> None:
    one, other = listed(pod("a"), pod("a", on="n"), version=1)
    assert matters(one, other)
    assert not matters(one, msgspec.structs.replace(one))


def test_a_changed_object_keeps_what_did_not_change() -> None:
    drawer = Drawer(BY_KIND["Pod"], stale_after=60)
    before = pod("a", on="gpu-1")
    drawer.replace(listed(before, version=1), "1", 0)
    [old] = drawer.objects.values()
    after = {**before, "metadata": {**before["metadata"], "labels": {"app": "y"}}}
    event = change("MODIFIED", after, 2)
    assert drawer.apply(event, 1)
    [new] = drawer.objects.values()
    assert new == event.object
    assert new.metadata.labels == {"app": "y"}
    assert new.spec is old.spec
    assert new.status is old.status
    assert (old.metadata.resourceVersion, new.metadata.resourceVersion) == ("1", "2")
