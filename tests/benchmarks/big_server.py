"""An API server of the big cluster: a process of its own that sends pages which were encoded beforehand.

It frames as a real one does (HTTP/1.1, chunks of about one object, keep-alive) and speaks JSON, and protobuf where
pages of that kind are there. Watches wait until ``POST /control/change?first=N&count=M`` sends them changed pods. Run
as ``python -m tests.benchmarks.big_server FOLDER DIRECTORY`` it writes ``DIRECTORY/kubeconfig`` and prints its address.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from service.clusters.kinds import KINDS
from tests.benchmarks import big_cluster
from tests.fakes.kubernetes import VERSION
from tests.fakes.kubernetes_config import server_context, write_kubeconfig

TOKEN = "reader-token-0000"
CHUNK_BYTES = 8192
PROTOBUF = "application/vnd.kubernetes.protobuf"
_KINDS = {spec.plural: spec.kind for spec in KINDS} | {"replicasets": "ReplicaSet"}
_GROUPS = {
    "apps": "v1",
    "autoscaling": "v2",
    "batch": "v1",
    "nvidia.com": "v1",
    "policy": "v1",
    "scheduling.k8s.io": "v1",
    "storage.k8s.io": "v1",
}
_NO_STREAMING = (
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch '
    "unless the WatchList feature gate is enabled"
)
Query = Mapping[str, str]


class Server:
    """Answers requests from the pages of one cluster."""

    def __init__(self, pages: big_cluster.Pages, nodes: int, pods: int, *, protobuf: bool) -> None:
        self._pages = pages
        self._size = (nodes, pods)
        self._protobuf = protobuf
        self._watches: dict[str, set[asyncio.Queue[bytes]]] = {}

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its peer leaves."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                url = urlsplit(target)
                query = {key: values[0] for key, values in parse_qs(url.query).items()}
                await self._answer(writer, method, url.path, query, headers)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the peer left, or the server ends
        finally:
            writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, method: str, path: str, query: Query, headers: Mapping[str, str]
    ) -> None:
        if path == "/control/change":
            return await _send(writer, json.dumps({"watches": self._change(query)}).encode())
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return await _refuse(writer, 401, "Unauthorized", "Unauthorized")
        match path.strip("/").split("/"):
            case ["version"]:
                return await _send(writer, json.dumps(VERSION).encode())
            case ["apis"]:
                return await _send(writer, json.dumps(_groups()).encode())
            case ["api", "v1", plural]:
                kind = _KINDS.get(plural)
            case ["apis", group, version, plural] if _GROUPS.get(group) == version:
                kind = _KINDS.get(plural)
            case _:
                kind = None
        if kind is None or method != "GET":
            return await _send(writer, b"404 page not found\n", status="404 Not Found", content_type="text/plain")
        if query.get("watch") in ("true", "1"):
            return await self._watch(writer, kind, query)
        return await self._list(writer, kind, query, headers.get("accept", ""))

    async def _list(self, writer: asyncio.StreamWriter, kind: str, query: Query, accept: str) -> None:
        ending, content_type = "json", "application/json"
        if self._protobuf and accept.startswith(PROTOBUF) and self._pages.of(kind, "pb"):
            ending, content_type = "pb", PROTOBUF
        token = query.get("continue", "")
        files = self._pages.of(kind, ending)
        number = next((n for n in range(1, len(files)) if big_cluster.token(n) == token), 0) if token else 0
        if files:
            return await _send(writer, files[number].read_bytes(), content_type=content_type)
        meta = {"resourceVersion": str(big_cluster.REVISION)}
        body = {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": []}
        return await _send(writer, json.dumps(body).encode())

    async def _watch(self, writer: asyncio.StreamWriter, kind: str, query: Query) -> None:
        if query.get("sendInitialEvents") == "true":
            return await _refuse(writer, 422, "Invalid", _NO_STREAMING)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches.setdefault(kind, set()).add(queue)
        try:
            async with asyncio.timeout(float(query.get("timeoutSeconds", "1800"))):
                while True:
                    writer.write(_chunk(await queue.get()))
                    await writer.drain()
        except TimeoutError:
            writer.write(b"0\r\n\r\n")
        finally:
            self._watches[kind].discard(queue)

    def _change(self, query: Query) -> int:
        """Queue changed pods for every watch of pods; how many watches there are."""
        watches = self._watches.get("Pod", set())
        changed = big_cluster.changed_pods(int(query["count"]), *self._size, first=int(query["first"]))
        for text in changed:
            line = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",' + text[1:] + b"}\n"
            for queue in watches:
                queue.put_nowait(line)
        return len(watches)


def _groups() -> dict[str, object]:
    found = []
    for name, version in _GROUPS.items():
        served = {"groupVersion": f"{name}/{version}", "version": version}
        found.append({"name": name, "versions": [served], "preferredVersion": served})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


async def _refuse(writer: asyncio.StreamWriter, code: int, reason: str, message: str) -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
              "reason": reason, "code": code}  # fmt: skip
    await _send(writer, json.dumps(status).encode(), status=f"{code} {reason}")


async def _send(
    writer: asyncio.StreamWriter, body: bytes, *, status: str = "200 OK", content_type: str = "application/json"
) -> None:
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nCache-Control: no-cache, private\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )
    writer.writelines(_chunks(body))
    await writer.drain()


def _chunks(body: bytes) -> Iterator[bytes]:
    view = memoryview(body)
    yield b"".join(_chunk(view[start : start + CHUNK_BYTES]) for start in range(0, len(body), CHUNK_BYTES))
    yield b"0\r\n\r\n"


def _chunk(data: bytes | memoryview) -> bytes:
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n"))


async def serve(server: Server, directory: Path, *, tls: bool) -> None:
    """Serve until standard input ends, which it does when the process that started this one is gone."""
    context = server_context("good") if tls else None
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=context)
    url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    write_kubeconfig(directory, url, auth="token", user="reader", token=TOKEN)
    print(url, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", type=Path, help="folder of the pages")
    parser.add_argument("directory", type=Path, help="where the kubeconfig goes")
    parser.add_argument("--nodes", type=int, default=big_cluster.NODES)
    parser.add_argument("--pods", type=int, default=big_cluster.PODS)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--json-only", action="store_true", help="speak no protobuf")
    args = parser.parse_args()
    server = Server(big_cluster.Pages(args.pages), args.nodes, args.pods, protobuf=not args.json_only)
    asyncio.run(serve(server, args.directory, tls=args.tls))


if __name__ == "__main__":
    main()
