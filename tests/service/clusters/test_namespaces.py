"""Rights in some namespaces only: what is there is read, the rest is said to be unknown, and nothing is called idle."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.checks import RULES
from rules.engine import evaluate
from rules.facts.prices import PriceBook
from rules.findings import Report
from rules.policy import Policy
from service.cli.rbac import namespaced_manifests
from service.clusters import Collected, to_facts
from service.clusters.kinds import KINDS
from service.errors import ClusterForbidden, ClusterTimeout, ClusterUnreachable
from service.once import run_audit_once
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import NOW, kubeconfig_connector
from tests.service.clusters.following import Following, names
from tests.service.clusters.objects import pod

TEAMS = ["team-a", "team-b"]
NAMESPACED = {spec.kind for spec in KINDS if spec.namespaced}
CLUSTER_WIDE = {spec.kind for spec in KINDS if not spec.namespaced}


def crashing(name: str, namespace: str) -> dict[str, Any]:
    item = pod(name, on="gpu-a", namespace=namespace)
    item["status"]["containerStatuses"] = [
        {
            "name": "main",
            "restartCount": 40,
            "ready": False,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        }
    ]
    return item


@pytest.fixture
def teams(server: FakeKubernetes) -> FakeKubernetes:
    """A server whose reader has a Role in two namespaces and no ClusterRole."""
    for spec in KINDS:
        resource = f"{spec.plural}.{spec.group}" if spec.group else spec.plural
        server.denied.add(f"{resource} in *")
        server.denied.add(f"{resource} in default")
    server.state.put(pod("a-1", on="gpu-a", namespace="team-a"))
    server.state.put(crashing("b-1", "team-b"))
    return server


async def by_list(server: FakeKubernetes, directory: Path, **options: Any) -> Collected:
    return await kubeconfig_connector(server, directory, **options).collect()


async def by_watch(server: FakeKubernetes, directory: Path, **options: Any) -> Collected:
    async with Following(server, directory, **options) as following:
        return await following.mirror.collect()


def judged(collected: Collected) -> Report:
    return evaluate(to_facts("lab", collected, NOW, PriceBook()), Policy(), RULES)


@pytest.fixture(params=[by_list, by_watch])
def read(request: pytest.FixtureRequest) -> Any:
    return request.param


async def test_what_is_in_the_namespaces_is_read_and_the_rest_is_said_to_be_unknown(
    teams: FakeKubernetes, tmp_path: Path, read: Any
) -> None:
    found = await read(teams, tmp_path, namespaces=TEAMS)
    assert names(found.pods) == {"a-1", "b-1", "busy-2"}
    assert found.nodes == ()
    assert found.read_kinds == frozenset()
    assert {item.kind: item.reason for item in found.unreadable} == {
        **dict.fromkeys(NAMESPACED, "outside"),
        **dict.fromkeys(CLUSTER_WIDE, "forbidden"),
    }
    details = {item.kind: item.detail for item in found.unreadable}
    assert "only pods of team-a, team-b are read" in details["Pod"]
    assert 'resources: ["nodes"]' in details["Node"]


async def test_pods_alone_tell_what_they_can_and_nothing_is_called_idle(
    teams: FakeKubernetes, tmp_path: Path, read: Any
) -> None:
    report = judged(await read(teams, tmp_path, namespaces=TEAMS))
    assert [item.rule for item in report.findings] == ["crashloop-gpu"]
    assert {ref.namespace for ref in report.findings[0].objects} == {"team-b"}
    assert "idle-gpu-node" in {item.rule for item in report.skipped_rules}
    assert report.failed_rules == ()


async def test_nodes_that_may_be_seen_are_not_called_idle_by_pods_of_some_namespaces(
    teams: FakeKubernetes, tmp_path: Path, read: Any
) -> None:
    teams.denied.discard("nodes in *")
    found = await read(teams, tmp_path, namespaces=["team-a"])
    assert names(found.nodes) == {"gpu-a", "gpu-b"}
    assert found.read_kinds == {"Node"}
    report = judged(found)
    assert not any("idle" in item.rule for item in report.findings)
    assert "idle-gpu-node" in {item.rule for item in report.skipped_rules}


async def test_a_namespace_without_rights_is_named_with_the_line_to_add(
    teams: FakeKubernetes, tmp_path: Path, read: Any
) -> None:
    found = await read(teams, tmp_path, namespaces=["team-a", "default"])
    assert names(found.pods) == {"a-1"}
    (why,) = [item for item in found.unreadable if item.kind == "Pod"]
    assert why.reason == "forbidden"
    assert 'in the namespace "default"' in why.detail
    assert 'Role of that user in the namespace default: - {apiGroups: [""], resources: ["pods"]' in why.detail


async def test_a_cluster_that_cannot_be_reached_fails_as_a_whole(teams: FakeKubernetes, tmp_path: Path) -> None:
    connector = kubeconfig_connector(teams, tmp_path, namespaces=TEAMS)
    teams.stop()
    with pytest.raises(ClusterUnreachable):
        await connector.collect()


async def test_one_where_every_list_hangs_fails_as_a_whole(teams: FakeKubernetes, tmp_path: Path) -> None:
    for spec in KINDS:
        teams.faults.add(spec.plural, hang=True)
    with pytest.raises(ClusterTimeout):
        await by_list(teams, tmp_path, namespaces=TEAMS, timeout_seconds=0.6)


async def test_without_namespaces_nodes_are_needed(teams: FakeKubernetes, tmp_path: Path, read: Any) -> None:
    with pytest.raises(ClusterForbidden) as caught:
        await read(teams, tmp_path)
    assert caught.value.rule == '- {apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"]}'


async def test_changes_in_the_namespaces_are_followed(teams: FakeKubernetes, tmp_path: Path) -> None:
    async with Following(teams, tmp_path, namespaces=TEAMS, max_watches=4) as following:
        await following.until(lambda _: True, step=0.1, server=lambda: teams.watches.number("pods") == 2)
        teams.state.put(pod("a-2", namespace="team-a"))
        teams.state.delete("Pod", "b-1", "team-b")
        teams.state.put(pod("elsewhere"))
        found = await following.until(lambda now: "a-2" in names(now.pods) and "b-1" not in names(now.pods))
        assert names(found.pods) == {"a-1", "a-2", "busy-2"}
        assert sum(teams.watches.number(spec.plural) for spec in KINDS) <= 4


async def test_an_audit_of_namespaces_is_one_like_any_other(teams: FakeKubernetes, tmp_path: Path) -> None:
    connector = kubeconfig_connector(teams, tmp_path, namespaces=TEAMS)
    _, report = await run_audit_once(connector, now=NOW, policy=Policy(), prices=PriceBook())
    assert [item.rule for item in report.findings] == ["crashloop-gpu"]


def test_the_roles_allow_every_namespaced_kind_in_each_namespace_and_nothing_else() -> None:
    documents = list(yaml.safe_load_all(namespaced_manifests(TEAMS)))
    roles = [item for item in documents if item["kind"] == "Role"]
    assert [item["metadata"]["namespace"] for item in roles] == TEAMS
    for role in roles:
        allowed = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
        assert allowed == {(spec.group, spec.plural) for spec in KINDS if spec.namespaced}
        assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    bindings = [item for item in documents if item["kind"] == "RoleBinding"]
    assert [item["metadata"]["namespace"] for item in bindings] == TEAMS
    assert {item["roleRef"]["kind"] for item in bindings} == {"Role"}
    assert not [item for item in documents if item["kind"].startswith("Cluster")]


def test_kinds_in_namespaces_are_those_that_the_stand_in_has_there(server: FakeKubernetes) -> None:
    served = {(item.group, item.kind): item.namespaced for item in server.state.resources.values()}
    assert {spec.kind: spec.namespaced for spec in KINDS} == {
        spec.kind: served[(spec.group, spec.kind)] for spec in KINDS
    }
