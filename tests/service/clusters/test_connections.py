"""Ways to an API server, over real TLS: proxies, names of certificates, certificates that rotate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.clusters import ClusterSettings, Connector, connect
from service.errors import ClusterUnreachable
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import Connect
from tests.service.clusters.objects import small_cluster


class Proxy:
    """A proxy that makes tunnels, as for HTTPS.

    Attributes:
        asked: addresses that it was asked to connect to.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, *_ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")
        self.asked.append(f"{method} {target}")
        host, _, port = target.rpartition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        sink.close()


@asynccontextmanager
async def proxy_running() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listening:
        proxy.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield proxy


def through(server: FakeKubernetes, directory: Path, **cluster: Any) -> Connector:
    """A connector by a kubeconfig whose cluster has more fields."""
    file = server.kubeconfig(directory)
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["clusters"][0]["cluster"] |= cluster
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return connect(ClusterSettings(name="lab", kubeconfig=str(file)))


async def test_goes_through_the_proxy_of_the_kubeconfig(server: FakeKubernetes, tmp_path: Path) -> None:
    async with proxy_running() as proxy:
        collected = await through(server, tmp_path, **{"proxy-url": proxy.url}).collect()

    assert collected.nodes
    assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{server.port}"}


async def test_goes_through_the_proxy_of_the_environment(
    server: FakeKubernetes, live: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with proxy_running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("https_proxy", proxy.url)
        collected = await live().collect()

    assert collected.nodes
    assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{server.port}"}


async def test_goes_straight_where_the_environment_says_so(
    server: FakeKubernetes, live: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy_running() as proxy:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        collected = await live().collect()

    assert collected.nodes
    assert proxy.asked == []


async def test_says_that_the_proxy_is_not_there(server: FakeKubernetes, tmp_path: Path) -> None:
    async with proxy_running() as proxy:
        gone = proxy.url
    with pytest.raises(ClusterUnreachable, match="the proxy for"):
        await through(server, tmp_path, **{"proxy-url": gone}).collect()
    assert server.requests == []


async def test_verifies_the_name_that_the_kubeconfig_gives(tmp_path: Path) -> None:
    with FakeKubernetes(tls="other-host") as server:
        for item in small_cluster():
            server.state.put(item)
        named = through(server, tmp_path / "right", **{"tls-server-name": "kubernetes.example.com"})
        assert (await named.collect()).nodes

        asked = len(server.requests)
        wrong = through(server, tmp_path / "wrong", **{"tls-server-name": "kubernetes.example.org"})
        with pytest.raises(ClusterUnreachable, match="another host name"):
            await wrong.collect()
        assert len(server.requests) == asked


async def test_trusts_the_authority_in_a_file_and_no_other(server: FakeKubernetes, tmp_path: Path) -> None:
    server.service_account(tmp_path / "right")
    right = (tmp_path / "right" / "ca.crt").read_bytes()
    (tmp_path / "ca.crt").write_bytes(right)
    file = server.kubeconfig(tmp_path)
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    cluster = document["clusters"][0]["cluster"]
    del cluster["certificate-authority-data"]
    cluster["certificate-authority"] = "ca.crt"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    connector = connect(ClusterSettings(name="lab", kubeconfig=str(file)))
    assert (await connector.collect()).nodes

    with FakeKubernetes(tls="unknown-ca") as stranger:
        document["clusters"][0]["cluster"]["server"] = stranger.url
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        with pytest.raises(ClusterUnreachable, match="certificate"):
            await connector.collect()
        assert stranger.requests == []


async def test_takes_a_client_certificate_that_was_replaced(
    server: FakeKubernetes, live: Connect, tmp_path: Path
) -> None:
    server.kubeconfig(tmp_path / "next", auth="client-cert-files", user="admin")
    connector = live(auth="client-cert-files")
    await connector.collect()
    before = {request.user for request in server.requests}
    server.requests.clear()

    for name in ("client.crt", "client.key"):
        (tmp_path / "kube" / name).write_bytes((tmp_path / "next" / name).read_bytes())
    await connector.collect()

    assert (before, {request.user for request in server.requests}) == ({"reader"}, {"admin"})
