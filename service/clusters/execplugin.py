"""Credential plugins: the ``exec`` entry of a kubeconfig user.

Protocol: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins

The official client runs plugins too, but logs a failure and goes on without credentials, so that people see a
misleading "Unauthorized"; it also lets a plugin wait for a terminal for ever. This one says what the plugin said.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecFailed(Exception):
    """The plugin gave no credentials; the message says why and, where the kubeconfig has it, how to install it."""


class ExecEnv(msgspec.Struct):
    """A variable for the plugin."""

    name: str
    value: str


class ExecEntry(msgspec.Struct, rename="camel"):
    """``users[].user.exec``."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class Credentials(msgspec.Struct, rename="camel"):
    """``status`` of an ExecCredential: a token, or a certificate with its key (PEM)."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: Credentials | None = None


async def run(
    entry: Mapping[str, Any], *, directory: Path, cluster: Mapping[str, Any], env: Mapping[str, str]
) -> Credentials:
    """Run the plugin and give what it printed.

    Args:
        entry: the ``exec`` mapping of the kubeconfig.
        directory: of the kubeconfig; a relative command with a slash starts there.
        cluster: the cluster's mapping of the kubeconfig, given on when the entry asks for it.
        env: environment that the plugin's own variables are added to.

    Raises:
        ExecFailed: it cannot be started, failed, printed something else, or needs a terminal.
    """
    try:
        plugin = msgspec.convert(entry, ExecEntry)
    except msgspec.ValidationError as error:
        raise ExecFailed(f"the exec entry is not valid: {error}") from error
    if plugin.api_version not in API_VERSIONS:
        raise ExecFailed(
            f"the exec entry has apiVersion {plugin.api_version!r}; known are {' and '.join(API_VERSIONS)}"
        )
    if plugin.interactive_mode == "Always":
        raise ExecFailed(f"{plugin.command} always needs a terminal (interactiveMode: Always)")
    command = plugin.command
    if os.sep in command and not Path(command).is_absolute():
        command = str(directory / command)
    output = await _output(plugin, command, _environment(plugin, cluster, env))
    return _credentials(plugin, output)


def _environment(plugin: ExecEntry, cluster: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
        spec["cluster"] = {key: cluster[key] for key in known if key in cluster}
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    own = {variable.name: variable.value for variable in plugin.env or ()}
    return {**env, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


async def _output(plugin: ExecEntry, command: str, environment: dict[str, str]) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *(plugin.args or ()),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f". {plugin.install_hint.strip()}" if plugin.install_hint else ""
        raise ExecFailed(f"{plugin.command} cannot be started: {error.strerror}{hint}") from error
    try:
        output, complaint = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        said = " ".join(complaint.decode("utf-8", "replace").split())[-500:]
        raise ExecFailed(f"{plugin.command} failed with exit code {process.returncode}: {said or 'it said nothing'}")
    return output


def _credentials(plugin: ExecEntry, output: bytes) -> Credentials:
    try:
        printed = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        # The output may hold a token, so none of it is shown.
        raise ExecFailed(f"{plugin.command} did not print an ExecCredential: {error}") from None
    if printed.kind != "ExecCredential" or printed.api_version != plugin.api_version:
        raise ExecFailed(
            f"{plugin.command} printed {printed.kind} of {printed.api_version}; "
            f"asked for was ExecCredential of {plugin.api_version}"
        )
    status = printed.status or Credentials()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ExecFailed(f"{plugin.command} printed only one of clientCertificateData and clientKeyData")
    if not status.token and not status.client_certificate_data:
        raise ExecFailed(f"{plugin.command} printed neither a token nor a client certificate")
    return status
