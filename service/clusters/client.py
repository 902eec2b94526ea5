# mypy: disable-error-code="no-untyped-call"
"""The official client, set up for reading: one session per collection.

Imports the official client, which takes about a second: import this module late.
"""

from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject


class _Connector(aiohttp.TCPConnector):
    """Drops a connection that cannot be used again at once.

    Otherwise a request that was given up (deadline, broken answer) leaves a TLS goodbye behind that waits for the
    server for up to 30 seconds, past the end of the collection and maybe of the event loop.
    """

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if should_close:
            protocol.abort()
        super()._release(key, protocol, should_close=should_close)


class _RestClient(RESTClientObject):
    """The client's HTTP part with our connector; this is the hook it has for that."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return _Connector(limit=self.maxsize, ssl=self.ssl_context)


def build_client(configuration: Configuration, max_parallel: int) -> ApiClient:
    """A client for ``configuration``, which holds server, CA and credentials.

    Raises:
        ssl.SSLError, OSError: a certificate or key cannot be used.
    """
    configuration.connection_pool_maxsize = max_parallel + 2
    # Chain and host name are verified all the same. Since Python 3.13 OpenSSL's "strict" mode is the default, which
    # turns away the CAs of many clusters for a missing extension that kubectl does not ask for.
    configuration.disable_strict_ssl_verification = True
    client = ApiClient(configuration)
    client.rest_client = _RestClient(configuration)
    client.user_agent = "gpu-advisor"
    return client
