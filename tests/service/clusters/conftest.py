"""A stand-in API server with a small cluster, and the three connectors to it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import stamina

from service.clusters import ClusterSettings, Connector, connect
from service.clusters.live import LiveConnector
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.objects import small_cluster

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Connect = Callable[..., Connector]


@pytest.fixture(autouse=True)
def _retries_do_not_wait() -> Iterator[None]:
    stamina.set_testing(True, attempts=100, cap=True)
    yield
    stamina.set_testing(False)


@pytest.fixture
def server() -> Iterator[FakeKubernetes]:
    with FakeKubernetes() as running:
        for item in small_cluster():
            running.state.put(item)
        yield running


def kubeconfig_connector(server: FakeKubernetes, directory: Path, **options: Any) -> Connector:
    """A connector by kubeconfig; options of the kubeconfig are those that ``FakeKubernetes.kubeconfig`` takes."""
    known = ("auth", "user", "insecure", "trust", "user_extra")
    file = server.kubeconfig(directory, **{key: options.pop(key) for key in known if key in options})
    return connect(ClusterSettings(name="lab", kubeconfig=str(file), context="fake", **options))


def in_cluster_connector(server: FakeKubernetes, directory: Path, **options: Any) -> Connector:
    """A connector by a mounted service account."""
    env = server.service_account(directory)
    return LiveConnector(ClusterSettings(name="lab", in_cluster=True, **options), env=env, service_account=directory)


def snapshot_connector(server: FakeKubernetes, directory: Path, **options: Any) -> Connector:
    """A connector to what ``kubectl get -o json`` would print of the server's cluster now."""
    directory.mkdir(exist_ok=True)
    (directory / "all.json").write_bytes(server.state.dump())
    options.pop("page_size", None)
    return connect(ClusterSettings(name="lab", snapshot=[str(directory / "all.json")], observed_at=NOW, **options))


@pytest.fixture(params=[kubeconfig_connector, in_cluster_connector, snapshot_connector])
def any_connector(request: pytest.FixtureRequest, server: FakeKubernetes, tmp_path: Path) -> Connect:
    """Makes a connector of each kind to the same cluster, as it is when it is made."""

    def make(**options: Any) -> Connector:
        made: Connector = request.param(server, tmp_path / "cluster", **options)
        return made

    return make


@pytest.fixture
def live(server: FakeKubernetes, tmp_path: Path) -> Connect:
    """Makes a kubeconfig connector."""
    return lambda **options: kubeconfig_connector(server, tmp_path / "kube", **options)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What snapshots warn of."""
    warnings: list[dict[str, Any]] = []

    class Log:
        def warning(self, event: str, **values: Any) -> None:
            warnings.append({"event": event, **values})

    monkeypatch.setattr("service.clusters.snapshot.log", Log())
    return warnings
