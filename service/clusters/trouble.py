"""Connection trouble in plain words: what happened, where, and what to do."""

import errno
import ssl

import aiohttp

from service.errors import ClusterAnswerInvalid, ClusterTimeout, ClusterTrouble, ClusterUnreachable

_CHECK_SERVER = "Check that the server address is right and can be reached from here."
_CHECK_CA = "Check certificate-authority of this cluster in the kubeconfig, and that nothing on the way replaces TLS."

_CERTIFICATE = {  # X509_V_ERR_* of openssl/x509_vfy.h
    9: ("its certificate is not valid yet", "Check the clocks of this machine and of the API server."),
    10: ("its certificate has expired", "Renew the API server's certificate, and check the clock of this machine."),
    18: ("its certificate is self-signed and not trusted here", _CHECK_CA),
    19: ("its certificate chain ends in a root that is not trusted here", _CHECK_CA),
    20: ("its certificate is signed by a CA that is not trusted here", _CHECK_CA),
    21: ("its certificate cannot be verified with the CAs that are trusted here", _CHECK_CA),
    62: (
        "its certificate is for another host name",
        "Use a server address that the certificate names, or set tls-server-name.",
    ),
    64: (
        "its certificate is for another IP address",
        "Use a server address that the certificate names, or set tls-server-name.",
    ),
}

_SYSTEM = {
    errno.ECONNREFUSED: ("nothing listens there (connection refused)", _CHECK_SERVER),
    errno.EHOSTUNREACH: (
        "there is no route to that host",
        "Check network, VPN and firewall between here and the API server.",
    ),
    errno.ENETUNREACH: (
        "the network is unreachable",
        "Check network, VPN and firewall between here and the API server.",
    ),
    errno.ECONNRESET: ("the connection was reset", "Check firewall and load balancer between here and the API server."),
}


def connection_trouble(cluster: str, server: str, error: Exception) -> ClusterTrouble:
    """The typed error for an exception of the HTTP client.

    Args:
        cluster: its configured name.
        server: address of the API server.
        error: :class:`aiohttp.ClientError`, :class:`TimeoutError` or :class:`ssl.SSLError`.
    """
    at = f"the API server at {server}"
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ClusterTimeout(cluster, f"{at} takes no connection", _CHECK_SERVER)
        case TimeoutError():
            return ClusterTimeout(
                cluster,
                f"{at} stopped answering",
                "It may be overloaded; the next audit tries again, or raise timeout_seconds.",
            )
        case aiohttp.ClientProxyConnectionError():
            detail = f"the proxy for {server} cannot be reached: {error.os_error.strerror or error.os_error}"
            return ClusterUnreachable(
                cluster, detail, "Check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY."
            )
        case aiohttp.ClientHttpProxyError():
            detail = f"the proxy for {server} refused the connection: {error.status} {error.message}"
            return ClusterUnreachable(
                cluster, detail, "Check proxy-url in the kubeconfig, or HTTPS_PROXY and NO_PROXY."
            )
        case aiohttp.ClientConnectorDNSError():
            return ClusterUnreachable(cluster, f"{at} has a name that cannot be resolved", _CHECK_SERVER)
        case aiohttp.ClientPayloadError():
            return ClusterAnswerInvalid(
                cluster,
                f"{at} broke off in the middle of an answer",
                "The next audit tries again; if it stays, look at the proxies between.",
            )
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ClusterUnreachable(
                cluster, f"{server!r} is not a server address", "Mend `server` of this cluster in the kubeconfig."
            )
        case _:
            detail, remedy = _cause(error)
            return ClusterUnreachable(cluster, f"{at} cannot be used: {detail}", remedy)


def _cause(error: Exception) -> tuple[str, str]:
    certificate = _certificate_error(error)
    if certificate is not None:
        known = _CERTIFICATE.get(certificate.verify_code)
        return known or (f"its certificate is not accepted ({certificate.verify_message})", _CHECK_CA)
    tls = error.os_error if isinstance(error, aiohttp.ClientConnectorSSLError) else error
    if isinstance(tls, ssl.SSLError):
        reason = (tls.reason or str(tls)).replace("_", " ").lower()
        if "wrong version number" in reason or "record layer" in reason:
            return "it does not speak TLS there", "Check the port, and whether `server` should begin with http://."
        if "certificate required" in reason or "bad certificate" in reason or "unknown ca" in reason:
            return (
                f"it does not accept our client certificate ({reason})",
                "Renew the client certificate in the kubeconfig.",
            )
        return f"TLS failed ({reason})", _CHECK_CA
    number = getattr(error, "errno", None)
    if number in _SYSTEM:
        return _SYSTEM[number]
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it hung up without an answer", _CHECK_SERVER
    return getattr(error, "strerror", None) or str(error) or type(error).__name__, _CHECK_SERVER


def _certificate_error(error: Exception) -> ssl.SSLCertVerificationError | None:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    return error if isinstance(error, ssl.SSLCertVerificationError) else None
