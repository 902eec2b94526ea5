"""The three connectors read the same things out of the same cluster."""

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rules.facts.kinds import group_of
from rules.facts.objects import OtherObject
from rules.facts.prices import bundled
from service.clusters import Collected, Connector, to_facts
from service.clusters.kinds import BY_KIND
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import (
    NOW,
    Connect,
    in_cluster_connector,
    kubeconfig_connector,
    snapshot_connector,
)
from tests.service.clusters.objects import pod

SAMPLES = sorted(Path("tests/data/clusters").glob("*.json"))


def asked_for(items: Sequence[OtherObject]) -> list[OtherObject]:
    """What a live cluster is asked for: a file may hold namesakes of other API groups, and objects of other names."""
    return [
        item
        for item in items
        if (spec := BY_KIND.get(item.kind)) is not None
        and group_of(item.apiVersion) == spec.group
        and item.metadata.name in (spec.names or (item.metadata.name,))
    ]


def names(collected: Collected) -> dict[str, list[str]]:
    found: dict[str, Sequence[Any]] = dict(collected.others)
    found |= {"Node": collected.nodes, "Pod": collected.pods, "Event": collected.events}
    return {kind: sorted(item.metadata.name for item in items) for kind, items in found.items() if items}


async def test_reads_every_kind_that_rules_need(any_connector: Connect) -> None:
    connector = any_connector()
    collected = await connector.collect()
    assert names(collected) == {
        "Node": ["gpu-a", "gpu-b"],
        "Pod": ["busy-1", "busy-2", "waiting"],
        "Event": ["e1", "e2"],
        "DaemonSet": ["nvidia-device-plugin"],
        "ResourceClaim": ["claim-1"],
    }
    assert {"Node", "Pod", "Event", "DaemonSet", "ResourceClaim"} <= collected.read_kinds
    assert collected.unreadable == ()
    assert (collected.observed_at is None) == (connector.kind != "snapshot")


async def test_keeps_kind_and_version_of_objects_that_lists_leave_out(any_connector: Connect) -> None:
    collected = await any_connector().collect()
    claim = collected.others["ResourceClaim"][0]
    assert (claim.apiVersion, claim.kind) == ("resource.k8s.io/v1", "ResourceClaim")


async def test_leaves_out_routine_events_but_keeps_what_autoscalers_say(any_connector: Connect) -> None:
    collected = await any_connector().collect()
    assert {event.reason for event in collected.events} == {"FailedScheduling", "NotTriggerScaleUp"}


async def test_page_size_does_not_change_what_is_read(any_connector: Connect) -> None:
    assert names(await any_connector(page_size=1).collect()) == names(await any_connector(page_size=500).collect())


async def test_collects_again_after_a_change_and_after_close(server: FakeKubernetes, any_connector: Connect) -> None:
    first = any_connector()
    assert len((await first.collect()).pods) == 3
    await first.close()
    server.state.put(pod("late", on="gpu-b"))
    server.state.delete("Pod", "waiting", "default")
    again = first if first.kind != "snapshot" else any_connector()
    assert names(await again.collect())["Pod"] == ["busy-1", "busy-2", "late"]
    await again.close()


async def test_keeps_nothing_alive_after_a_collection(any_connector: Connect) -> None:
    connector = any_connector()
    collected = await connector.collect()
    gone = weakref.ref(connector)
    del connector
    gc.collect()
    assert gone() is None
    assert collected.nodes


async def _all_three(server: FakeKubernetes, directory: Path) -> list[tuple[Connector, Collected]]:
    makers = (kubeconfig_connector, in_cluster_connector, snapshot_connector)
    connectors = [make(server, directory / str(index)) for index, make in enumerate(makers)]
    return [(connector, await connector.collect()) for connector in connectors]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
async def test_equal_facts_out_of_equal_objects(sample: Path, tmp_path: Path) -> None:
    with FakeKubernetes() as server:
        server.state.load(sample)
        read = await _all_three(server, tmp_path)
    everywhere = frozenset.intersection(*(collected.read_kinds for _, collected in read))
    assert {"Node", "Pod"} <= everywhere
    seen = []
    for connector, collected in read:
        facts = to_facts(connector.name, collected, NOW, bundled())
        asked = {kind: asked_for(items) for kind, items in facts.others.items() if kind in everywhere}
        others = {kind: items for kind, items in asked.items() if items}
        seen.append((facts.observed_at, facts.nodes, facts.pods, facts.events, others))
    assert seen[0] == seen[1] == seen[2]
