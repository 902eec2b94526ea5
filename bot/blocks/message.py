"""A message and the Block Kit pieces it is made of, each within Slack's limits whatever it is given.

Limits: https://docs.slack.dev/reference/block-kit/blocks/ and, for the sum of all text in a message (refused near
13,200 characters, undocumented), https://github.com/slackapi/bolt-js/issues/2509. Builders stay below.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bot.text import fit, size

Block = dict[str, Any]

BLOCKS = 50
HEADER = 150
SECTION = 3000
FIELDS = 10
FIELD = 2000
CONTEXT_ELEMENTS = 10
BUTTON = 75
FALLBACK = 3900
"""Slack takes 40,000 characters of plain text and advises about 4,000."""
MESSAGE_TEXT = 11_000
"""Most that all blocks of one message hold together."""


class Message(msgspec.Struct, frozen=True):
    """What is posted.

    Attributes:
        text: the same in plain mrkdwn: for notifications, screen readers, and when Slack refuses the blocks.
        blocks: Block Kit blocks.
    """

    text: str
    blocks: tuple[Block, ...]


def message(text: str, blocks: Sequence[Block]) -> Message:
    """A message of ``blocks`` with a text that is never empty."""
    return Message(text=clip(text, FALLBACK).strip() or "…", blocks=tuple(blocks[:BLOCKS]))


def header(text: str) -> Block:
    """A header; ``text`` is raw."""
    return {
        "type": "header",
        "text": {"type": "plain_text", "text": fit(one_line(text), HEADER).strip() or "…", "emoji": True},
    }


def section(mrkdwn: str) -> Block:
    """A section; ``mrkdwn`` is ready markup of at most 3,000 characters."""
    return {"type": "section", "text": _mrkdwn(mrkdwn), "expand": True}


def fields(pairs: Iterable[tuple[str, str]]) -> Block:
    """A two-column section of at most ten fields: a raw label over ready markup."""
    columns = [_mrkdwn(f"*{fit(one_line(label), 60)}*\n{value.strip() or '—'}") for label, value in pairs]
    return {"type": "section", "fields": columns[:FIELDS]}


def context(*mrkdwn: str) -> Block:
    """Small print; ready markup, one element each."""
    return {"type": "context", "elements": [_mrkdwn(text) for text in mrkdwn[:CONTEXT_ELEMENTS]]}


def buttons(*pairs: tuple[str, str, str]) -> Block:
    """A row of buttons: label, action id and value of each."""
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "text": {"type": "plain_text", "text": fit(one_line(label), BUTTON), "emoji": True},
                "action_id": action,
                "value": value,
            }
            for label, action, value in pairs
        ],
    }


def code_block(text: str, limit: int) -> str:
    """Raw ``text`` as a code block of at most ``limit`` characters."""
    return f"```\n{fit(text.strip().replace('```', chr(39) * 3), limit - 8)}\n```"


def code(text: str, limit: int = 300) -> str:
    """Raw ``text`` as inline code, or as it is where it holds a back-tick."""
    shown = fit(one_line(text), limit)
    return shown if "`" in shown or not shown else f"`{shown}`"


def one_line(text: str) -> str:
    """``text`` with every run of white space as one blank."""
    return " ".join(text.split())


def clip(mrkdwn: str, limit: int) -> str:
    """Ready markup cut at the end of a line, so that no markup is torn; a single over-long line is cut at a blank."""
    if size(mrkdwn) <= limit:
        return mrkdwn
    kept: list[str] = []
    room = limit - 2
    for line in mrkdwn.split("\n"):
        if size(line) + 1 > room:
            break
        kept.append(line)
        room -= size(line) + 1
    if not kept:
        cut = mrkdwn[: (limit - 2) // 2]
        return cut[: cut.rfind(" ")] + " …" if " " in cut else "…"
    text = "\n".join(kept)
    if text.count("```") % 2:
        text = text[: text.rfind("```")].rstrip()
    return f"{text}\n…" if text else "…"


def _mrkdwn(text: str) -> dict[str, Any]:
    """A text object that Slack does not search for names and addresses to link (``verbatim``)."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}
