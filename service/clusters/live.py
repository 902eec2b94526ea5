"""The two connectors to a live API server: a kubeconfig context and the pod's own service account."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from service.clusters.collect import collect
from service.clusters.config import ClusterSettings, Source
from service.clusters.mirror import ClusterMirror
from service.clusters.model import Collected
from service.clusters.transport import Transport
from service.clusters.watch import Pace
from service.clusters.wire import Decode, decode

if TYPE_CHECKING:
    from kubernetes.aio.client import ApiClient


class Login(Protocol):
    """Where credentials come from."""

    async def client(self, refused: bool) -> "ApiClient":
        """A client with the credentials as they are now; ``refused``: those given before are not good."""
        ...


class LiveConnector:
    """Reads a cluster through its API server.

    A collection has its own connections and fresh credentials. Once it is told to :meth:`follow`, it keeps what it has
    read current, and collections cost no request.

    Args:
        settings: of the cluster; ``source`` says where the credentials are.
        env: environment for kubeconfig, credential plugins and the service's address.
        service_account: directory where the pod's service account is mounted.
        decode: wire format.
        pace: how often a followed cluster is asked.
        clock: times the answers of the server, for ``gzip: auto``.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        env: Mapping[str, str] | None = None,
        service_account: Path | None = None,
        decode: Decode = decode,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._settings = settings
        self._env = os.environ if env is None else env
        self._service_account = service_account
        self._decode = decode
        self._login: Login | None = None
        self._pace = pace
        self._clock = clock
        self._mirror: ClusterMirror | None = None

    @property
    def name(self) -> str:
        """The configured name of the cluster."""
        return self._settings.name

    @property
    def kind(self) -> Source:
        """``kubeconfig`` or ``in-cluster``."""
        return self._settings.source

    @property
    def notes(self) -> tuple[str, ...]:
        """What is less than it should be in following the cluster."""
        return self._mirror.notes if self._mirror is not None else ()

    async def collect(self) -> Collected:
        """Read everything that rules need; see :class:`~service.clusters.model.Connector`."""
        if self._mirror is not None:
            return await self._mirror.collect()
        if self._login is None:
            # The official client takes about a second to import; the event loop goes on meanwhile.
            self._login = await asyncio.to_thread(self._open_login, self._settings)
        transport = self._transport(self._login)
        try:
            return await collect(transport, self._settings, self._decode)
        finally:
            await transport.close()

    def follow(self) -> bool:
        """Keep the objects of the cluster current from now on; see :class:`~service.clusters.model.Followed`."""
        if self._settings.watch and self._mirror is None:
            self._mirror = ClusterMirror(self._settings, self._open_transport, self._decode, pace=self._pace)
            self._mirror.start()
        return self._mirror is not None

    async def changed(self) -> None:
        """Wait for a change that matters; for ever where the cluster is not followed."""
        await (self._mirror.changed() if self._mirror is not None else asyncio.Event().wait())

    async def close(self) -> None:
        """Stop following and forget the login; connections of a collection are closed after it."""
        mirror, self._mirror, self._login = self._mirror, None, None
        if mirror is not None:
            await mirror.close()

    async def _open_transport(self) -> Transport:
        seats = self._settings.max_watches + self._settings.max_parallel
        login = await asyncio.to_thread(self._open_login, msgspec.structs.replace(self._settings, max_parallel=seats))
        return self._transport(login)

    def _transport(self, login: Login) -> Transport:
        return Transport(self.name, login.client, gzip=self._settings.gzip, clock=self._clock)

    def _open_login(self, settings: ClusterSettings) -> Login:
        if settings.in_cluster:
            from service.clusters.incluster import SERVICE_ACCOUNT, InClusterLogin

            return InClusterLogin(settings, self._env, self._service_account or SERVICE_ACCOUNT)
        from service.clusters.kubeconfig import KubeconfigLogin

        return KubeconfigLogin(settings, self._env)
