"""What a client of the stand-in API server gets from its administrator: certificates, kubeconfig, service account."""

import base64
import datetime
import functools
import json
import ssl
import stat
import sys
from pathlib import Path
from typing import Any, Literal

import trustme
import yaml

Tls = Literal["good", "off", "other-host", "expired", "unknown-ca"]
Auth = Literal["token", "token-file", "client-cert", "client-cert-files", "exec", "exec-cert", "none"]

EXEC_API = "client.authentication.k8s.io/v1"
_PLUGIN = """#!{python}
import json, os, sys
open({log!r}, "a").write(os.environ.get("KUBERNETES_EXEC_INFO", "") + "\\n")
answer = open({answer!r}).read()
if not answer:
    sys.exit("the session has ended, run: cloud-login")
sys.stdout.write(answer)
"""


@functools.cache
def _authority() -> trustme.CA:
    return trustme.CA(organization_name="Cluster CA")


@functools.cache
def _client_certificate(user: str) -> trustme.LeafCert:
    return _authority().issue_cert(f"{user}@users.invalid", common_name=user)


def server_context(tls: Tls) -> ssl.SSLContext | None:
    """TLS of the server; client certificates are asked for, not demanded, as an API server does."""
    if tls == "off":
        return None
    authority = trustme.CA() if tls == "unknown-ca" else _authority()
    host = "kubernetes.example.com" if tls == "other-host" else "127.0.0.1"
    now = datetime.datetime.now(datetime.UTC)
    ended = now - datetime.timedelta(days=1) if tls == "expired" else None
    begun = now - datetime.timedelta(days=400) if tls == "expired" else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host, "localhost", not_before=begun, not_after=ended).configure_cert(context)
    _authority().configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def write_kubeconfig(
    directory: Path,
    url: str,
    *,
    auth: Auth,
    user: str,
    token: str,
    insecure: bool = False,
    trust: bool = True,
    context: str = "fake",
    user_extra: dict[str, Any] | None = None,
) -> Path:
    """Write ``directory/kubeconfig``.

    Args:
        directory: where it and the files it names go.
        url: of the server.
        auth: how the user proves who they are. ``exec`` runs a plugin that prints a token, ``exec-cert`` one that
            prints a client certificate; they print what is in ``plugin.json`` and log their calls in ``plugin.log``.
        user: name in certificates.
        token: for the ways that use one.
        insecure: ``insecure-skip-tls-verify``.
        trust: name the cluster's CA.
        context: name of the context.
        user_extra: more fields of the user.
    """
    directory.mkdir(parents=True, exist_ok=True)
    cluster: dict[str, Any] = {"server": url}
    if insecure:
        cluster["insecure-skip-tls-verify"] = True
    elif trust and url.startswith("https"):
        cluster["certificate-authority-data"] = _base64(_authority().cert_pem.bytes())
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "fake-cluster", "cluster": cluster}],
        "users": [{"name": user, "user": {**_user(directory, auth, user, token), **(user_extra or {})}}],
        "contexts": [{"name": context, "context": {"cluster": "fake-cluster", "user": user}}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def write_service_account(directory: Path, token: str) -> None:
    """What the kubelet mounts into a pod."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "token").write_text(token, encoding="utf-8")
    (directory / "ca.crt").write_bytes(_authority().cert_pem.bytes())
    (directory / "namespace").write_text("gpu-advisor", encoding="utf-8")


def write_exec_answer(directory: Path, status: dict[str, Any] | None) -> None:
    """What the credential plugin prints from now on; None makes it fail."""
    answer = "" if status is None else json.dumps({"apiVersion": EXEC_API, "kind": "ExecCredential", "status": status})
    (directory / "plugin.json").write_text(answer, encoding="utf-8")


def _user(directory: Path, auth: Auth, user: str, token: str) -> dict[str, Any]:
    certificate = _client_certificate(user)
    chain, key = certificate.cert_chain_pems[0].bytes(), certificate.private_key_pem.bytes()
    match auth:
        case "token":
            return {"token": token}
        case "token-file":
            (directory / "token").write_text(token + "\n", encoding="utf-8")
            return {"tokenFile": "token"}
        case "client-cert":
            return {"client-certificate-data": _base64(chain), "client-key-data": _base64(key)}
        case "client-cert-files":
            (directory / "client.crt").write_bytes(chain)
            (directory / "client.key").write_bytes(key)
            return {"client-certificate": "client.crt", "client-key": "client.key"}
        case "exec":
            return _exec(directory, {"token": token})
        case "exec-cert":
            return _exec(directory, {"clientCertificateData": chain.decode(), "clientKeyData": key.decode()})
        case "none":
            return {}


def _exec(directory: Path, status: dict[str, Any]) -> dict[str, Any]:
    plugin = directory / "plugin"
    log, answer = str(directory / "plugin.log"), str(directory / "plugin.json")
    plugin.write_text(_PLUGIN.format(python=sys.executable, log=log, answer=answer), encoding="utf-8")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    write_exec_answer(directory, status)
    return {
        "exec": {
            "apiVersion": EXEC_API,
            "command": "./plugin",
            "interactiveMode": "Never",
            "provideClusterInfo": True,
            "installHint": "install the cloud tools",
        }
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
