"""Renewing OpenID Connect logins, with an issuer on loopback over real TLS."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from service.errors import ClusterUnauthorized
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_config import Tls, server_context, write_service_account
from tests.service.clusters.conftest import Connect


class Issuer:
    """An OpenID Connect issuer.

    Attributes:
        forms: what was posted, with the ``Authorization`` header under its own name.
        answers: status and body of the next answers of the token endpoint; the last one stays.
        endpoint: what the discovery document names; None for its own.
    """

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.endpoint: str | None = None
        self.url = ""

    def document(self) -> bytes:
        """The discovery document."""
        return json.dumps({"issuer": self.url, "token_endpoint": self.endpoint or f"{self.url}/token"}).encode()


@contextmanager
def issuer_with(tls: Tls) -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/.well-known/openid-configuration"
            self._send(200 if found else 404, issuer.document() if found else b"{}")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {key: values[0] for key, values in parse_qs(body).items()}
            issuer.forms.append(form | {"Authorization": self.headers.get("Authorization", "")})
            status, answer = issuer.answers[0]
            if len(issuer.answers) > 1:
                del issuer.answers[0]
            self._send(status, json.dumps(answer).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that does not trust us hangs up

    with Server(("127.0.0.1", 0), Handler) as http:
        context = server_context(tls)
        assert context is not None
        http.socket = context.wrap_socket(http.socket, server_side=True)
        issuer.url = f"https://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield issuer
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuer_with("good") as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> str:
    """The certificate authority of issuers, as a kubeconfig has it inline."""
    write_service_account(tmp_path / "trusted", "unused")
    return base64.b64encode((tmp_path / "trusted" / "ca.crt").read_bytes()).decode()


def token(name: str, *, hours: float) -> str:
    moment = datetime.now(UTC) + timedelta(hours=hours)
    claims = base64.urlsafe_b64encode(json.dumps({"sub": name, "exp": moment.timestamp()}).encode()).decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{claims.rstrip('=')}.c2ln"


def provider(issuer: Issuer, authority: str, **changes: Any) -> dict[str, Any]:
    known = {
        "idp-issuer-url": issuer.url,
        "idp-certificate-authority-data": authority,
        "client-id": "kubernetes",
        "client-secret": "client-secret-0000",
        "id-token": token("old", hours=-1),
        "refresh-token": "refresh-0000",
    }
    config = {key: value for key, value in (known | changes).items() if value is not None}
    return {"auth": "none", "user_extra": {"auth-provider": {"name": "oidc", "config": config}}}


async def test_renews_a_login_that_is_over(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str
) -> None:
    new = token("new", hours=1)
    server.tokens[new] = "reader"
    issuer.answers = [(200, {"id_token": new})]
    connector = live(**provider(issuer, authority))

    assert (await connector.collect()).nodes
    assert (await connector.collect()).nodes

    assert len(issuer.forms) == 1  # the second collection uses the token while it lasts
    assert issuer.forms[0]["grant_type"] == "refresh_token"
    assert issuer.forms[0]["refresh_token"] == "refresh-0000"
    name_and_secret = base64.b64encode(b"kubernetes:client-secret-0000").decode()
    assert issuer.forms[0]["Authorization"] == f"Basic {name_and_secret}"


async def test_goes_on_with_the_refresh_token_that_came_last(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str
) -> None:
    first, second = token("first", hours=0.01), token("second", hours=1)
    server.tokens |= {first: "reader", second: "reader"}
    issuer.answers = [(200, {"id_token": first, "refresh_token": "refresh-0001"}), (200, {"id_token": second})]
    connector = live(**provider(issuer, authority))

    await connector.collect()
    await connector.collect()

    assert [form["refresh_token"] for form in issuer.forms] == ["refresh-0000", "refresh-0001"]


async def test_renews_a_login_that_the_server_does_not_take(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str
) -> None:
    new = token("new", hours=1)
    server.tokens[new] = "reader"
    issuer.answers = [(200, {"id_token": new})]

    collected = await live(**provider(issuer, authority, **{"id-token": token("revoked", hours=1)})).collect()

    assert collected.nodes
    assert len(issuer.forms) == 1


@pytest.mark.parametrize("secret", ["client-secret-0000", None], ids=["with a secret", "a public client"])
async def test_names_the_client_in_the_body_where_the_issuer_wants_that(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str, secret: str | None
) -> None:
    new = token("new", hours=1)
    server.tokens[new] = "reader"
    refused = [(401, {"error": "invalid_client"})] if secret else []
    issuer.answers = [*refused, (200, {"id_token": new})]

    await live(**provider(issuer, authority, **{"client-secret": secret})).collect()

    assert issuer.forms[-1]["client_id"] == "kubernetes"
    assert issuer.forms[-1].get("client_secret") == secret
    assert issuer.forms[-1]["Authorization"] == ""


async def test_a_certificate_authority_may_be_a_file_beside_the_kubeconfig(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str, tmp_path: Path
) -> None:
    new = token("new", hours=1)
    server.tokens[new] = "reader"
    issuer.answers = [(200, {"id_token": new})]
    (tmp_path / "kube").mkdir()
    (tmp_path / "kube" / "issuer.crt").write_bytes(base64.b64decode(authority))
    named = {"idp-certificate-authority-data": None, "idp-certificate-authority": "issuer.crt"}

    assert (await live(**provider(issuer, authority, **named)).collect()).nodes


@pytest.mark.parametrize("tls", ["unknown-ca", "other-host", "expired"])
async def test_gives_no_secret_to_an_issuer_that_it_cannot_verify(live: Connect, authority: str, tls: Tls) -> None:
    with issuer_with(tls) as impostor:
        impostor.answers = [(200, {"id_token": token("evil", hours=1)})]
        with pytest.raises(ClusterUnauthorized, match=r"could not be renewed.*certificate"):
            await live(**provider(impostor, authority)).collect()

        assert impostor.forms == []


async def test_does_not_trust_a_private_issuer_by_default(live: Connect, issuer: Issuer, authority: str) -> None:
    issuer.answers = [(200, {"id_token": token("new", hours=1)})]
    with pytest.raises(ClusterUnauthorized, match="certificate"):
        await live(**provider(issuer, authority, **{"idp-certificate-authority-data": None})).collect()
    assert issuer.forms == []


Spoil = Callable[[Issuer], dict[str, Any]]


def _refuses(issuer: Issuer) -> dict[str, Any]:
    issuer.answers = [(400, {"error": "invalid_grant", "error_description": "Token is not active"})]
    return {}


def _forgets(issuer: Issuer) -> dict[str, Any]:
    issuer.answers = [(200, {"access_token": "something else"})]
    return {}


def _sends_elsewhere(issuer: Issuer) -> dict[str, Any]:
    issuer.endpoint = "http://127.0.0.1:1/token"
    return {}


def _in_the_clear(issuer: Issuer) -> dict[str, Any]:
    return {"idp-issuer-url": issuer.url.replace("https", "http")}


def _without_refresh_token(issuer: Issuer) -> dict[str, Any]:
    return {"refresh-token": None}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_refuses, "invalid_grant: Token is not active"),
        (_forgets, "gave no id_token"),
        (_sends_elsewhere, "must begin with https"),
        (_in_the_clear, "must begin with https"),
        (_without_refresh_token, "is over and has no refresh-token"),
    ],
    ids=["refused", "no id_token", "endpoint without TLS", "issuer without TLS", "nothing to renew with"],
)
async def test_says_why_a_login_cannot_be_renewed(
    server: FakeKubernetes, live: Connect, issuer: Issuer, authority: str, spoil: Spoil, says: str
) -> None:
    changes = spoil(issuer)
    with pytest.raises(ClusterUnauthorized, match=says) as raised:
        await live(**provider(issuer, authority, **changes)).collect()

    assert server.requests == []
    assert "refresh-0000" not in str(raised.value)
    assert "client-secret-0000" not in str(raised.value)
