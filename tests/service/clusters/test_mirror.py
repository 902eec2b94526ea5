"""Following a cluster over real HTTP and TLS: what a mirror knows, and when it says that it does not."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service.clusters.kinds import KINDS
from service.clusters.mirror import DISCOVER_SECONDS, WATCHED
from service.clusters.watch import LONGEST_PAUSE, Pace
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import NOW, kubeconfig_connector
from tests.service.clusters.following import Following, lists, names
from tests.service.clusters.objects import claim, daemon_set, node, pod


@pytest.fixture(params=["streaming lists", "plain lists"])
def either(request: pytest.FixtureRequest, server: FakeKubernetes) -> FakeKubernetes:
    """A server with streaming lists, and one without."""
    server.watches.streaming = request.param == "streaming lists"
    return server


async def test_a_mirror_gives_what_a_list_gives(either: FakeKubernetes, tmp_path: Path) -> None:
    listed = await kubeconfig_connector(either, tmp_path).collect()
    async with Following(either, tmp_path / "m") as following:
        mirrored = await following.mirror.collect()
    assert mirrored.read_kinds == listed.read_kinds == frozenset(spec.kind for spec in KINDS)
    for field in ("nodes", "pods", "events"):
        assert sorted(getattr(mirrored, field), key=str) == sorted(getattr(listed, field), key=str)
    assert {kind: set(map(str, items)) for kind, items in mirrored.others.items()} == {
        kind: set(map(str, items)) for kind, items in listed.others.items()
    }
    assert (mirrored.version, mirrored.api_groups) == (listed.version, listed.api_groups)


async def test_changes_arrive_without_a_list(either: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(either, tmp_path) as following:
        await following.watching("nodes", "pods")
        before = {spec.plural: lists(either, spec.plural) for spec in KINDS}
        either.state.put(node("gpu-c"))
        either.state.put(pod("new", on="gpu-c"))
        either.state.delete("Pod", "busy-1", "default")
        found = await following.until(lambda now: "new" in names(now.pods) and "busy-1" not in names(now.pods))
        assert names(found.nodes) == {"gpu-a", "gpu-b", "gpu-c"}
        for _ in range(20):
            await following.mirror.collect()
        assert {spec.plural: lists(either, spec.plural) for spec in KINDS} == before


async def test_what_matters_is_signalled_and_heartbeats_are_not(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("nodes", "pods")
        await following.mirror.changed()
        beating = node("gpu-b")
        beating["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-30T11:59:00Z"
        version = server.state.put(beating)["metadata"]["resourceVersion"]
        await following.until(lambda now: version in {item.metadata.resourceVersion for item in now.nodes})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await following.mirror.changed()
        server.state.put(node("gpu-b", {"nvidia.com/gpu.product": "NVIDIA-L4"}))
        async with asyncio.timeout(20):
            await following.mirror.changed()


async def test_never_more_watches_than_allowed_and_the_rest_is_listed_slowly(
    server: FakeKubernetes, tmp_path: Path
) -> None:
    async with Following(server, tmp_path, max_watches=3) as following:
        await following.watching("nodes", "pods", "daemonsets")
        assert sum(server.watches.number(spec.plural) for spec in KINDS) == 3
        server.state.put(claim("claim-2"))
        found = await following.until(lambda now: len(now.others["ResourceClaim"]) == 2, step=5)
        assert "ResourceClaim" in found.read_kinds
        assert found.current_at["ResourceClaim"] <= NOW
        assert sum(server.watches.number(spec.plural) for spec in KINDS) == 3


async def test_watched_kinds_are_kinds_that_are_read() -> None:
    assert set(WATCHED) <= {spec.kind for spec in KINDS}


async def test_a_watch_that_ends_goes_on_where_it_was(either: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(either, tmp_path) as following:
        await following.watching("pods")
        before = lists(either, "pods")
        either.watches.end("pods")
        either.state.put(pod("meanwhile"))
        await following.until(lambda now: "meanwhile" in names(now.pods), step=0.1)
        assert lists(either, "pods") == before


@pytest.mark.parametrize("form", ["status", "event"])
async def test_a_past_that_is_gone_is_listed_anew(either: FakeKubernetes, tmp_path: Path, form: str) -> None:
    async with Following(either, tmp_path) as following:
        await following.watching("pods")
        either.state.delete("Pod", "waiting", "default")
        await following.until(lambda now: "waiting" not in names(now.pods))
        before = lists(either, "pods")
        if form == "status":
            either.faults.add("pods", status=410, reason="Expired", message="too old", times=1, only_watch=True)
        else:
            either.state.put(node("other"))
            either.state.compact()
        either.watches.end("pods")
        await following.until(lambda _: True, step=0.1, server=lambda: lists(either, "pods") == before + 1)
        either.state.put(pod("after"))
        await following.until(lambda now: "after" in names(now.pods), step=0.1)


async def test_a_silent_watch_is_begun_anew_with_a_list(either: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(either, tmp_path, pace=Pace(silence=0.3)) as following:
        await following.watching("pods")
        before = lists(either, "pods")
        await following.until(lambda _: True, step=0.1, server=lambda: lists(either, "pods") > before)


async def test_a_change_from_before_is_left_out_and_the_kind_listed_anew(
    either: FakeKubernetes, tmp_path: Path
) -> None:
    async with Following(either, tmp_path) as following:
        await following.watching("pods")
        old = either.state.get("Pod", "busy-1", "default")
        version = either.state.put(pod("busy-1", on="gpu-b"))["metadata"]["resourceVersion"]
        await following.until(lambda now: version in {item.metadata.resourceVersion for item in now.pods})
        before = lists(either, "pods")
        either.watches.say("pods", {"type": "MODIFIED", "object": old})
        await following.until(lambda _: True, step=0.1, server=lambda: lists(either, "pods") > before)
        found = await following.watching("pods")
        hosts = {item.metadata.name: item.spec.nodeName for item in found.pods if item.spec}
        assert hosts["busy-1"] == "gpu-b"


async def test_a_server_with_an_older_past_is_believed(either: FakeKubernetes, tmp_path: Path) -> None:
    """As after a restore of etcd from a backup: revisions are lower than those that were seen."""
    async with Following(either, tmp_path) as following:
        await following.watching("pods", "nodes")
        await asyncio.to_thread(either.stop)
        with either.state.lock:
            either.state.delete("Pod", "busy-1", "default")
            either.state.history.clear()
            either.state.revision = 100
            either.state.compacted = 0
        either.start()
        past = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "100"}}
        await following.watching("pods")
        either.watches.say("pods", {"type": "BOOKMARK", "object": past})
        found = await following.until(lambda now: "busy-1" not in names(now.pods), step=0.1)
        assert "Pod" in found.read_kinds


async def test_a_server_that_goes_away_and_comes_back(either: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(either, tmp_path) as following:
        await following.watching("pods", "nodes")
        await asyncio.to_thread(either.stop)
        following.time.advance(60)
        found = await following.mirror.collect()
        assert "Pod" in found.read_kinds, "a restart of the API server is no reason to forget"
        error: Any = await following.failing(lambda found: True, step=1.0)
        assert error.code in ("cluster-unreachable", "cluster-answer-invalid")
        assert "127.0.0.1" in str(error)
        either.start()
        either.state.put(pod("later"))
        recovered = await following.until(lambda now: "later" in names(now.pods), step=1.0)
        assert "Pod" in recovered.read_kinds


async def test_pauses_grow_and_are_bounded(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("pods")
        server.faults.add("pods", disconnect=True)
        following.time.slept.clear()
        server.watches.end("pods")
        await following.until(lambda now: "Pod" not in now.read_kinds, step=1.0)
    pauses = [pause for pause in following.time.slept if pause <= LONGEST_PAUSE * 1.25 and pause != 5.0]
    assert pauses[:4] == sorted(pauses[:4])
    assert max(pauses) <= LONGEST_PAUSE * 1.25


async def test_credentials_that_rotate_are_read_again(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("pods")
        token = "reader-token-1111"
        following.file.write_text(following.file.read_text(encoding="utf-8").replace("reader-token-0000", token))
        server.tokens = {token: "reader"}
        server.watches.end("*")
        server.state.put(pod("after"))
        found = await following.until(lambda now: "after" in names(now.pods), step=0.1)
        assert "Pod" in found.read_kinds


async def test_a_right_that_is_taken_away_and_given_back(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("pods")
        server.denied.add("pods")
        server.watches.end("pods")
        found = await following.until(lambda now: "Pod" not in now.read_kinds, step=0.1)
        (why,) = found.unreadable
        assert (why.kind, why.reason) == ("Pod", "forbidden")
        assert 'resources: ["pods"]' in why.detail
        assert found.pods == (), "what may not be seen is not shown as if it were still true"
        server.denied.discard("pods")
        await following.until(lambda now: "Pod" in now.read_kinds, step=30)


async def test_a_right_to_list_without_one_to_watch_lists_often_and_says_so_once(
    server: FakeKubernetes, tmp_path: Path
) -> None:
    server.denied.add("watch pods")
    async with Following(server, tmp_path) as following:
        found = await following.until(lambda now: now.notes, step=0.1)
        assert "Pod" in found.read_kinds
        (note,) = found.notes
        assert 'cannot watch resource "pods"' in note
        assert 'resources: ["pods"], verbs: ["get", "list", "watch"]' in note
        server.state.put(pod("polled"))
        await following.until(lambda now: "polled" in names(now.pods), step=5)
        server.denied.discard("watch pods")
        await following.until(lambda now: not now.notes, step=30, server=lambda: server.watches.number("pods"))


async def test_an_api_that_is_installed_later_is_found(server: FakeKubernetes, tmp_path: Path) -> None:
    gone = {key: item for key, item in server.state.resources.items() if key[0] == "kueue.x-k8s.io"}
    server.state.remove_group("kueue.x-k8s.io")
    async with Following(server, tmp_path) as following:
        found = await following.mirror.collect()
        assert {item.kind: item.reason for item in found.unreadable} == {
            "ClusterQueue": "not-found",
            "ResourceFlavor": "not-found",
            "Workload": "not-found",
        }
        server.state.resources.update(gone)
        found = await following.until(lambda now: "Workload" in now.read_kinds, step=DISCOVER_SECONDS / 20)
        assert "kueue.x-k8s.io" in (found.api_groups or ())


async def test_each_kind_says_since_when_it_is_current(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        found = await following.mirror.collect()
        assert set(found.current_at) == found.read_kinds
        following.time.advance(40)
        found = await following.mirror.collect()
        assert found.current_at["Pod"] == NOW - timedelta(seconds=40)


async def test_a_node_deleted_while_its_pods_still_come(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("nodes", "pods")
        server.state.delete("Node", "gpu-a")
        server.state.put(pod("late", on="gpu-a"))
        found = await following.until(lambda now: "late" in names(now.pods) and "gpu-a" not in names(now.nodes))
        assert names(found.nodes) == {"gpu-b"}


async def test_a_malformed_change_is_told_and_the_kind_listed_anew(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("daemonsets")
        before = lists(server, "daemonsets")
        server.watches.say("daemonsets", b"<html>Sign in</html>\n")
        server.state.put(daemon_set("later"))
        await following.until(
            lambda now: "later" in names(now.others["DaemonSet"]),
            step=0.1,
            server=lambda: lists(server, "daemonsets") > before,
        )


async def test_closing_leaves_no_watch_behind(server: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(server, tmp_path) as following:
        await following.watching("nodes", "pods")
    async with asyncio.timeout(20):
        while any(server.watches.number(spec.plural) for spec in KINDS):
            server.watches.ring()
            await asyncio.sleep(0.01)
