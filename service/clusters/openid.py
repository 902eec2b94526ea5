"""Renewing an OpenID Connect login of a kubeconfig (``auth-provider: oidc``), as client-go's plugin does.

The official client would do it without verifying the issuer's certificate, giving refresh token and client secret to
whoever answers. Here the issuer must answer over TLS that ``idp-certificate-authority`` (or ``-data``) vouches for, or
the system's authorities where the kubeconfig names none.

The kubeconfig is never written. Some issuers make a refresh token void when they give the next one: this process keeps
the next one, yet the person whose login it was must log in again. For such issuers gpu-advisor needs its own login.

Sources: kubernetes/client-go plugin/pkg/client/auth/oidc; OpenID Connect Discovery 1.0, section 4; RFC 6749, section 6.
"""

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

TIMEOUT_SECONDS = 10.0


class RenewalFailed(Exception):
    """The issuer gave no new token; the message says why and holds no secret."""


class Tokens(msgspec.Struct, frozen=True):
    """What the issuer gives."""

    id_token: str | None = None
    refresh_token: str | None = None


class _Discovery(msgspec.Struct):
    token_endpoint: str


class _Refusal(msgspec.Struct):
    error: str = ""
    error_description: str = ""


async def renew(config: Mapping[str, Any], refresh_token: str, directory: Path) -> Tokens:
    """A new id-token, and the refresh token to use next.

    Args:
        config: ``auth-provider.config`` of the kubeconfig.
        refresh_token: that in it, or the one that came with the last renewal.
        directory: of the kubeconfig; a relative path of a certificate authority starts there.

    Raises:
        RenewalFailed: the issuer cannot be reached or verified, or refuses.
        OSError, ValueError: the certificate authority in the configuration cannot be read.
    """
    import httpx

    issuer = str(config.get("idp-issuer-url") or "").rstrip("/")
    _demand_tls("idp-issuer-url", issuer)
    context = _trust(config, directory)
    try:
        async with httpx.AsyncClient(verify=context, timeout=TIMEOUT_SECONDS) as client:
            found = await client.get(f"{issuer}/.well-known/openid-configuration")
            if found.status_code != 200:
                raise RenewalFailed(f"{issuer} answered {found.status_code} when asked for its OpenID configuration")
            endpoint = msgspec.json.decode(found.content, type=_Discovery).token_endpoint
            _demand_tls("the token_endpoint of the issuer", endpoint)
            answer = await _ask(client, endpoint, config, refresh_token)
            given = msgspec.json.decode(answer.content, type=Tokens) if answer.status_code == 200 else None
    except httpx.HTTPError as error:
        raise RenewalFailed(f"{issuer} cannot be asked: {str(error) or type(error).__name__}") from error
    except msgspec.DecodeError as error:
        raise RenewalFailed(f"{issuer} does not answer like an OpenID Connect issuer: {error}") from None
    if given is None:
        raise RenewalFailed(f"{issuer} refused to renew it: {_reason(answer.status_code, answer.content)}")
    if not given.id_token:
        raise RenewalFailed(f"{issuer} gave no id_token; log in with the scope openid")
    return Tokens(given.id_token, given.refresh_token or refresh_token)


async def _ask(client: Any, endpoint: str, config: Mapping[str, Any], refresh_token: str) -> Any:
    """Prove who the client is by header, then in the body: issuers take the one or the other (as Go's oauth2 does)."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    name, secret = str(config.get("client-id") or ""), str(config.get("client-secret") or "")
    if secret:
        answer = await client.post(endpoint, data=form, auth=(name, secret))
        if answer.status_code == 200:
            return answer
        form["client_secret"] = secret
    return await client.post(endpoint, data=form | {"client_id": name})


def _trust(config: Mapping[str, Any], directory: Path) -> ssl.SSLContext:
    data = config.get("idp-certificate-authority-data")
    path = config.get("idp-certificate-authority")
    if data:
        return ssl.create_default_context(cadata=base64.b64decode(data).decode("ascii"))
    return ssl.create_default_context(cafile=str(directory / path) if path else None)


def _demand_tls(what: str, url: str) -> None:
    if not url.startswith("https://"):
        raise RenewalFailed(f"{what} is {url!r}; it must begin with https://, since secrets are sent there")


def _reason(status: int, body: bytes) -> str:
    try:
        said = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:
        return str(status)
    return ": ".join(filter(None, (str(status), said.error, said.error_description)))[:300]
