"""Credentials per registry, in Docker's format."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

import msgspec

from service.errors import ConfigInvalid
from service.registry.names import known_name
from service.registry.settings import RegistrySettings


class Credential(msgspec.Struct, frozen=True):
    """A user and a password; neither appears in its ``repr``."""

    username: str
    password: str

    def __repr__(self) -> str:
        return "Credential(***)"

    @property
    def basic(self) -> str:
        """The value of an Authorization header (RFC 7617)."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


class _Entry(msgspec.Struct):
    auth: str | None = None
    username: str | None = None
    password: str | None = None


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _Entry] = {}


class Credentials:
    """Credentials by registry host and, where an entry has one, path of the repository."""

    def __init__(self, entries: Mapping[tuple[str, str], Credential]) -> None:
        self._entries = dict(entries)

    @classmethod
    def of(cls, settings: RegistrySettings) -> "Credentials":
        """Those of the file, overlaid by those of the variable.

        Raises:
            ConfigInvalid: names the source, never a value.
        """
        entries: dict[tuple[str, str], Credential] = {}
        if settings.docker_config:
            path = Path(settings.docker_config).expanduser()
            try:
                text = path.read_bytes()
            except OSError as error:
                raise ConfigInvalid(str(path), None, f"the file cannot be read: {error.strerror}") from error
            entries.update(_read(text, str(path)))
        if settings.auth:
            entries.update(_read(settings.auth.encode(), "registry.auth (GPU_ADVISOR_REGISTRY_AUTH)"))
        return cls(entries)

    def find(self, host: str, repository: str = "") -> Credential | None:
        """The credential of a registry; the longest path that begins ``repository`` wins."""
        fitting = [
            (len(path), credential)
            for (known, path), credential in self._entries.items()
            if known == known_name(host) and (not path or f"{repository}/".startswith(f"{path}/"))
        ]
        return max(fitting, key=lambda item: item[0])[1] if fitting else None


def _read(text: bytes, source: str) -> dict[tuple[str, str], Credential]:
    try:
        config = msgspec.json.decode(text, type=_DockerConfig)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        # the decoder's own words name a position, never a value
        problem = 'expected {"auths": {"nvcr.io": {"auth": "..."}}} as Docker writes it'
        raise ConfigInvalid(source, None, problem) from error
    found: dict[tuple[str, str], Credential] = {}
    for key, entry in config.auths.items():
        credential = _credential(entry, source, key)
        if credential is not None:
            found[_key(key)] = credential
    return found


def _key(text: str) -> tuple[str, str]:
    bare = text.partition("://")[2] or text
    host, _, path = bare.partition("/")
    path = path.strip("/")
    # Docker Hub's entry is called https://index.docker.io/v1/; /v1 and /v2 are the API, not a repository
    return known_name(host), "" if path in ("v1", "v2") else path


def _credential(entry: _Entry, source: str, key: str) -> Credential | None:
    if entry.username and entry.password:
        return Credential(entry.username, entry.password)
    if not entry.auth:
        return None
    try:
        username, separator, password = base64.b64decode(entry.auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeError) as error:
        problem = f"the auth of {key!r} is not base64 of user:password"
        raise ConfigInvalid(source, None, problem) from error
    if not separator:
        raise ConfigInvalid(source, None, f"the auth of {key!r} is not base64 of user:password")
    return Credential(username, password.rstrip("\0"))
