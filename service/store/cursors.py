"""Paging cursors: a small struct packed into text that goes through a URL unchanged."""

import base64
import binascii
from typing import TypeVar

import msgspec

from service.errors import CursorInvalid

_Position = TypeVar("_Position", bound=msgspec.Struct)


def packed(position: msgspec.Struct) -> str:
    """The cursor that :func:`unpacked` reads back to ``position``."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def unpacked(cursor: str, type_: type[_Position]) -> _Position:
    """The position that ``cursor`` holds; whether it fits the list that is asked for is the caller's to check.

    Raises:
        CursorInvalid: not a packed ``type_``.
    """
    try:
        document = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(document, type=type_)
    except (binascii.Error, ValueError) as error:
        raise CursorInvalid(cursor) from error
