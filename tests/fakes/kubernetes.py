"""A loopback Kubernetes API server: real HTTP(S), its own thread, a cluster that tests change while it runs.

It answers as a real Kubernetes 1.36.2 API server was recorded to (``tests/data/apiserver``): statuses, headers, bodies
and their quirks. Nothing in it is reachable but by HTTP, so the code under test cannot tell it from the real thing::

    with FakeKubernetes() as server:
        server.state.load(Path("tests/data/clusters/dra-1-35.json"))
        kubeconfig = server.kubeconfig(tmp_path)
        server.faults.add("pods", status=429, retry_after=1, times=2)
"""

import asyncio
import gc
import gzip
import json
import ssl
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.fakes import kubernetes_config as config
from tests.fakes import kubernetes_protobuf
from tests.fakes.kubernetes_faults import Fault, Faults
from tests.fakes.kubernetes_state import ContinueTokenError, ExpiredError, Object, Resource, State, field_filter
from tests.fakes.kubernetes_watch import BELL, STOP, WATCHES, Bell, Watches, watch

JSON = "application/json"
GZIP_ABOVE_BYTES = 128 * 1024
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "98b35193b2ac7a23a673325f5e9b830ecd5ba406",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
ADMIN = "admin"
READER = "reader"
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
NO_STREAMING = (
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch '
    "unless the WatchList feature gate is enabled"
)
"""kubernetes/apimachinery, pkg/apis/meta/internalversion/validation, and pkg/api/errors NewInvalid."""


class Request:
    """A request as the server saw it, for tests that look at how kindly it was asked."""

    def __init__(self, request: web.Request, user: str | None) -> None:
        self.method = request.method
        self.path = request.path
        self.query: Mapping[str, str] = dict(request.query)
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in request.headers.items()}
        self.user = user

    def __repr__(self) -> str:
        return f"{self.method} {self.path} {dict(self.query)} as {self.user}"


