"""A loopback server of gpuhunt's published catalogues: ``/<name>/version`` and ``/<name>/<version>/catalog.zip``."""

import csv
import io
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

COLUMNS = (
    *("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot"),
    *("disk_size", "gpu_vendor", "flags", "cpu_arch", "provider_data"),
)


def row(name: str, price: float, **more: Any) -> dict[str, Any]:
    """A row of a catalogue: eight H100 in us-east-1 unless said otherwise."""
    return {
        "instance_name": name,
        "location": "us-east-1",
        "price": price,
        "cpu": 192,
        "memory": 2048.0,
        "gpu_count": 8,
        "gpu_name": "H100",
        "gpu_memory": 80.0,
        "spot": False,
        "disk_size": "",
        "gpu_vendor": "nvidia",
        "flags": "",
        "cpu_arch": "x86",
        "provider_data": "{}",
        **more,
    }


def packed(name: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A catalogue as it is published."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{name}.csv", text.getvalue())
    return archive.getvalue()


class PriceCatalogs:
    """The server. What it has is set by :meth:`publish`; :meth:`answer` puts anything in its place."""

    def __init__(self) -> None:
        self._answers: dict[str, Callable[[], tuple[int, bytes]]] = {}
        self.requests: list[str] = []
        self.held = threading.Event()
        known = self._answers
        requests, held = self.requests, self.held

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                answer = known.get(self.path)
                if answer is None:
                    self.send_error(404)
                    return
                status, body = answer()
                if status == 0:
                    held.wait(30)
                    return
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3"

    def publish(self, name: str, version: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Publish a catalogue as the newest one of a provider."""
        self.answer(f"{name}/version", 200, f"{version}\n".encode())
        self.answer(f"{name}/{version}/catalog.zip", 200, packed(name, rows))

    def answer(self, path: str, status: int, body: bytes = b"") -> None:
        """Answer a path so; status 0 holds the request until the server ends."""
        self._answers[f"/v3/{path}"] = lambda: (status, body)

    def __enter__(self) -> "PriceCatalogs":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
