"""Slack's text markup: reading what people typed, and writing text that cannot turn into markup.

Source of the syntax: https://docs.slack.dev/messaging/formatting-message-text/.
"""

import re

MARKUP = re.compile(r"<([^<>\n]*)>")
FENCE = re.compile(r"```(.*?)```", re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
EMPHASIS = re.compile(r"(?<![\w*_~])([*_~])(?=\S)([^\n]*?\S)\1(?![\w*_~])")
EMOJI = re.compile(r"(?<!\S):[a-z0-9_+'-]+(?:::skin-tone-\d)?:(?!\S)")
CODE_OR_TEXT = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
TYPOGRAPHIC = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202f": " ", "\u200b": None})
CONTROL = {code: None for code in range(32) if chr(code) not in "\n\t"} | {127: None}


def question(text: str) -> str:
    """What a person asked, as plain text.

    Mentions of users go, channels and links become what is seen on the screen, entities become characters, emphasis and
    code marks go while their content stays as it is; lines are kept, and within code blocks also their indentation,
    since pasted logs and manifests need them.
    """
    parts: list[str] = []
    end = 0
    for code in CODE_OR_TEXT.finditer(text):
        parts.extend((_prose(text[end : code.start()]), _code(code.group())))
        end = code.end()
    parts.append(_prose(text[end:]))
    return re.sub(r"\n{3,}", "\n\n", "".join(parts).translate(CONTROL)).strip()


def _prose(text: str) -> str:
    text = EMPHASIS.sub(r"\2", EMPHASIS.sub(r"\2", MARKUP.sub(_seen, text)))
    text = unescape(EMOJI.sub("", text)).translate(TYPOGRAPHIC)
    return re.sub(r" *\n *", "\n", re.sub(r"[ \t]+", " ", text))


def _code(text: str) -> str:
    content = text[3:-3] if text.startswith("```") else text[1:-1]
    lead, trail = ("\n", "\n") if text.startswith("```") else ("", "")
    return lead + unescape(MARKUP.sub(_seen, content)) + trail


def _seen(match: re.Match[str]) -> str:
    """What the screen shows for one ``<...>``."""
    target, _, label = match.group(1).partition("|")
    if target.startswith("@"):
        return ""
    if target.startswith("#"):
        return f"#{label}" if label else ""
    if target.startswith("!"):
        return label if target.startswith(("!date", "!subteam")) else ""
    return label or target.removeprefix("mailto:")


def unescape(text: str) -> str:
    """Characters for the three entities that Slack writes."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape(text: str) -> str:
    """Text that Slack shows as it is: no mention, link or date can come of it, and no control character is left."""
    clean = text.translate(CONTROL).encode("utf-8", "replace").decode("utf-8")
    return clean.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def size(text: str) -> int:
    """Length of ``text`` in UTF-16 units, the most that Slack can count for it."""
    return len(text) + sum(character > "\uffff" for character in text)


def fit(text: str, limit: int) -> str:
    """``text`` escaped, cut with an ellipsis so that no more than ``limit`` units remain (never within an entity)."""
    whole = escape(text)
    if size(whole) <= limit:
        return whole
    kept: list[str] = []
    room = limit - 1
    for character in text.translate(CONTROL):
        piece = escape(character)
        room -= size(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept).rstrip() + "…"
