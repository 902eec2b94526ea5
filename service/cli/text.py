"""Markdown as a terminal shows it."""

import re
import shutil
import textwrap
from collections.abc import Iterator

_TIED = "\x00"
"""Stands for a space at which a line must not be broken."""


NARROWEST = 12
"""Characters that a column of a table keeps at least."""


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
    table: list[str] = []
    for at, line in enumerate([*markdown.splitlines(), ""]):
        if line.startswith("|") and not fenced:
            table.append(line)
            continue
        if table:
            yield from _aligned(table, columns, indent)
            table = []
        if at == len(markdown.splitlines()):
            return
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


def _aligned(table: list[str], columns: int, indent: str) -> Iterator[str]:
    """A Markdown table in columns; the widest one is narrowed until the table fits, its cells over several lines."""
    rows = [[plain(cell.strip()) for cell in line.strip().strip("|").split("|")] for line in table]
    rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    number = max(len(row) for row in rows)
    rows = [row + [""] * (number - len(row)) for row in rows]
    widths = [max(len(row[at]) for row in rows) for at in range(number)]
    room = columns - len(indent) - 2 * (number - 1)
    while sum(widths) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    for row in rows:
        cells = [
            textwrap.wrap(cell, width, break_on_hyphens=False) or [""] for cell, width in zip(row, widths, strict=True)
        ]
        for at in range(max(map(len, cells))):
            parts = [cell[at] if at < len(cell) else "" for cell in cells]
            line = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            yield f"{indent}{line}".rstrip()
        if row is rows[0]:
            yield indent + "  ".join("-" * width for width in widths)
