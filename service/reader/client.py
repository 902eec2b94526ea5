"""Asks the configured model to read a question. Whatever goes wrong there, the question is answered without it."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import httpx
import msgspec
import prometheus_client
import structlog

from rules.questions.outside import prompt, schema
from service.reader.settings import ReaderSettings

Outcome = Literal[
    "read", "cached", "resting", "busy", "timeout", "unreachable", "refused", "failed", "too-large", "garbage"
]

MAX_BYTES = 64 * 1024
"""Of an answer of the endpoint."""
MAX_TOKENS = 400
"""Of the document; a full one has some hundred."""
KEPT = 1024
"""Readings that are remembered."""
PARALLEL = 8
"""Questions at the endpoint at the same time; what comes beyond is answered without it."""
FAILURES = 3
"""So many failures in a row, and the endpoint is left alone for a while."""
REST_SECONDS = 60.0

_NO_SCHEMA = frozenset({400, 404, 415, 422, 501})
"""What endpoints answer that do not know ``json_schema``."""
_CALLS = prometheus_client.Counter(
    "gpu_advisor_reader_questions", "Questions that the configured model was to read, by outcome.", ["outcome"]
)

log = structlog.get_logger(__name__)


class _Message(msgspec.Struct, frozen=True):
    content: str


class _Choice(msgspec.Struct, frozen=True):
    message: _Message


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]


class _TroubleError(Exception):
    def __init__(self, outcome: Outcome, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.status = status


class ModelReader:
    """The model behind the endpoint.

    Args:
        settings: of the operator, with ``base_url``.
        clock: seconds that only grow.

    Attributes:
        outcomes: how many questions came to which end.
    """

    def __init__(self, settings: ReaderSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._url = f"{(settings.base_url or '').rstrip('/')}/chat/completions"
        self._clock = clock
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()
        self._kept: dict[str, bytes] = {}
        self._under_way = 0
        self._failures = 0
        self._rests_until = float("-inf")
        self._by_schema = True
        self.outcomes: Counter[Outcome] = Counter()

    async def read(self, text: str) -> bytes | None:
        """What the model makes of a question, unchecked; None where it does not answer well and in time.

        Args:
            text: the question; what must not leave has to be taken out before (:mod:`service.reader.discreet`).
        """
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept[key] = kept
            return self._count("cached", kept)
        if self._clock() < self._rests_until:
            return self._count("resting")
        if self._under_way >= PARALLEL:
            return self._count("busy")
        self._under_way += 1
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                said = await self._asked(text)
        except TimeoutError:
            return self._failed("timeout", f"no complete answer within {self._settings.timeout_seconds:g} s")
        except _TroubleError as trouble:
            return self._failed(trouble.outcome, str(trouble))
        except Exception as error:
            return self._failed("unreachable", f"{type(error).__name__}: {error}"[:200])
        finally:
            self._under_way -= 1
        self._failures = 0
        if len(self._kept) >= KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = said
        return self._count("read", said)

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _asked(self, text: str) -> bytes:
        messages = prompt(text)
        if self._by_schema:
            try:
                return await self._send(messages, _by_schema())
            except _TroubleError as trouble:
                if trouble.status not in _NO_SCHEMA:
                    raise
            said = await self._send(messages, {"type": "json_object"})
            self._by_schema = False
            return said
        return await self._send(messages, {"type": "json_object"})

    async def _send(self, messages: list[dict[str, str]], form: dict[str, Any]) -> bytes:
        document = {
            "model": self._settings.model,
            "messages": messages,
            "response_format": form,
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if self._settings.api_key:
            headers["authorization"] = f"Bearer {self._settings.api_key}"
        client = await self._connected()
        body = bytearray()
        async with client.stream("POST", self._url, content=msgspec.json.encode(document), headers=headers) as response:
            status = response.status_code
            if status != httpx.codes.OK:
                raise _TroubleError("failed" if status >= 500 else "refused", f"HTTP {status}", status)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise _TroubleError("garbage", "the answer is packed, though it was asked for as it is")
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise _TroubleError("too-large", f"the answer is larger than {MAX_BYTES} bytes")
        return _content(bytes(body))

    async def _connected(self) -> httpx.AsyncClient:
        async with self._making:
            if self._client is None:
                # reads the certificates of the system: not on the loop
                self._client = await asyncio.to_thread(
                    httpx.AsyncClient, follow_redirects=False, timeout=self._settings.timeout_seconds
                )
            return self._client

    def _failed(self, outcome: Outcome, detail: str) -> bytes | None:
        self._failures += 1
        rests = self._failures >= FAILURES
        if rests:
            self._rests_until = self._clock() + REST_SECONDS
        log.warning(
            "a question is read without the model", reason=outcome, detail=detail, rest=REST_SECONDS if rests else 0
        )
        return self._count(outcome)

    def _count(self, outcome: Outcome, said: bytes | None = None) -> bytes | None:
        self.outcomes[outcome] += 1
        _CALLS.labels(outcome).inc()
        return said


def _by_schema() -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reading", "schema": schema()}}


def _content(body: bytes) -> bytes:
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _TroubleError("garbage", "the answer is no chat completion") from error
    if not completion.choices:
        raise _TroubleError("garbage", "the answer has no choice in it")
    return completion.choices[0].message.content.encode("utf-8", "replace")
