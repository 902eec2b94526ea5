"""Markdown of answers -> Slack's mrkdwn, in pieces that fit a section each.

Slack's own ``markdown`` block is not used: it is not allowed on the Home tab, and nothing says how text is escaped in
it. Mrkdwn escapes with three entities, so that no text that comes
from a cluster or a user can turn into a mention.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bot.text import escape, fit, size

PIECE = 2900
"""Most characters of one piece; a section takes 3,000."""
TABLE_WIDTH = 64
"""Widest table that is shown as aligned columns; phones wrap what is wider."""

_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<bold>(?=\S)(?:[^*]|\*(?!\*))+?(?<=\S))\*\*"
    r"|\[(?P<label>[^\[\]\n]{1,300})\]\((?P<url>https?://[^\s()<>]+)\)"
    r"|(?P<bare>https?://[^\s<>()\[\]`\"']*[\w/#=&-])"
    r"|(?<![\w*])\*(?P<italic>(?=\S)[^*\n]+?(?<=\S))\*(?![\w*])"
    r"|~~(?P<strike>(?=\S)[^~\n]+?(?<=\S))~~"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+.!|~>-])"
)
_ITEM = re.compile(r"^(?P<indent>\s*)(?P<marker>[-*+]|\d{1,3}[.)])\s+(?P<text>.*)$")
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.*?)\s*#*$")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*$")


class Piece(NamedTuple):
    """One paragraph, list item or code block of ready mrkdwn.

    Attributes:
        text: at most :data:`PIECE` characters.
        tight: it follows the piece before without a blank line.
    """

    text: str
    tight: bool = False


def inline(text: str) -> str:
    """One line of Markdown as mrkdwn."""
    parts: list[str] = []
    end = 0
    for match in _INLINE.finditer(text):
        parts.extend((escape(text[end : match.start()]), _span(match)))
        end = match.end()
    parts.append(escape(text[end:]))
    return "".join(parts)


def _span(match: re.Match[str]) -> str:
    kind, value = match.lastgroup, match.group(match.lastgroup or 0)
    if kind == "code":
        return f"`{escape(value)}`"
    if kind == "bold":
        return f"*{inline(value)}*"
    if kind == "italic":
        return f"_{inline(value)}_"
    if kind == "strike":
        return f"~{inline(value)}~"
    if kind == "url":
        label = escape(match.group("label")).replace("|", "¦")
        return f"<{escape(value).replace('|', '%7C')}|{label}>"
    if kind == "bare":
        return f"<{escape(value).replace('|', '%7C')}>"
    return escape(value)


def plain(text: str) -> str:
    """One line of Markdown without its marks, not escaped."""
    return _INLINE.sub(lambda match: match.group("label") or match.group(match.lastgroup or 0), text)


def pieces(markdown: str) -> Iterator[Piece]:
    """Paragraphs, list items, tables and code blocks, each at most :data:`PIECE` characters of mrkdwn and not empty."""
    return (piece for piece in _pieces(markdown) if piece.text.strip())


def _pieces(markdown: str) -> Iterator[Piece]:
    lines = markdown.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    at = 0
    listed = False
    while at < len(lines):
        line = lines[at]
        if not line.strip() or _RULE.match(line):
            listed = listed and not line.strip()
            at += 1
        elif line.lstrip().startswith("```"):
            end = _end_of_fence(lines, at)
            yield from _code(lines[at + 1 : end])
            at, listed = end + 1, False
        elif "|" in line and at + 1 < len(lines) and _TABLE_RULE.match(lines[at + 1]) and "-" in lines[at + 1]:
            end = at + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            yield from _table([line, *lines[at + 2 : end]])
            at, listed = end, False
        elif heading := _HEADING.match(line):
            yield _whole(f"*{inline(heading['text'])}*" if heading["text"] else "", heading["text"])
            at, listed = at + 1, True
        elif item := _ITEM.match(line):
            end = _end_of_text(lines, at + 1)
            text = " ".join([item["text"], *(part.strip() for part in lines[at + 1 : end])])
            yield _item(item, text, tight=listed)
            at, listed = end, True
        else:
            end = _end_of_text(lines, at + 1)
            quote = line.startswith(">")
            text = " ".join(part.lstrip(">").strip() if quote else part.strip() for part in lines[at:end])
            yield _whole(("> " if quote else "") + inline(text), text)
            # a list that follows its sentence directly belongs to it
            at, listed = end, end < len(lines) and bool(lines[end].strip())


def _whole(mrkdwn: str, raw: str, *, tight: bool = False) -> Piece:
    """The piece, or its bare text cut to fit where it is too long: markup must not be torn."""
    return Piece(mrkdwn if size(mrkdwn) <= PIECE else fit(plain(raw), PIECE), tight)


def _item(item: re.Match[str], text: str, *, tight: bool) -> Piece:
    depth = min(len(item["indent"]) // 2, 3)
    bullet = ("•", "◦", "▪", "▪")[depth] if item["marker"] in "-*+" else item["marker"]
    lead = "    " * depth + bullet + " "
    return _whole(lead + inline(text), lead + text, tight=tight)


def _end_of_fence(lines: Sequence[str], start: int) -> int:
    return next((at for at in range(start + 1, len(lines)) if lines[at].strip().startswith("```")), len(lines))


def _end_of_text(lines: Sequence[str], start: int) -> int:
    """First line from ``start`` on that does not continue the paragraph or item before it."""
    for at in range(start, len(lines)):
        line = lines[at]
        table = "|" in line and at + 1 < len(lines) and bool(_TABLE_RULE.match(lines[at + 1]))
        if not line.strip() or table or line.lstrip().startswith("```") or _HEADING.match(line) or _ITEM.match(line):
            return at
    return len(lines)


def _code(lines: Sequence[str]) -> Iterator[Piece]:
    """A code block, in several where it is too long for one."""
    room, held, held_size = PIECE - 8, list[str](), 0
    for line in lines:
        text = fit(line.rstrip().replace("```", "'''"), room)
        if held and held_size + size(text) + 1 > room:
            yield _fenced(held)
            held, held_size = [], 0
        held.append(text)
        held_size += size(text) + 1
    if any(line.strip() for line in held):
        yield _fenced(held)


def _fenced(lines: Sequence[str]) -> Piece:
    return Piece("```\n" + "\n".join(lines) + "\n```")


def _table(lines: Sequence[str]) -> Iterator[Piece]:
    """Aligned columns where they are narrow enough for a phone, else one list item per row."""
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
    head, *body = rows
    shown = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) if column < len(row) else 0 for row in shown) for column in range(len(head))]
    if sum(widths) + 2 * len(widths) <= TABLE_WIDTH:
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in shown]
        text.insert(1, "  ".join("-" * width for width in widths))
        yield from _code(text)
        return
    for row in body:
        rest = "; ".join(f"{name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=False) if cell)
        first = row[0].strip("* ")
        text_row = f"• **{first}**: {rest}" if rest and first else f"• {first or rest}"
        yield _whole(inline(text_row), text_row, tight=row is not body[0])


def pack(parts: Sequence[Piece], budget: int) -> tuple[list[str], int]:
    """Sections of at most :data:`PIECE` characters that hold ``parts`` in order, up to ``budget`` characters in all.

    Returns:
        The sections and how many parts did not fit.
    """
    sections: list[str] = []
    for number, part in enumerate(parts):
        joint = "" if not sections else "\n" if part.tight else "\n\n"
        budget -= size(part.text) + len(joint)
        if budget < 0:
            return sections, len(parts) - number
        if sections and size(sections[-1]) + len(joint) + size(part.text) <= PIECE:
            sections[-1] += joint + part.text
        else:
            sections.append(part.text)
    return sections, 0
