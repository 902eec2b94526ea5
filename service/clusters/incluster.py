# mypy: disable-error-code="no-untyped-call"
"""Credentials of the pod that gpu-advisor runs in: its service account.

Imports the official client, which takes about a second: import this module late.
"""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from service.clusters.client import build_client
from service.clusters.config import ClusterSettings
from service.errors import ConfigInvalid

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class InClusterLogin:
    """Reads the mounted service account.

    The kubelet replaces the token before it ends (by default after about 48 minutes); the client reads the file again
    once a minute, and every collection begins with a new client.

    Args:
        settings: of the cluster.
        env: for ``KUBERNETES_SERVICE_HOST`` and ``KUBERNETES_SERVICE_PORT``.
        directory: where the service account is mounted.
    """

    def __init__(self, settings: ClusterSettings, env: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> None:
        self._settings = settings
        self._env = env
        self._directory = directory

    async def client(self, refused: bool) -> ApiClient:
        """A client with the token as it is now.

        Raises:
            ConfigInvalid: not in a pod, or no service account is mounted.
        """
        return await asyncio.to_thread(self._client)

    def _client(self) -> ApiClient:
        loader = InClusterConfigLoader(
            token_filename=str(self._directory / "token"),
            cert_filename=str(self._directory / "ca.crt"),
            environ=self._env,
        )
        configuration: Any = Configuration()
        try:
            loader.load_and_set(configuration)
            refresh = configuration.refresh_api_key_hook

            def refresh_without_line_end(current: Any) -> None:
                refresh(current)
                current.refresh_api_key_hook = refresh_without_line_end
                current.api_key["BearerToken"] = current.api_key["BearerToken"].strip()

            configuration.refresh_api_key_hook = refresh_without_line_end
            return build_client(configuration, self._settings.max_parallel)
        except ssl.SSLError as error:
            raise self._invalid(f"ca.crt cannot be used: {error.reason or error}") from error
        except (ConfigException, OSError) as error:
            raise self._invalid(
                f"{error} gpu-advisor must run in a pod with a mounted service account (automountServiceAccountToken)"
            ) from error

    def _invalid(self, expected: str) -> ConfigInvalid:
        return ConfigInvalid(f"in-cluster configuration of {self._settings.name}", None, expected)
