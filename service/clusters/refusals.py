"""What an API server says when it does not give what it was asked for."""

import email.utils
import http
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import msgspec


class StatusDetails(msgspec.Struct, rename={"retry_after_seconds": "retryAfterSeconds"}):
    """What a Status says besides its message."""

    retry_after_seconds: float | None = None


class Status(msgspec.Struct):
    """``kind: Status``, the body of a refusal."""

    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class Refused(Exception):
    """The server answered with another status than 200.

    Args:
        status: HTTP status.
        body: as received; a Status object, or plain text (an unknown API group, a load balancer).
        headers: as received, case-insensitive.
        now: to turn a date in ``Retry-After`` into seconds.

    Attributes:
        message: of the Status object, else the text of the body.
        retry_after: seconds that the server asks to wait; None when it does not.
    """

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str], now: datetime) -> None:
        answer = Status()
        with suppress(msgspec.DecodeError):
            answer = msgspec.json.decode(body, type=Status)
        self.status = status
        self.reason = answer.reason or _phrase(status)
        self.message = answer.message or " ".join(body[:300].decode("utf-8", "replace").split()) or self.reason
        self.retry_after = _seconds(headers.get("Retry-After"), now)
        if self.retry_after is None and answer.details is not None:
            self.retry_after = answer.details.retry_after_seconds
        super().__init__(f"{status} {self.reason}: {self.message}")


def _phrase(status: int) -> str:
    with suppress(ValueError):
        return http.HTTPStatus(status).phrase
    return "unknown status"


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    """``Retry-After`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3)."""
    if retry_after is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError):
        when = email.utils.parsedate_to_datetime(retry_after)
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
    return None
