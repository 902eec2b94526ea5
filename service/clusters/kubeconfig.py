# mypy: disable-error-code="no-untyped-call"
"""Credentials of a kubeconfig context, read by the official client; what it gets wrong or leaves out is mended here.

Imports the official client, which takes about a second: import this module late.
"""

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import ConfigNode, FileOrData, KubeConfigLoader, KubeConfigMerger

from service.clusters import execplugin, openid
from service.clusters.client import build_client
from service.clusters.config import ClusterSettings
from service.errors import ClusterUnauthorized, ConfigInvalid

EXPIRY_MARGIN = timedelta(minutes=2)
"""Credentials that end sooner than this are renewed before a collection rather than in the middle of it."""


class LoginExpired(Exception):
    """The login stored in the kubeconfig is over and only a person can renew it."""


class _Loader(KubeConfigLoader):
    """The client's loader, with the gaps closed that matter to an unattended service."""

    _user: Any
    _cluster: Any

    def __init__(self, config: Any, context: str | None, env: Mapping[str, str]) -> None:
        super().__init__(config_dict=config, active_context=context, config_base_path=None)
        self._env = env
        self._exec_expires: datetime | None = None
        self._openid: openid.Tokens | None = None
        self._openid_refused = False
        if self._user is None:  # the client fails on a context without a user
            self._user = ConfigNode("user", {}, self._cluster.path)

    @property
    def user(self) -> Mapping[str, Any]:
        """The ``user`` mapping of the context."""
        return self._user.value or {}

    def forget_credentials(self) -> None:
        """Run the plugin, and renew the login where that can be done, also if what they gave should still be good."""
        self._exec_expires = None
        config = (self.user.get("auth-provider") or {}).get("config") or {}
        self._openid_refused = bool(self._openid or config.get("refresh-token"))

    async def load_from_exec_plugin(self) -> bool:
        """Run the plugin, unless what it gave last time is still good."""
        if self._exec_expires is not None and datetime.now(UTC) < self._exec_expires - EXPIRY_MARGIN:
            return True
        directory = Path(self._get_base_path(self._user.path))
        given = await execplugin.run(
            self.user["exec"], directory=directory, cluster=self._cluster_for_plugin(directory), env=self._env
        )
        self._exec_expires = given.expiration_timestamp
        if given.token:
            self.token = f"Bearer {given.token}"
        if given.client_certificate_data:
            files = {"clientCertificateData": given.client_certificate_data, "clientKeyData": given.client_key_data}
            self.cert_file, self.key_file = (
                FileOrData(files, None, data_key_name=key, base64_file_content=False).as_file() for key in files
            )
        return True

    async def _load_oid_token(self) -> str:
        """The id-token while it lasts, then a renewed one."""
        stored = self.user["auth-provider"].get("config") or {}
        held = self._openid or openid.Tokens(stored.get("id-token"), stored.get("refresh-token"))
        if self._openid_refused or not held.id_token or _jwt_expiry(held.id_token) <= datetime.now(UTC) + EXPIRY_MARGIN:
            if not held.refresh_token:
                raise LoginExpired("the OpenID Connect login stored in the kubeconfig is over and has no refresh-token")
            held = await openid.renew(stored, held.refresh_token, Path(self._get_base_path(self._user.path)))
            self._openid, self._openid_refused = held, False
        self.token = f"Bearer {held.id_token}"
        return self.token

    def _load_user_token(self) -> bool:
        """tokenFile before token, as kubectl has it, and without the line end that files have."""
        if self.user.get("tokenFile"):
            path = Path(self._get_base_path(self._user.path)) / self.user["tokenFile"]
            token = path.read_text(encoding="utf-8").strip()
        else:
            token = str(self.user.get("token") or "").strip()
        if token:
            self.token = f"Bearer {token}"
        return bool(token)

    def _cluster_for_plugin(self, directory: Path) -> Mapping[str, Any]:
        cluster = dict(self._cluster.value)
        authority = cluster.get("certificate-authority")
        if authority and "certificate-authority-data" not in cluster:
            cluster["certificate-authority-data"] = base64.b64encode((directory / authority).read_bytes()).decode()
        for extension in cluster.get("extensions") or ():
            if extension.get("name") == "client.authentication.k8s.io/exec":
                cluster["config"] = extension.get("extension")
        return cluster


