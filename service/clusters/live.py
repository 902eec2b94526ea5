"""The two connectors to a live API server: a kubeconfig context and the pod's own service account."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from service.clusters.collect import collect
from service.clusters.config import ClusterSettings, Source
from service.clusters.model import Collected
from service.clusters.transport import Transport
from service.clusters.wire import Decode, decode_json

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient


class Login(Protocol):
    """Where credentials come from."""

    async def client(self, refused: bool) -> "ApiClient":
        """A client with the credentials as they are now; ``refused``: those given before are not good."""
        ...


class LiveConnector:
    """Reads a cluster through its API server. Every collection has its own connections and fresh credentials.

    Args:
        settings: of the cluster; ``source`` says where the credentials are.
        env: environment for kubeconfig, credential plugins and the service's address.
        service_account: directory where the pod's service account is mounted.
        decode: wire format.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        env: Mapping[str, str] | None = None,
        service_account: Path | None = None,
        decode: Decode = decode_json,
    ) -> None:
        self._settings = settings
        self._env = os.environ if env is None else env
        self._service_account = service_account
        self._decode = decode
        self._login: Login | None = None

    @property
    def name(self) -> str:
        """The configured name of the cluster."""
        return self._settings.name

    @property
    def kind(self) -> Source:
        """``kubeconfig`` or ``in-cluster``."""
        return self._settings.source

    async def collect(self) -> Collected:
        """Read everything that rules need; see :class:`~service.clusters.model.Connector`."""
        if self._login is None:
            # The official client takes about a second to import; the event loop goes on meanwhile.
            self._login = await asyncio.to_thread(self._open_login)
        transport = Transport(self.name, self._login.client, gzip=self._settings.gzip)
        try:
            return await collect(transport, self._settings, self._decode)
        finally:
            await transport.close()

    async def close(self) -> None:
        """Forget the login; connections are closed after every collection."""
        self._login = None

    def _open_login(self) -> Login:
        if self._settings.in_cluster:
            from service.clusters.incluster import SERVICE_ACCOUNT, InClusterLogin

            return InClusterLogin(self._settings, self._env, self._service_account or SERVICE_ACCOUNT)
        from service.clusters.kubeconfig import KubeconfigLogin

        return KubeconfigLogin(self._settings, self._env)
