"""Markdown as a terminal shows it."""

import re
import shutil
import textwrap
from collections.abc import Iterator


def width() -> int:
    """Columns to fill: those of the terminal, between 60 and 110; 100 in pipes."""
    return max(60, min(110, shutil.get_terminal_size((100, 24)).columns))


def plain(markdown: str) -> str:
    """Markdown as a terminal shows it: no bold marks; backquotes stay, they delimit what is to be typed."""
    return re.sub(r"\*\*(.+?)\*\*", r"\1", markdown)


def wrapped(markdown: str, columns: int, indent: str = "") -> Iterator[str]:
    """Paragraphs wrapped to ``columns``; fenced blocks and lines that begin with spaces are left as they are."""
    fenced = False
    for line in markdown.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced or line.startswith("  ") or not line.strip():
            yield f"{indent}{line}" if line.strip() else ""
            continue
        bullet = re.match(r"(?:[-*]|\d+\.) ", line)
        yield from textwrap.wrap(
            plain(line),
            width=columns,
            initial_indent=indent,
            subsequent_indent=indent + " " * (bullet.end() if bullet else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
