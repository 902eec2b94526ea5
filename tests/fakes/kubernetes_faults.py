"""What goes wrong in the stand-in API server."""

import threading
from collections.abc import Mapping

import msgspec


class Fault(msgspec.Struct, kw_only=True):
    """One kind of trouble for requests to one resource.

    Attributes:
        plural: last part of the path (``pods``, ``version``), "*" for every request.
        times: how often; None for ever.
        only_continued: only for pages after the first one. only_watch, only_list: only for watches, or lists.
        status, retry_after, message, reason: a refusal.
        hang: never answer. disconnect: reset the connection. cut: stop in the middle of the body.
        body, content_type: answer 200 with this body.
        expire: forget this resource's revisions first, so that its continue tokens are expired.
    """

    plural: str
    times: int | None = None
    only_continued: bool = False
    only_watch: bool = False
    only_list: bool = False
    status: int = 500
    retry_after: int | str | None = None
    reason: str = "InternalError"
    message: str = "an error on the server has prevented the request from succeeding"
    hang: bool = False
    disconnect: bool = False
    cut: bool = False
    body: bytes | None = None
    content_type: str = "application/json"
    expire: bool = False


class Faults:
    """The faults in force, first match wins. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, plural: str, **fields: object) -> None:
        """Add a :class:`Fault`."""
        fault = msgspec.convert({"plural": plural, **fields}, Fault)
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """All is well again."""
        with self._lock:
            self._faults.clear()

    def take(self, path: str, query: Mapping[str, str]) -> Fault | None:
        """The fault that hits this request, counted down."""
        with self._lock:
            for fault in self._faults:
                if fault.plural not in ("*", path.rsplit("/", 1)[-1]) or fault.times == 0:
                    continue
                if fault.only_continued and "continue" not in query:
                    continue
                watching = query.get("watch") == "true"
                if (fault.only_watch and not watching) or (fault.only_list and watching):
                    continue
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None
