"""How a live cluster is asked: pages, consistency, kindness, and what a refusal means."""

import asyncio
from itertools import count
from pathlib import Path

import msgspec
import pytest
import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from service.clusters.config import ClusterSettings
from service.clusters.distance import Distance
from service.clusters.kinds import BY_KIND, KINDS
from service.clusters.live import LiveConnector
from service.clusters.refusals import Refused
from service.errors import ClusterForbidden, ClusterTimeout, ClusterUnavailable
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import NOW, Connect, kubeconfig_connector
from tests.service.clusters.objects import event, pod


async def test_asks_in_pages_of_one_revision_and_never_for_the_watch_cache(
    server: FakeKubernetes, live: Connect
) -> None:
    await live(page_size=1).collect()
    asked = server.asked("pods")
    assert len(asked) == 3
    assert all(request.query["limit"] == "1" and "resourceVersion" not in request.query for request in asked)
    assert ["continue" in request.query for request in asked] == [False, True, True]


async def test_a_pod_that_moves_between_pages_is_seen_once(server: FakeKubernetes, live: Connect) -> None:
    """The second page is of the first one's revision, whatever happens meanwhile."""
    server.faults.add("pods", status=429, retry_after=0, only_continued=True, times=1)
    names = [item.metadata.name for item in (await live(page_size=2).collect()).pods]
    assert sorted(names) == ["busy-1", "busy-2", "waiting"]


