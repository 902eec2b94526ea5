"""Printing that survives pipes, files and terminals that do not speak UTF-8."""

import codecs
import json
import os
import sys
from typing import Any, TextIO

from rules.findings import Severity


def make_safe(stream: TextIO) -> None:
    """Let ``stream`` escape what its encoding cannot express instead of failing half way."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def speaks_utf8(stream: TextIO) -> bool:
    """True when ``stream`` can express every character."""
    try:
        return codecs.lookup(stream.encoding or "ascii").name == "utf-8"
    except LookupError:
        return False


def write_json(document: Any, stream: TextIO | None = None, *, indent: int | None = 2) -> None:
    """Print plain data as JSON; characters that the stream cannot express become JSON's own escapes."""
    stream = stream or sys.stdout
    stream.write(json.dumps(document, ensure_ascii=not speaks_utf8(stream), indent=indent) + "\n")


_CODES = {
    Severity.CRITICAL: "1;31",
    Severity.HIGH: "31",
    Severity.MEDIUM: "33",
    Severity.LOW: "36",
    Severity.INFO: "2",
}


class Style:
    """Colours for people at a terminal: none in pipes, with ``NO_COLOR`` (no-color.org) or on ``TERM=dumb``."""

    def __init__(self, stream: TextIO) -> None:
        self.on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.plain_ascii = not speaks_utf8(stream)

    def severity(self, severity: Severity, text: str) -> str:
        """``text`` in the colour of ``severity``."""
        return self._paint(_CODES[severity], text)

    def bold(self, text: str) -> str:
        """``text`` in bold."""
        return self._paint("1", text)

    def faint(self, text: str) -> str:
        """``text`` in grey."""
        return self._paint("2", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text