class KubeconfigLogin:
    """Reads one context of a kubeconfig; again whenever the file has changed.

    Args:
        settings: names file and context.
        env: for ``KUBECONFIG``, ``HOME`` and credential plugins.
    """

    def __init__(self, settings: ClusterSettings, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._env = env
        self.paths = settings.kubeconfig or env.get("KUBECONFIG") or str(Path.home() / ".kube/config")
        self._loaded: tuple[Any, _Loader] | None = None

    async def client(self, refused: bool) -> ApiClient:
        """A client with the credentials as they are now; ``refused``: those given before are not good.

        Raises:
            ConfigInvalid: file, context, certificate or key cannot be used.
            ClusterUnauthorized: the credential plugin failed, or the login is over.
        """
        try:
            loader = await asyncio.to_thread(self._loader)
            if refused:
                loader.forget_credentials()
            configuration = Configuration()
            await loader.load_and_set(configuration)
            client = await asyncio.to_thread(self._build, configuration)
        except execplugin.ExecFailed as error:
            raise self._unauthorized(
                f"no credentials: {error}",
                "Run the plugin by hand as the user that gpu-advisor runs as, and mend what it says.",
            ) from error
        except (LoginExpired, openid.RenewalFailed) as error:
            over = "the OpenID Connect login could not be renewed: " if isinstance(error, openid.RenewalFailed) else ""
            raise self._unauthorized(
                f"{over}{error}",
                "Log in again with kubectl, or use a credential plugin, which can renew a login by itself.",
            ) from error
        except ssl.SSLError as error:
            raise self._invalid(f"a certificate or key in it cannot be used: {error.reason or error}") from error
        except (ConfigException, yaml.YAMLError, OSError) as error:
            raise self._invalid(str(error)) from error
        except (binascii.Error, msgspec.DecodeError, ValueError, TypeError, AttributeError, KeyError) as error:
            # The client checks little of the file's shape itself.
            raise self._invalid(f"it is not a valid kubeconfig: {type(error).__name__}: {error}") from error
        self._impersonate(client, loader)
        return client

    def _loader(self) -> _Loader:
        paths = [Path(path).expanduser() for path in self.paths.split(os.pathsep) if path]
        present = [path for path in paths if path.exists()]
        if not present:
            raise self._invalid("there is no such file; name one with `kubeconfig` or set KUBECONFIG")
        signature = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in present]
        if self._loaded is None or self._loaded[0] != signature:
            merged = KubeConfigMerger(os.pathsep.join(map(str, present)))
            self._loaded = (signature, _Loader(merged.config, self._settings.context, self._env))
        return self._loaded[1]

    def _build(self, configuration: Configuration) -> ApiClient:
        if not str(configuration.host).startswith(("https://", "http://")):
            raise self._invalid(f"server {configuration.host!r} is not a URL that begins with https://")
        return build_client(configuration, self._settings.max_parallel)

    def _impersonate(self, client: ApiClient, loader: _Loader) -> None:
        """``as`` of the kubeconfig, which the client leaves out: without it more would be read than is meant to be."""
        if loader.user.get("as-groups") or loader.user.get("as-user-extra"):
            raise self._invalid(
                "as-groups and as-user-extra are not supported; impersonate a service account with `as`"
            )
        for key, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
            if loader.user.get(key):
                client.set_default_header(header, str(loader.user[key]))

    def _invalid(self, expected: str) -> ConfigInvalid:
        context = f" (context {self._settings.context})" if self._settings.context else ""
        return ConfigInvalid(f"kubeconfig {self.paths}{context}", None, expected)

    def _unauthorized(self, detail: str, remedy: str) -> ClusterUnauthorized:
        return ClusterUnauthorized(self._settings.name, detail, remedy)


def _jwt_expiry(token: str) -> datetime:
    """``exp`` of a JSON Web Token; the end of time when it has none."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ConfigException("the id-token of the auth-provider is not a JSON Web Token")
    claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    expires = claims.get("exp")
    return datetime.max.replace(tzinfo=UTC) if expires is None else datetime.fromtimestamp(expires, UTC)
