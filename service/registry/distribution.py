"""The OCI distribution protocol, as far as it takes to read the configuration of an image.

manifest (or index -> manifest of one architecture) -> configuration blob. A registry that wants a token says where to
get it (``WWW-Authenticate: Bearer``); without credentials an anonymous one is asked for. Digests are checked, so that
what is kept under a digest is what the digest says.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin

import httpx
import msgspec

from service.errors import RegistryTrouble
from service.registry.credentials import Credential, Credentials
from service.registry.exchange import Answer, Exchange, retry_after
from service.registry.names import DIGEST, DOCKER_HUB, Place, host_name, named_in, netloc_of
from service.registry.settings import RegistrySettings

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
CONFIG_TYPES = ("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")

DOCUMENT_BYTES = 4 * 1024**2
"""What registries must take for a manifest (OCI distribution 1.1), and far more than any real configuration has."""
TOKEN_BYTES = 256 * 1024
MAX_REDIRECTS = 4
_TOKEN_SECONDS = 60.0
"""Life of a token whose answer does not say it (distribution, token specification)."""
_TOKEN_MARGIN_SECONDS = 10.0

_TOKEN_SERVICES = {DOCKER_HUB: "auth.docker.io", "registry.gitlab.com": "gitlab.com"}
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_TOKEN = re.compile(r"[\x21-\x7e]+\Z")
_REDIRECTS = (301, 302, 303, 307, 308)

T = TypeVar("T")


class _Platform(msgspec.Struct):
    os: str | None = None
    architecture: str | None = None


class _Descriptor(msgspec.Struct, rename={"media_type": "mediaType"}):
    digest: str
    media_type: str = ""
    size: int = 0
    platform: _Platform | None = None


class _Manifest(msgspec.Struct, rename={"media_type": "mediaType"}):
    media_type: str | None = None
    config: _Descriptor | None = None
    manifests: list[_Descriptor] | None = None


class _TokenAnswer(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None


class Found(msgspec.Struct, frozen=True):
    """What was read.

    Attributes:
        digest: of the manifest or index that the reference points to.
        config: the image configuration as the registry keeps it.
    """

    digest: str
    config: Mapping[str, Any]


class Distribution:
    """Reads image configurations.

    Args:
        settings: which hosts may get credentials.
        credentials: per registry.
        exchange: sends the requests.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        settings: RegistrySettings,
        credentials: Credentials,
        exchange: Exchange,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._exchange = exchange
        self._clock = clock
        self._authorizations: dict[tuple[str, str], tuple[str, float]] = {}

    async def digest(self, place: Place) -> str | None:
        """The digest that a tag points to now; None when the registry does not say it. Docker Hub does not count this
        against its limit of pulls.

        Raises:
            RegistryTrouble: any reason.
        """
        path = f"manifests/{place.reference}"
        answer = await self._ask(place, "HEAD", path, (*INDEX_TYPES, *MANIFEST_TYPES))
        found = answer.headers.get("docker-content-digest", "")
        return found if DIGEST.match(found) else None

    async def read(self, place: Place, arch: str) -> Found:
        """The configuration of the image for Linux on ``arch``, or of the first for Linux when there is none for it.

        Raises:
            RegistryTrouble: any reason.
        """
        digest, manifest = await self._manifest(place, place.reference)
        inner = manifest
        if manifest.manifests is not None:
            chosen = _choose(manifest.manifests, arch)
            if chosen is None:
                raise RegistryTrouble("not-found", str(place), "its index holds no image for Linux")
            _, inner = await self._manifest(place, chosen.digest)
        return Found(digest, await self._config(place, inner.config))

    async def _manifest(self, place: Place, reference: str) -> tuple[str, _Manifest]:
        answer = await self._ask(place, "GET", f"manifests/{reference}", (*INDEX_TYPES, *MANIFEST_TYPES))
        digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        if DIGEST.match(reference) and digest != reference:
            raise RegistryTrouble("invalid", str(place), f"the manifest is not the one that {reference} names")
        manifest = _decoded(answer.body, _Manifest, place, "manifest")
        if manifest.manifests is None and manifest.config is None:
            raise RegistryTrouble("invalid", str(place), "neither an image manifest nor an index")
        return digest, manifest

    async def _config(self, place: Place, descriptor: _Descriptor | None) -> Mapping[str, Any]:
        if descriptor is None or descriptor.media_type not in CONFIG_TYPES or not DIGEST.match(descriptor.digest):
            raise RegistryTrouble("invalid", str(place), "not a container image")
        if descriptor.size > DOCUMENT_BYTES:
            raise RegistryTrouble("too-large", str(place), f"its configuration is larger than {DOCUMENT_BYTES} bytes")
        answer = await self._ask(place, "GET", f"blobs/{descriptor.digest}", ("*/*",))
        if f"sha256:{hashlib.sha256(answer.body).hexdigest()}" != descriptor.digest:
            raise RegistryTrouble("invalid", str(place), f"the blob is not the one that {descriptor.digest} names")
        return _decoded(answer.body, dict[str, Any], place, "configuration")

    # requests

    async def _ask(self, place: Place, method: str, path: str, accept: Sequence[str]) -> Answer:
        url = f"{place.base_url}/{place.repository}/{path}"
        authorization = self._known_authorization(place)
        answer = await self._send(method, url, accept, authorization)
        if answer.status == 401:
            authorization = await self._authorize(place, answer.headers)
            answer = await self._send(method, url, accept, authorization)
        for _ in range(MAX_REDIRECTS):
            if answer.status not in _REDIRECTS:
                break
            target = _target(url, answer.headers.get("location", ""), place)
            # a token is for the registry, never for the storage behind it
            authorization = authorization if _origin(target) == _origin(url) else None
            url = target
            answer = await self._send(method, url, accept, authorization)
        _raise_for(answer, place)
        return answer

    async def _send(self, method: str, url: str, accept: Sequence[str], authorization: str | None) -> Answer:
        return await self._exchange.send(
            method, url, limit=DOCUMENT_BYTES, accept=", ".join(accept), authorization=authorization
        )

    # authorization

    def _known_authorization(self, place: Place) -> str | None:
        known, until = self._authorizations.get((place.host, place.repository), (None, 0.0))
        return known if self._clock() < until else None

    async def _authorize(self, place: Place, headers: httpx.Headers) -> str:
        credential = self._credentials.find(place.host, place.repository)
        challenges = {challenge.partition(" ")[0].lower(): challenge for challenge in _challenges(headers)}
        if "bearer" in challenges:
            authorization, seconds = await self._token(
                place, dict(_PARAMETER.findall(challenges["bearer"])), credential
            )
        elif "basic" in challenges and credential is not None:
            authorization, seconds = credential.basic, _TOKEN_SECONDS
        else:
            problem = "the registry wants credentials" if challenges else "the registry does not say how to authorize"
            raise RegistryTrouble("unauthorized", str(place), f"{problem}; see registry.docker_config in the settings")
        if len(self._authorizations) > 1000:
            self._authorizations.clear()
        self._authorizations[place.host, place.repository] = authorization, self._clock() + seconds
        return authorization

    async def _token(
        self, place: Place, parameters: Mapping[str, str], credential: Credential | None
    ) -> tuple[str, float]:
        """A header with a token, and the seconds for which it may be used."""
        realm = parameters.get("realm", "")
        host = netloc_of(realm)
        trusted = self._may_get_credentials(host, place)
        query = {"scope": parameters.get("scope") or f"repository:{place.repository}:pull"}
        if parameters.get("service"):
            query["service"] = parameters["service"]
        answer = await self._exchange.send(
            "GET",
            f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}",
            limit=TOKEN_BYTES,
            authorization=credential.basic if credential is not None and trusted else None,
        )
        if answer.status in (400, 401, 403):
            problem = f"{host} gives no token for it"
            if credential is not None and not trusted:
                problem += f"; credentials are not sent to {host} unless registry.token_hosts names it"
            elif credential is None:
                problem += "; see registry.docker_config in the settings"
            raise RegistryTrouble("unauthorized", str(place), problem)
        _raise_for(answer, place)
        said = _decoded(answer.body, _TokenAnswer, place, "token")
        token = said.token or said.access_token or ""
        if not _TOKEN.match(token):
            raise RegistryTrouble("invalid", str(place), f"{host} gives something else than a token")
        return f"Bearer {token}", max((said.expires_in or _TOKEN_SECONDS) - _TOKEN_MARGIN_SECONDS, 0.0)

    def _may_get_credentials(self, host: str, place: Place) -> bool:
        name, registry = host_name(host.lower()), host_name(place.host)
        return (
            name == registry
            or name.endswith(f".{registry}")
            or name == _TOKEN_SERVICES.get(place.host)
            or named_in(host, self._settings.token_hosts)
        )