class FakeKubernetes:
    """The server.

    Args:
        tls: ``good``, ``off`` (plain HTTP), ``other-host`` (certificate for another name), ``expired``, ``unknown-ca``.

    Attributes:
        state: the cluster; change it at any time.
        faults: what goes wrong.
        watches: those that are open, and what they are made to say.
        requests: what was asked, in order.
        formats: what lists are written in; without ``protobuf`` it is left out where it is asked for.
        tokens: user by bearer token; remove one and it is revoked.
        denied: resources (``pods``, ``daemonsets.apps``) that ``reader`` may not read; ``watch pods`` takes away one
            verb, ``pods in *`` what is not asked in one namespace, ``pods in team-a`` one namespace. ``admin`` may all.
    """

    def __init__(self, *, tls: config.Tls = "good") -> None:
        self.state = State()
        self.faults = Faults()
        self.watches = Watches()
        self.requests: list[Request] = []
        self.formats = frozenset({"json", "protobuf"})
        self.tokens = {"reader-token-0000": READER, "admin-token-0000": ADMIN}
        self.denied: set[str] = {"secrets"}
        self.port = 0
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """What a kubeconfig names as ``server``."""
        return f"{'http' if self._tls == 'off' else 'https'}://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Serve; a second start after a stop takes the same port again."""
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="fake-kubernetes", daemon=True)
        self._thread.start()
        started.wait(10)
        if failure:
            raise failure[0]
        return self

    def stop(self) -> None:
        """Go away: connections break, new ones are refused."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
            self._loop = self._stop = self._thread = None
            # A server has no say in how its peers leave: what they left half open is nobody's leak.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kubeconfig(self, directory: Path, *, auth: config.Auth = "token", user: str = READER, **changes: Any) -> Path:
        """Write a kubeconfig with one context, ``fake``; see :func:`tests.fakes.kubernetes_config.write_kubeconfig`."""
        token = next((token for token, owner in self.tokens.items() if owner == user), "")
        return config.write_kubeconfig(directory, self.url, auth=auth, user=user, token=token, **changes)

    def service_account(self, directory: Path, *, user: str = READER) -> dict[str, str]:
        """Write a mounted service account; gives the environment that a pod has."""
        token = next(token for token, owner in self.tokens.items() if owner == user)
        config.write_service_account(directory, token)
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}

    def asked(self, plural: str) -> list[Request]:
        """Requests for one resource."""
        return [request for request in list(self.requests) if request.path.endswith(f"/{plural}")]

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            failure.append(error)
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        bell = Bell()

        def changed() -> None:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(bell.ring)

        self.state.changed = self.watches.ring = changed
        app = web.Application()
        app[BELL] = bell
        app[STOP] = self._stop
        app[WATCHES] = self.watches
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        context: ssl.SSLContext | None = config.server_context(self._tls)
        site = web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context, reuse_address=True)
        await site.start()
        self.port = runner.addresses[0][1]
        started.set()
        await self._stop.wait()
        self.state.changed = self.watches.ring = lambda: None
        bell.ring()
        await runner.cleanup()
        await _cut_handshakes(self._loop)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request)
        self.requests.append(Request(request, user))
        fault = self.faults.take(request.path, dict(request.query))
        if fault is not None and fault.expire:
            self.state.expire_pages(request.path.rsplit("/", 1)[-1])
        elif fault is not None:
            return await self._misbehave(request, fault, user)
        return await self._answer(request, user)

    async def _answer(self, request: web.Request, user: str | None) -> web.StreamResponse:
        if user is None:
            return self._status(request, 401, "Unauthorized", "Unauthorized")
        parts = request.path.strip("/").split("/")
        match parts:
            case ["version"]:
                return self._json(request, VERSION, pretty=True)
            case ["healthz" | "readyz" | "livez"]:
                return web.Response(text="ok")
            case ["api"]:
                return self._json(
                    request, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
                )
            case ["apis"]:
                return self._json(request, self._group_list())
            case ["api", "v1", *rest]:
                return await self._resource(request, user, "", "v1", rest)
            case ["apis", group, version, *rest] if rest:
                return await self._resource(request, user, group, version, rest)
        return _page_not_found()

    async def _resource(
        self, request: web.Request, user: str, group: str, version: str, rest: list[str]
    ) -> web.StreamResponse:
        namespace = None
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name = rest[0], rest[1] if len(rest) > 1 else None
        verb = "get" if name else "watch" if _true(request, "watch") else "list"
        resource_name = f"{plural}.{group}" if group else plural
        refused = {resource_name, f"{verb} {resource_name}", f"{resource_name} in {namespace or '*'}"} & self.denied
        if user != ADMIN and (refused or (group, version, plural) not in self.state.resources):
            return self._forbidden(request, user, verb, group, plural, namespace)  # comes before 404
        resource = self.state.resources.get((group, version, plural))
        if resource is None:
            return _page_not_found()
        if request.method != "GET":
            return self._status(
                request, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
            )
        if name:
            return self._one(request, resource, name, namespace or "")
        return await self._list_or_watch(request, resource, namespace)

    def _one(self, request: web.Request, resource: Resource, name: str, namespace: str) -> web.StreamResponse:
        try:
            return self._json(request, self.state.get(resource.kind, name, namespace))
        except KeyError:
            details = {"name": name, **_details(resource.group, resource.plural)}
            message = f'{resource.plural}{"." + resource.group if resource.group else ""} "{name}" not found'
            return self._status(request, 404, "NotFound", message, details)

    async def _list_or_watch(
        self, request: web.Request, resource: Resource, namespace: str | None
    ) -> web.StreamResponse:
        try:
            keep = field_filter(resource, request.query.get("fieldSelector", ""))
        except ValueError as error:
            return self._status(request, 400, "BadRequest", str(error))
        if _true(request, "watch"):
            if "sendInitialEvents" in request.query and not self.watches.streaming:
                return self._status(request, 422, "Invalid", NO_STREAMING, {"kind": "ListOptions"})
            return await watch(request, self.state, resource, keep, namespace)
        asked = request.query.get("resourceVersion", "")
        if asked.isdigit() and int(asked) > self.state.revision:
            return self._future(request, asked)
        limit = 0 if asked == "0" else int(request.query.get("limit", "0"))  # the watch cache ignores the limit
        try:
            items, revision, following, rest = self.state.page(
                resource, keep, namespace, limit, request.query.get("continue", "")
            )
        except ContinueTokenError as error:
            return self._status(request, 400, "BadRequest", str(error))
        except ExpiredError as error:
            return self._status(request, 410, "Expired", EXPIRED, metadata={"continue": error.fresh})
        metadata: Object = {"resourceVersion": str(revision)}
        if following:
            metadata["continue"] = following
            if "fieldSelector" not in request.query:  # with a selector the server does not count the rest
                metadata["remainingItemCount"] = rest
        if resource.kind in kubernetes_protobuf.KINDS and "protobuf" in self.formats and _wants_protobuf(request):
            return self._protobuf(request, kubernetes_protobuf.encode_list(resource.kind, metadata, items))
        return self._json(
            request,
            {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": metadata,
                "items": [_as_list_item(item, resource) for item in items],
            },
            chunked=True,
        )

    async def _misbehave(self, request: web.Request, fault: Fault, user: str | None) -> web.StreamResponse:
        stop = request.app[STOP]
        if fault.hang:
            await stop.wait()
            raise web.HTTPServiceUnavailable
        if fault.disconnect:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault.body is not None:
            return web.Response(body=fault.body, content_type=fault.content_type)
        if fault.cut:
            whole = await self._answer(request, user)
            assert isinstance(whole, web.Response)
            assert isinstance(whole.body, bytes)
            response = web.StreamResponse(headers={"Content-Type": JSON})
            response.enable_chunked_encoding()
            await response.prepare(request)
            await response.write(whole.body[: len(whole.body) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        return self._status(request, fault.status, fault.reason, fault.message, headers=headers)

    def _user(self, request: web.Request) -> str | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.tokens.get(token) if scheme.lower() == "bearer" else None
        if user is None and request.transport is not None:
            certificate = request.transport.get_extra_info("peercert") or {}
            names = {key: value for part in certificate.get("subject", ()) for key, value in part}
            user = names.get("commonName")
        if user is not None and "Impersonate-User" in request.headers:
            return str(request.headers["Impersonate-User"])
        return user

    def _forbidden(
        self, request: web.Request, user: str, verb: str, group: str, plural: str, namespace: str | None
    ) -> web.Response:
        name = f"{plural}.{group}" if group else plural
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        message = f'{name} is forbidden: User "{user}" cannot {verb} resource "{plural}" in API group "{group}" {where}'
        return self._status(
            request, 403, "Forbidden", message, _details(group, plural), headers={"X-Content-Type-Options": "nosniff"}
        )

    def _future(self, request: web.Request, asked: str) -> web.Response:
        message = f"Timeout: Too large resource version: {asked}, current: {self.state.revision}"
        details = {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }
        return self._status(request, 504, "Timeout", message, details, headers={"Retry-After": "1"})

    def _group_list(self) -> Object:
        groups = []
        for name, versions in self.state.groups().items():
            entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
            groups.append({"name": name, "versions": entries, "preferredVersion": entries[0]})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _status(
        self,
        request: web.Request,
        code: int,
        reason: str,
        message: str,
        details: Object | None = None,
        *,
        metadata: Object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> web.Response:
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata or {},
            "status": "Failure",
            "message": message,
            "reason": reason,
        }
        if details:
            body["details"] = details
        return self._json(request, {**body, "code": code}, status=code, headers=headers)

    def _json(
        self,
        request: web.Request,
        body: Object,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        pretty: bool = False,
        chunked: bool = False,
    ) -> web.Response:
        text = json.dumps(body, indent=2) if pretty else json.dumps(body, separators=(",", ":"))
        return self._body(request, text.encode(), JSON, status=status, headers=headers, chunked=chunked)

    def _protobuf(self, request: web.Request, body: bytes) -> web.Response:
        return self._body(request, body, kubernetes_protobuf.CONTENT_TYPE, chunked=True)

    def _body(
        self,
        request: web.Request,
        data: bytes,
        content_type: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        chunked: bool = False,
    ) -> web.Response:
        response_headers = {"Cache-Control": "no-cache, private", **(headers or {})}
        if "gzip" in request.headers.get("Accept-Encoding", "") and len(data) > GZIP_ABOVE_BYTES:
            data = gzip.compress(data, 1)
            response_headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        response = web.Response(body=data, status=status, headers=response_headers, content_type=content_type)
        if chunked:
            response.enable_chunked_encoding()
        return response


async def _cut_handshakes(loop: asyncio.AbstractEventLoop) -> None:
    """Close what is left: connections still in their TLS handshake belong to nobody whom the runner could ask."""
    for _ in range(10):
        for transport in list(getattr(loop, "_transports", {}).values()):
            transport.abort()
        await asyncio.sleep(0)


def _wants_protobuf(request: web.Request) -> bool:
    """The first format of ``Accept`` that the server knows; media type parameters are not looked at."""
    for wanted in request.headers.get("Accept", "").split(","):
        if wanted.strip() == kubernetes_protobuf.CONTENT_TYPE:
            return True
        if wanted.strip() in (JSON, "*/*", ""):
            return False
    return False


def _true(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") in ("true", "1")


def _details(group: str, plural: str) -> Object:
    return {"group": group, "kind": plural} if group else {"kind": plural}


def _page_not_found() -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text="404 page not found\n", status=404, headers=headers)


def _as_list_item(item: Object, resource: Resource) -> Object:
    """Built-in kinds stand in lists without kind and apiVersion; custom resources keep them."""
    if "." in resource.group and not resource.group.endswith(".k8s.io"):
        return item
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