async def test_a_list_that_expires_is_read_again_from_the_start(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("pods", expire=True, only_continued=True, times=1)
    collected = await live(page_size=1).collect()
    assert sorted(item.metadata.name for item in collected.pods) == ["busy-1", "busy-2", "waiting"]
    tokens = [request.query.get("continue") for request in server.asked("pods")]
    assert tokens.count(None) == 2


async def test_a_list_that_expires_twice_is_unknown_not_half_known(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("pods", expire=True, only_continued=True)
    collected = await live(page_size=1).collect()
    assert collected.pods == ()
    assert "Pod" not in collected.read_kinds
    [pods] = collected.unreadable
    assert (pods.kind, pods.reason) == ("Pod", "error")
    assert "expired twice" in pods.detail


async def test_reads_a_bounded_number_of_kinds_at_once(server: FakeKubernetes, live: Connect) -> None:
    for spec in KINDS:
        server.faults.add(spec.plural, hang=True)
    with pytest.raises(ClusterTimeout):
        await live(max_parallel=2, timeout_seconds=0.5).collect()
    assert len([request for request in server.requests if "limit" in request.query]) == 2


async def test_leaves_routine_events_out_on_the_server(server: FakeKubernetes, live: Connect) -> None:
    await live().collect()
    [request] = server.asked("events")
    assert "reason!=Pulled" in request.query["fieldSelector"]


async def test_events_without_end_are_given_up(
    server: FakeKubernetes, live: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(30):
        server.state.put(event(f"crash-{index:02}", "BackOff"))
    spec = BY_KIND["Event"]
    fewer = type(spec)(**{field: getattr(spec, field) for field in spec.__struct_fields__} | {"max_objects": 20})
    monkeypatch.setattr("service.clusters.collect.KINDS", [fewer if item is spec else item for item in KINDS])
    collected = await live(page_size=10).collect()
    assert "Event" not in collected.read_kinds
    assert [(item.kind, "more than 20" in item.detail) for item in collected.unreadable] == [("Event", True)]


@pytest.mark.parametrize("gzip", [True, False])
async def test_accepts_compressed_answers_only_when_told_to(server: FakeKubernetes, live: Connect, gzip: bool) -> None:
    for index in range(400):
        server.state.put(pod(f"pod-{index:03}"))
    collected = await live(gzip=gzip).collect()
    assert len(collected.pods) == 403
    assert server.asked("pods")[0].headers["accept-encoding"] == ("gzip" if gzip else "identity")


@pytest.mark.parametrize(("milliseconds", "encoding"), [(1, "identity"), (4, "identity"), (6, "gzip"), (80, "gzip")])
async def test_by_default_answers_are_compressed_where_the_server_is_far_away(
    server: FakeKubernetes, tmp_path: Path, milliseconds: int, encoding: str
) -> None:
    """The clock goes on whenever it is looked at, so that an answer takes no less than that."""
    for index in range(400):
        server.state.put(pod(f"pod-{index:03}"))
    settings = ClusterSettings(name="lab", kubeconfig=str(server.kubeconfig(tmp_path)), context="fake")
    looked = count()
    collected = await LiveConnector(settings, clock=lambda: next(looked) * milliseconds / 1000).collect()
    assert len(collected.pods) == 403
    assert server.asked("pods")[0].headers["accept-encoding"] == encoding


def test_the_first_answer_says_nothing_of_the_distance() -> None:
    """A connection is made for it, which takes several round trips."""
    now = [0.0]
    distance = Distance("auto", lambda: now[0])
    assert not distance.compressed
    for seconds, round_trip in ((0.2, None), (0.03, 0.03), (0.002, 0.002), (0.5, 0.002)):
        with distance.timed():
            now[0] += seconds
        assert distance.round_trip == (None if round_trip is None else pytest.approx(round_trip))
    assert not distance.compressed


def test_gzip_is_auto_true_or_false() -> None:
    assert ClusterSettings(name="lab").gzip == "auto"
    for text, gzip in ((b'"auto"', "auto"), (b"true", True), (b"false", False)):
        assert msgspec.json.decode(b'{"name":"lab","gzip":%b}' % text, type=ClusterSettings).gzip == gzip
    with pytest.raises(msgspec.ValidationError, match="gzip"):
        msgspec.json.decode(b'{"name":"lab","gzip":"far"}', type=ClusterSettings)


async def test_does_not_ask_for_an_api_that_discovery_does_not_name(server: FakeKubernetes, live: Connect) -> None:
    """Asking would give a reader 403, which looks like a missing right."""
    server.state.remove_group("resource.k8s.io")
    collected = await live().collect()
    assert {(item.kind, item.reason) for item in collected.unreadable} == {
        (spec.kind, "not-found") for spec in KINDS if spec.group == "resource.k8s.io"
    }
    assert server.asked("resourceclaims") == []


async def test_reads_an_older_version_of_an_api_where_the_newest_is_missing(
    server: FakeKubernetes, live: Connect
) -> None:
    server.state.serve_group_as("resource.k8s.io", "v1beta1")
    collected = await live().collect()
    assert [item.metadata.name for item in collected.others["ResourceClaim"]] == ["claim-1"]


async def test_asks_blindly_where_discovery_is_forbidden(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("apis", status=403, reason="Forbidden", message="no")
    server.faults.add("version", status=403, reason="Forbidden", message="no")
    collected = await live().collect()
    assert collected.unreadable == ()
    assert collected.version is None


async def test_a_forbidden_kind_is_unknown_and_the_right_to_add_is_named(server: FakeKubernetes, live: Connect) -> None:
    server.denied.add("daemonsets.apps")
    collected = await live().collect()
    assert "DaemonSet" not in collected.read_kinds
    [unreadable] = collected.unreadable
    assert (unreadable.kind, unreadable.reason) == ("DaemonSet", "forbidden")
    assert 'User "reader" cannot list resource "daemonsets" in API group "apps"' in unreadable.detail
    assert '- {apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["get", "list", "watch"]}' in unreadable.detail
    assert len(collected.pods) == 3


async def test_without_the_right_to_read_nodes_there_is_nothing_to_say(server: FakeKubernetes, live: Connect) -> None:
    server.denied.add("nodes")
    with pytest.raises(ClusterForbidden) as caught:
        await live().collect()
    assert caught.value.rule == '- {apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"]}'
    assert 'nodes is forbidden: User "reader" cannot list resource "nodes"' in str(caught.value)


async def test_what_was_complete_when_time_ran_out_counts(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("daemonsets", hang=True)
    collected = await live(timeout_seconds=1).collect()
    assert [(item.kind, item.reason) for item in collected.unreadable] == [("DaemonSet", "error")]
    assert "1 seconds" in collected.unreadable[0].detail
    assert len(collected.nodes) == 2


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again(server: FakeKubernetes, live: Connect, status: int) -> None:
    server.faults.add("pods", status=status, times=3)
    collected = await live().collect()
    assert len(collected.pods) == 3
    assert len(server.asked("pods")) == 4


async def test_asking_again_has_an_end(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("nodes", status=503, reason="ServiceUnavailable", message="etcd is away")
    with pytest.raises(ClusterUnavailable, match="503 ServiceUnavailable: etcd is away") as caught:
        await live().collect()
    assert caught.value.status == 503
    assert len(server.asked("nodes")) == 4


async def test_waits_as_long_as_retry_after_says(server: FakeKubernetes, live: Connect) -> None:
    waits: list[float] = []

    def note(details: RetryDetails) -> None:
        waits.append(details.wait_for)

    server.faults.add("pods", status=429, retry_after="0.05", times=1)
    stamina.set_testing(False)
    set_on_retry_hooks([note])
    try:
        await live().collect()
    finally:
        set_on_retry_hooks(None)
    assert waits == [0.05]


async def test_does_not_wait_longer_than_an_audit_may(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("nodes", status=429, retry_after=3600)
    with pytest.raises(ClusterUnavailable):
        await live().collect()
    assert len(server.asked("nodes")) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0), ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0), ("soon", None)],
)
def test_reads_retry_after_as_seconds_or_date(header: str, seconds: float | None) -> None:
    assert Refused(503, b"", {"Retry-After": header}, NOW).retry_after == seconds


def test_reads_the_pause_of_a_status_without_the_header() -> None:
    assert Refused(504, b'{"kind":"Status","details":{"retryAfterSeconds":1}}', {}, NOW).retry_after == 1


async def test_a_connection_that_breaks_is_made_again(server: FakeKubernetes, live: Connect) -> None:
    server.faults.add("pods", disconnect=True, times=1)
    server.faults.add("nodes", cut=True, times=1)
    collected = await live().collect()
    assert (len(collected.nodes), len(collected.pods)) == (2, 3)


async def test_a_server_that_comes_back_is_read_again(server: FakeKubernetes, live: Connect) -> None:
    connector = live()
    await connector.collect()
    await asyncio.to_thread(server.stop)
    with pytest.raises(Exception, match="connection refused"):
        await connector.collect()
    await asyncio.to_thread(server.start)
    assert len((await connector.collect()).nodes) == 2


async def test_one_clusters_trouble_does_not_touch_another(
    server: FakeKubernetes, live: Connect, tmp_path: Path
) -> None:
    with FakeKubernetes() as other:
        other.faults.add("*", hang=True)
        broken = kubeconfig_connector(other, tmp_path / "other", timeout_seconds=0.5)
        good, bad = await asyncio.gather(live().collect(), broken.collect(), return_exceptions=True)
    assert isinstance(bad, ClusterTimeout)
    assert not isinstance(good, BaseException)
