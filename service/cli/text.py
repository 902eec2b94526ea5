"""Markdown as a terminal shows it."""

import re
import shutil
import textwrap
from collections.abc import Iterator

_TIED = "\x00"
"""Stands for a space at which a line must not be broken."""


def width() -> int:
    """Columns to fill: those of the terminal, between 60 and 110; 100 in pipes."""
    return max(60, min(110, shutil.get_terminal_size((100, 24)).columns))


def plain(markdown: str) -> str:
    """Markdown as a terminal shows it: no bold marks; backquotes stay, they delimit what is to be typed."""
    return re.sub(r"\*\*(.+?)\*\*", r"\1", markdown)


def wrapped(markdown: str, columns: int, indent: str = "") -> Iterator[str]:
    """Paragraphs wrapped to ``columns``.

    What is to be typed is never broken: inline code stays on one line, fenced blocks and lines that begin with spaces
    stay as they are.
    """
    fenced = False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced or line.startswith("  ") or not line.strip():
            yield f"{indent}{line}" if line.strip() else ""
            continue
        bullet = re.match(r"(?:[-*]|\d+\.) ", line)
        kept = re.sub(r"`[^`]+`", lambda code: code[0].replace(" ", _TIED), plain(line))
        lines = textwrap.wrap(
            kept,
            width=columns,
            initial_indent=indent,
            subsequent_indent=indent + " " * (bullet.end() if bullet else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (wrapped_line.replace(_TIED, " ") for wrapped_line in lines)