def _choose(manifests: Sequence[_Descriptor], arch: str) -> _Descriptor | None:
    """The manifest for an architecture; attestations and images for other systems are no candidates."""
    linux = [item for item in manifests if item.platform is None or item.platform.os == "linux"]
    usable = [item for item in linux if DIGEST.match(item.digest) and item.media_type in ("", *MANIFEST_TYPES)]
    exact = [item for item in usable if item.platform is not None and item.platform.architecture == arch]
    return next(iter((*exact, *usable)), None)


def _challenges(headers: httpx.Headers) -> list[str]:
    return [part.strip() for part in headers.get_list("www-authenticate")]


def _target(url: str, location: str, place: Place) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise RegistryTrouble("invalid", str(place), "a redirect to what is no address") from error


def _origin(url: str) -> tuple[str, str]:
    return url.partition("://")[0].lower(), netloc_of(url).lower()


def _decoded(body: bytes, target: type[T], place: Place, what: str) -> T:
    try:
        return msgspec.json.decode(body, type=target)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RegistryTrouble("invalid", str(place), f"the {what} is not what a registry answers") from error


def _raise_for(answer: Answer, place: Place) -> None:
    status = answer.status
    if status == 200:
        return
    if status in (401, 403):
        problem = f"the registry refuses it ({status}); the image may not exist, or needs other credentials"
        raise RegistryTrouble("unauthorized", str(place), problem)
    if status == 404:
        raise RegistryTrouble("not-found", str(place), "the registry has no such image (404)")
    if status == 429:
        raise RegistryTrouble("rate-limited", str(place), "too many requests (429)", retry_after(answer.headers))
    if status >= 500:
        raise RegistryTrouble("unavailable", str(place), f"the registry fails ({status})", retry_after(answer.headers))
    raise RegistryTrouble("invalid", str(place), f"an unexpected answer ({status})")
