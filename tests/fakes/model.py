"""A loopback stand-in of an OpenAI-compatible endpoint: real HTTP, its own thread, with the answers models have.

::

    with FakeModel() as model:
        model.reading = {"kind": "faq", "topic": "storage", "confidence": 0.9}
        model.trouble = "slow"
"""

import asyncio
import gzip
import json
import threading
from typing import Any, Self

from aiohttp import web

WRONG_ENVELOPES = {
    "garbage": b"<html>\xff\xfe</html>",
    "no-choice": b'{"choices": []}',
    "no-content": b'{"choices": [{"message": {"content": null, "tool_calls": []}}]}',
    "nested": b"[" * 60_000,
    "empty": b"",
}


class FakeModel:
    """The endpoint.

    Attributes:
        reading: the document that the model fills, or its raw text.
        trouble: ``slow``, ``dripping``, ``huge``, ``packed``, ``moved``, ``no-schema``, ``status-<code>`` or one of
            ``WRONG_ENVELOPES``.
        requests: headers and document of what was asked.
    """

    def __init__(self) -> None:
        self.reading: Any = {"kind": "out_of_scope", "confidence": 0.1}
        self.trouble: str | None = None
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.arrived = threading.Event()
        self.release = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> list[str]:
        """The questions, as they came."""
        return [json.loads(document["messages"][-1]["content"])["question"] for _, document in self.requests]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        document = await request.json()
        self.requests.append(({name.lower(): value for name, value in request.headers.items()}, document))
        self.arrived.set()
        trouble = self.trouble
        if trouble in ("slow", "dripping"):
            return await self._linger(request, drips=trouble == "dripping")
        if trouble == "moved":
            return web.Response(status=307, headers={"Location": f"{self.url}/chat/completions"})
        if trouble == "huge":
            return web.Response(body=b" " * 5_000_000)
        if trouble == "packed":
            return web.Response(body=gzip.compress(b" " * 5_000_000), headers={"Content-Encoding": "gzip"})
        if trouble == "no-schema" and document["response_format"]["type"] == "json_schema":
            return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
        if trouble is not None and trouble.startswith("status-"):
            return web.json_response({"error": {"message": "no"}}, status=int(trouble.removeprefix("status-")))
        if trouble in WRONG_ENVELOPES:
            return web.Response(body=WRONG_ENVELOPES[trouble])
        content = self.reading if isinstance(self.reading, str) else json.dumps(self.reading)
        message = {"role": "assistant", "content": content}
        return web.json_response({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def _linger(self, request: web.Request, *, drips: bool) -> web.StreamResponse:
        response = web.StreamResponse()
        if drips:
            await response.prepare(request)
        while not self.release.is_set():
            await asyncio.sleep(0.02)
            if drips:
                await response.write(b" ")
        return response
