"""A loopback container registry: real HTTP, its own thread, with Docker's token flow and the troubles registries have.

::

    with FakeRegistry() as registry:
        digest = registry.add("team/train", "v1", env=["CUDA_VERSION=12.8.1"])
        registry.trouble["team/train"] = "slow"
"""

import asyncio
import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from aiohttp import web

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


class FakeRegistry:
    """The registry.

    Args:
        auth: ``none``, ``token`` (Bearer, as Docker Hub) or ``basic`` (as ECR).

    Attributes:
        trouble: by repository (``*``: all): ``slow``, ``huge``, ``garbage``, ``packed``, ``limit`` (429), ``down``
            (503), ``wrong-blob``, ``moved`` (blobs redirected to ``storage``), ``moved-http`` (to another scheme),
            ``loop`` (redirected for ever).
        requests: method, path and headers of what was asked.
        accounts: user -> password; without any, anonymous tokens are given.
        realm: the token service that is named; None for this server's own.
        storage: base address of the blobs that ``moved`` names.
    """

    def __init__(self, auth: str = "none") -> None:
        self.auth = auth
        self.trouble: dict[str, str] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.accounts: dict[str, str] = {}
        self.realm: str | None = None
        self.storage: str | None = None
        self.no_head = False
        self.release = threading.Event()
        self._blobs: dict[str, bytes] = {}
        self._manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self.port = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def asked(self, method: str = "GET") -> list[str]:
        return [path for verb, path, _ in self.requests if verb == method]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    # contents

    def add(
        self,
        repository: str,
        tag: str,
        *,
        env: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        arches: Sequence[str] = ("amd64", "arm64"),
        index: bool = True,
        config: Any = None,
    ) -> str:
        """Put an image there; the digest that the tag points to."""
        descriptors = []
        for arch in arches:
            inner = {"Env": [*env, f"NVARCH={arch}"], "Labels": labels or {}}
            document: Any = {"architecture": arch, "os": "linux", "config": inner}
            blob = json.dumps(document if config is None else config).encode()
            digest = self._blob(blob)
            layers = [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": f"sha256:{'0' * 64}"}]
            manifest = {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"mediaType": CONFIG, "digest": digest, "size": len(blob)},
                "layers": layers,
            }
            descriptors.append(
                {
                    "mediaType": MANIFEST,
                    "digest": self._put(repository, None, MANIFEST, manifest),
                    "platform": {"os": "linux", "architecture": arch},
                }
            )
        if not index:
            return self._tag(repository, tag, str(descriptors[0]["digest"]))
        attestation = {
            "mediaType": MANIFEST,
            "digest": f"sha256:{'1' * 64}",
            "platform": {"os": "unknown", "architecture": "unknown"},
        }
        manifests = [attestation, *descriptors]
        return self._put(repository, tag, INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})

    def put(self, repository: str, tag: str, document: Any, media_type: str = MANIFEST) -> str:
        """Any document as the manifest of a tag."""
        return self._put(repository, tag, media_type, document)

    def _blob(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._blobs[digest] = data
        return digest

    def _put(self, repository: str, tag: str | None, media_type: str, document: Any) -> str:
        data = json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        for reference in (digest, tag):
            if reference is not None:
                self._manifests[repository, reference] = media_type, data
        return digest

    def _tag(self, repository: str, tag: str, digest: str) -> str:
        self._manifests[repository, tag] = self._manifests[repository, digest]
        return digest

    # serving

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/token", self._token)
        app.router.add_route("*", "/storage/{digest}", self._stored)
        app.router.add_route("*", "/v2/{rest:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    def _note(self, request: web.Request) -> None:
        self.requests.append((request.method, request.path_qs, {k.lower(): v for k, v in request.headers.items()}))

    async def _token(self, request: web.Request) -> web.Response:
        self._note(request)
        if self.accounts and _user(request) not in self.accounts.items():
            return web.json_response({"errors": [{"code": "UNAUTHORIZED"}]}, status=401)
        return web.json_response({"token": f"pass-{request.query['scope']}", "expires_in": 300})

    async def _stored(self, request: web.Request) -> web.Response:
        self._note(request)
        return web.Response(body=self._blobs[request.match_info["digest"]])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        repository, _, rest = request.match_info["rest"].rpartition("/")
        repository, _, kind = repository.rpartition("/")
        if not self._may(request, repository):
            return web.json_response({"errors": []}, status=401, headers=self._challenge(repository))
        trouble = self.trouble.get(repository) or self.trouble.get("*")
        if trouble in ("slow", "huge", "garbage", "packed", "limit", "down", "loop"):
            return await self._make_trouble(request, trouble)
        if kind == "blobs":
            return self._blob_answer(rest, trouble)
        found = self._manifests.get((repository, rest))
        if found is None:
            return web.json_response({"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)
        if request.method == "HEAD" and self.no_head:
            return web.Response(status=405)
        media_type, data = found
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return web.Response(body=data, content_type=media_type, headers={"Docker-Content-Digest": digest})

    def _blob_answer(self, digest: str, trouble: str | None) -> web.Response:
        if trouble in ("moved", "moved-http"):
            base = self.storage or self.url
            return web.Response(status=307, headers={"Location": f"{base}/storage/{digest}"})
        data = self._blobs.get(digest)
        if data is None:
            return web.Response(status=404)
        return web.Response(body=b"{}" if trouble == "wrong-blob" else data)

    async def _make_trouble(self, request: web.Request, trouble: str) -> web.StreamResponse:
        if trouble == "slow":
            response = web.StreamResponse()
            await response.prepare(request)
            while not self.release.is_set():
                await response.write(b" ")
                await asyncio.sleep(0.05)
            return response
        if trouble == "loop":
            return web.Response(status=302, headers={"Location": request.path_qs})
        if trouble == "packed":
            return web.Response(body=gzip.compress(b" " * 10_000_000), headers={"Content-Encoding": "gzip"})
        if trouble == "limit":
            return web.Response(status=429, headers={"Retry-After": "120"})
        if trouble == "down":
            return web.Response(status=503, text="<html>upstream</html>")
        return web.Response(body=b" " * 20_000_000 if trouble == "huge" else b"<html>\xff\xfe</html>")

    def _may(self, request: web.Request, repository: str) -> bool:
        given = request.headers.get("authorization", "")
        if self.auth == "basic":
            return _user(request) in self.accounts.items()
        return self.auth == "none" or given == f"Bearer pass-repository:{repository}:pull"

    def _challenge(self, repository: str) -> dict[str, str]:
        if self.auth == "basic":
            return {"WWW-Authenticate": 'Basic realm="registry"'}
        realm = f"{self.url}/token" if self.realm is None else self.realm
        return {"WWW-Authenticate": f'Bearer realm="{realm}",service="fake",scope="repository:{repository}:pull"'}


def _user(request: web.Request) -> tuple[str, str]:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return "", ""
    name, _, password = base64.b64decode(value).decode().partition(":")
    return name, password
