"""The service account of the pod that gpu-advisor runs in."""

from pathlib import Path

import pytest

from service.clusters import ClusterSettings
from service.clusters.live import LiveConnector
from service.errors import ClusterUnauthorized, ConfigInvalid
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import in_cluster_connector


async def test_reads_the_token_anew_when_the_kubelet_has_replaced_it(server: FakeKubernetes, tmp_path: Path) -> None:
    connector = in_cluster_connector(server, tmp_path)
    await connector.collect()
    server.tokens = {"next-token-0001": "reader"}
    with pytest.raises(ClusterUnauthorized):
        await connector.collect()
    (tmp_path / "token").write_text("next-token-0001\n", encoding="utf-8")
    assert len((await connector.collect()).nodes) == 2


async def test_outside_a_pod_it_says_so(tmp_path: Path) -> None:
    connector = LiveConnector(ClusterSettings(name="lab", in_cluster=True), env={}, service_account=tmp_path)
    with pytest.raises(ConfigInvalid, match="must run in a pod"):
        await connector.collect()


async def test_without_a_mounted_account_it_says_so(server: FakeKubernetes, tmp_path: Path) -> None:
    env = server.service_account(tmp_path)
    (tmp_path / "token").unlink()
    connector = LiveConnector(ClusterSettings(name="lab", in_cluster=True), env=env, service_account=tmp_path)
    with pytest.raises(ConfigInvalid, match="automountServiceAccountToken"):
        await connector.collect()
