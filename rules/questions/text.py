"""Chat text, cleaned of markup, and cut into words and sentences that the lexicon can be laid over."""

import html
import re
import unicodedata
from typing import NamedTuple

MAX_CHARACTERS = 4000
"""Longer messages are read up to here: a pasted log repeats itself, and reading stays within its time budget."""

_MENTION = re.compile(r"<[@#!][^>|]*(?:\|([^>]*))?>")
_LINK = re.compile(r"<(?:https?://|mailto:)[^>|]*(?:\|([^>]*))?>|https?://\S+")
_EMOJI = re.compile(r"(?<![\w:]):[a-z0-9_+'-]{2,40}:(?![\w:])")
_STYLE = re.compile(r"(?<![\w*~_`])[*_~]+(?=\S)|(?<=\S)[*_~]+(?![\w*~_`])")
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": " ", "´": "'", "“": '"', "”": '"', "«": '"', "»": '"'})
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:'t\b)?")
_SENTENCE = re.compile(r"[?!;\n]+|\.(?=\s|$)|…")

LOG_LINE = re.compile(
    r"\bcuda driver version is|driver/library version|could not load nvml|failed to initialize nvml|nvrm:|\bxid\b"
    r"|cuda error|unsatisfied condition|nccl (?:warn|info)|traceback \(most recent|\b\w+(?:error|exception): "
    r"|\b\d+/\d+ nodes are available|insufficient nvidia\.com/gpu|didn't trigger scale-up|node\(s\) didn't match"
    r"|allocate failed|requests too large|tasks in gang unschedulable|multi-attach error|the pod .{0,60}is invalid"
    r"|\berror \d{3}:|\b(?:warning|error)\s+\w+\s+\d+[smh]\b|\blevel=(?:error|warn)|\b\d{4}-\d\d-\d\dt\d\d:\d\d",
    re.IGNORECASE,
)
"""Where a pasted log line or error message begins."""


class Word(NamedTuple):
    """A word of the text: ``folded`` is lower case without accents, ``start``/``end`` index the cleaned text."""

    folded: str
    lower: str
    start: int
    end: int


class Sentence(NamedTuple):
    """A run of words up to a full stop, question mark or line end; ``asks`` when it ends in a question mark."""

    words: tuple[Word, ...]
    text: str
    asks: bool


def clean(text: str) -> str:
    """The text without Slack markup: mentions, link targets, emoji and style marks go, what people typed stays."""
    text = unicodedata.normalize("NFKC", text[: MAX_CHARACTERS * 2])[:MAX_CHARACTERS]
    text = _MENTION.sub(lambda match: f" {match[1] or ''} ", text)
    text = _LINK.sub(lambda match: f" {match[1] or ''} ", text)
    text = html.unescape(text)
    text = _EMOJI.sub(" ", _INVISIBLE.sub("", text)).translate(_APOSTROPHES)
    text = _STYLE.sub("", text)
    lines = (re.sub(r"^[\s>]+", "", line) for line in text.splitlines())
    return re.sub(r"[ \t\f\v\u00a0]+", " ", "\n".join(lines)).strip()


def fold(word: str) -> str:
    """Lower case without accents: what people type on a phone."""
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFD", word.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def words(text: str, offset: int = 0) -> tuple[Word, ...]:
    """The words of a cleaned text. Hyphens and slashes part words, so that time-slicing and time slicing are one; a
    number keeps its dots; English n't stays on its verb."""
    return tuple(
        Word(fold(match[0]).replace("'", ""), match[0].lower(), match.start() + offset, match.end() + offset)
        for match in _WORD.finditer(text)
    )


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a cleaned text that hold at least one word."""
    found: list[Sentence] = []
    start = 0
    for match in [*_SENTENCE.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[start:end]
        inside = words(part, start)
        if inside:
            found.append(Sentence(inside, part.strip(), bool(match) and "?" in (match[0] if match else "")))
        start = match.end() if match else end
    return tuple(found)
