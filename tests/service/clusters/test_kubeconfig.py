"""Credentials of a kubeconfig, and what is said when they do not work."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from service.clusters import ClusterSettings, connect
from service.clusters.live import LiveConnector
from service.errors import ClusterUnauthorized, ClusterUnreachable, ConfigInvalid
from tests.fakes import kubernetes_config
from tests.fakes.kubernetes import FakeKubernetes
from tests.service.clusters.conftest import Connect, kubeconfig_connector

TOKEN = "reader-token-0000"


@pytest.mark.parametrize("auth", ["token", "token-file", "client-cert", "client-cert-files", "exec", "exec-cert"])
async def test_proves_who_it_is(server: FakeKubernetes, live: Connect, auth: str) -> None:
    collected = await live(auth=auth).collect()
    assert len(collected.nodes) == 2
    assert {request.user for request in server.requests} == {"reader"}


async def test_without_credentials_says_unauthorized(live: Connect) -> None:
    with pytest.raises(ClusterUnauthorized, match="does not accept the credentials: Unauthorized"):
        await live(auth="none").collect()


async def test_a_token_file_that_rotates_is_read_again(server: FakeKubernetes, live: Connect, tmp_path: Path) -> None:
    connector = live(auth="token-file")
    await connector.collect()
    server.tokens = {"next-token-0001": "reader"}
    (tmp_path / "kube/token").write_text("next-token-0001\n", encoding="utf-8")
    assert len((await connector.collect()).nodes) == 2


async def test_a_token_that_ends_during_a_collection_is_read_again(
    server: FakeKubernetes, live: Connect, tmp_path: Path
) -> None:
    connector = live(auth="exec", page_size=1)
    server.faults.add("nodes", status=401, reason="Unauthorized", message="Unauthorized", only_continued=True, times=1)
    assert len((await connector.collect()).nodes) == 2
    calls = (tmp_path / "kube/plugin.log").read_text(encoding="utf-8").splitlines()
    assert len(calls) == 2


async def test_a_refused_login_is_tried_again_only_once(server: FakeKubernetes, live: Connect, tmp_path: Path) -> None:
    connector = live(auth="exec")
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    kubernetes_config.write_exec_answer(tmp_path / "kube", {"token": TOKEN, "expirationTimestamp": ends})
    server.tokens.clear()
    with pytest.raises(ClusterUnauthorized):
        await connector.collect()
    assert len((tmp_path / "kube/plugin.log").read_text(encoding="utf-8").splitlines()) == 2
    assert len(server.requests) == 2


@pytest.mark.parametrize(("lasts", "calls"), [(timedelta(hours=1), 1), (timedelta(seconds=30), 2)])
async def test_runs_the_plugin_again_when_its_credentials_end(
    live: Connect, tmp_path: Path, lasts: timedelta, calls: int
) -> None:
    connector = live(auth="exec")
    ends = (datetime.now(UTC) + lasts).isoformat()
    kubernetes_config.write_exec_answer(tmp_path / "kube", {"token": TOKEN, "expirationTimestamp": ends})
    await connector.collect()
    await connector.collect()
    assert len((tmp_path / "kube/plugin.log").read_text(encoding="utf-8").splitlines()) == calls


async def test_tells_the_plugin_of_the_cluster_and_that_nobody_is_there(
    server: FakeKubernetes, live: Connect, tmp_path: Path
) -> None:
    await live(auth="exec").collect()
    [call] = (tmp_path / "kube/plugin.log").read_text(encoding="utf-8").splitlines()
    info = msgspec.json.decode(call)
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["server"] == server.url
    assert "certificate-authority-data" in info["spec"]["cluster"]


Break = Callable[[Path, dict[str, Any]], None]


def _missing_command(_: Path, entry: dict[str, Any]) -> None:
    entry["command"] = "cloud-login-that-is-not-installed"


def _session_over(directory: Path, _: dict[str, Any]) -> None:
    kubernetes_config.write_exec_answer(directory, None)


def _no_credential(directory: Path, _: dict[str, Any]) -> None:
    (directory / "plugin.json").write_text(f'{{"token": "{TOKEN}"', encoding="utf-8")


def _wrong_version(_: Path, entry: dict[str, Any]) -> None:
    entry["apiVersion"] = "client.authentication.k8s.io/v1beta1"


def _old_version(_: Path, entry: dict[str, Any]) -> None:
    entry["apiVersion"] = "client.authentication.k8s.io/v1alpha1"


def _half_certificate(directory: Path, _: dict[str, Any]) -> None:
    kubernetes_config.write_exec_answer(directory, {"clientCertificateData": "x"})


def _nothing(directory: Path, _: dict[str, Any]) -> None:
    kubernetes_config.write_exec_answer(directory, {})


def _terminal(_: Path, entry: dict[str, Any]) -> None:
    entry["interactiveMode"] = "Always"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_missing_command, "cannot be started: No such file or directory. install the cloud tools"),
        (_session_over, "failed with exit code 1: the session has ended, run: cloud-login"),
        (_no_credential, "did not print an ExecCredential"),
        (_wrong_version, "asked for was ExecCredential of client.authentication.k8s.io/v1beta1"),
        (_old_version, "known are client.authentication.k8s.io/v1 and"),
        (_half_certificate, "only one of clientCertificateData and clientKeyData"),
        (_nothing, "neither a token nor a client certificate"),
        (_terminal, "always needs a terminal"),
    ],
)
async def test_says_what_the_credential_plugin_said(
    server: FakeKubernetes, tmp_path: Path, spoil: Break, says: str
) -> None:
    file = server.kubeconfig(tmp_path, auth="exec")
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    spoil(tmp_path, config["users"][0]["user"]["exec"])
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(ClusterUnauthorized) as caught:
        await connect(ClusterSettings(name="lab", kubeconfig=str(file))).collect()
    assert says in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert server.requests == []


async def test_a_plugin_that_hangs_is_stopped(server: FakeKubernetes, tmp_path: Path) -> None:
    file = server.kubeconfig(tmp_path, auth="exec")
    pid = tmp_path / "pid"
    (tmp_path / "plugin").write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 600\n", encoding="utf-8")
    connector = connect(ClusterSettings(name="lab", kubeconfig=str(file), timeout_seconds=1))
    with pytest.raises(Exception, match="within 1 seconds"):
        await connector.collect()
    assert not Path(f"/proc/{pid.read_text(encoding='utf-8').strip()}").exists()


async def test_tls_is_verified_unless_the_kubeconfig_says_otherwise(tmp_path: Path) -> None:
    with FakeKubernetes(tls="unknown-ca") as server:
        with pytest.raises(ClusterUnreachable, match="not trusted here"):
            await kubeconfig_connector(server, tmp_path).collect()
        with pytest.raises(ClusterUnreachable, match="not trusted here"):
            await kubeconfig_connector(server, tmp_path, trust=False).collect()
        assert server.requests == []
        assert (await kubeconfig_connector(server, tmp_path, insecure=True).collect()).nodes == ()


async def test_reads_as_the_user_that_it_impersonates(server: FakeKubernetes, live: Connect) -> None:
    await live(user_extra={"as": "auditor"}).collect()
    assert {request.user for request in server.requests} == {"auditor"}


async def test_refuses_to_read_with_more_rights_than_meant(live: Connect) -> None:
    with pytest.raises(ConfigInvalid, match="as-groups"):
        await live(user_extra={"as": "auditor", "as-groups": ["readers"]}).collect()


def _jwt(expires: float) -> str:
    import base64

    claims = base64.urlsafe_b64encode(msgspec.json.encode({"sub": "ÿÿ??>>", "exp": expires})).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{claims}.c2ln"


async def test_uses_an_openid_login_while_it_lasts(server: FakeKubernetes, live: Connect) -> None:
    token = _jwt((datetime.now(UTC) + timedelta(hours=1)).timestamp())
    server.tokens[token] = "reader"
    provider = {"name": "oidc", "config": {"id-token": token}}
    assert (await live(auth="none", user_extra={"auth-provider": provider}).collect()).nodes


def _one_context(cluster: str, user: str = "user: {}") -> str:
    return (
        "contexts: [{name: fake, context: {cluster: a, user: b}}]\n"
        f"clusters: [{{name: a, {cluster}}}]\nusers: [{{name: b, {user}}}]\n"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a valid kubeconfig"),
        ("[1, 2]", "not a valid kubeconfig"),
        ("contexts: [", "while parsing"),
        ("apiVersion: v1\nkind: Config\n", "current-context"),
        ("current-context: a\ncontexts: []\nclusters: []\nusers: []\n", "Expected object with name fake"),
        (_one_context("cluster: {}"), "is not a URL"),
        (_one_context("cluster: {server: 'https://127.0.0.1:1', certificate-authority: gone.crt}"), "gone.crt"),
        (
            _one_context("cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: bm90IGEgY2VydA==}"),
            "certificate or key in it cannot be used",
        ),
        (_one_context("cluster: {server: 'https://127.0.0.1:1'}", "user: {tokenFile: gone}"), "gone"),
    ],
)
async def test_says_what_is_wrong_with_the_file(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "config"
    file.write_text(content, encoding="utf-8")
    context = None if "kind: Config" in content else "fake"
    with pytest.raises(ConfigInvalid) as caught:
        await connect(ClusterSettings(name="lab", kubeconfig=str(file), context=context)).collect()
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


async def test_says_that_the_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="no such file"):
        await connect(ClusterSettings(name="lab", kubeconfig=str(tmp_path / "none"))).collect()


async def test_finds_the_file_as_kubectl_does(server: FakeKubernetes, tmp_path: Path) -> None:
    file = server.kubeconfig(tmp_path)
    env = {"KUBECONFIG": f"{tmp_path / 'none'}:{file}"}
    assert (await LiveConnector(ClusterSettings(name="lab"), env=env).collect()).nodes


async def test_notices_that_the_file_has_changed(server: FakeKubernetes, live: Connect, tmp_path: Path) -> None:
    connector = live()
    await connector.collect()
    server.tokens = {"quite-another-token-0002": "reader"}
    server.kubeconfig(tmp_path / "kube")
    assert (await connector.collect()).nodes
