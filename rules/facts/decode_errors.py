"""Errors of the decoder in the words of a reader of the file."""

import re

AT_BYTE = re.compile(r" \(byte (\d+)\)")
_AT_PATH = re.compile(r" - at `\$(\.?)([^`]*)`")


def join(path: str, more: str) -> str:
    """A path and what is below it; after the number of a document comes a comma."""
    separator = ", " if path.startswith("document ") and "," not in path else "."
    return f"{path}{separator}{more}" if path and more else path or more


def path_of(message: str) -> str | None:
    """Where in an object msgspec found the error: ``spec.nodeName``."""
    at = _AT_PATH.search(message)
    return (at[2] or None) if at else None


def problem_of(error: Exception) -> str:
    """What msgspec says without where."""
    return clean(_AT_PATH.sub("", str(error)))


def clean(message: str) -> str:
    """One line in the middle of a sentence."""
    message = " ".join(AT_BYTE.sub("", message).split())[:300]
    return message[:1].lower() + message[1:] if message[1:2].islower() else message
