"""What of a question leaves for a model: no people, no secrets, no names of what runs in the clusters."""

import re
from collections.abc import Callable

from rules.questions.entities import image
from rules.questions.objects import objects
from rules.questions.text import clean, fold
from service.store.questions import anonymous

LENGTH = 2000
"""Characters; a pasted log says what it has to say in its first lines."""
_ROUNDS = 40
"""Names that are looked for in one text."""

_ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b", re.IGNORECASE
)
_HOST = re.compile(
    r"(?<![\w.@-])(?P<host>(?:[a-z0-9](?:[\w-]*\w)?\.){2,}[a-z]{2,})\b(?::\d+)?(?:/[^\s,;)\"']*)?", re.IGNORECASE
)
_PUBLIC = ("kubernetes.io", "k8s.io", "nvidia.com", "amd.com")
"""Hosts that are parts of the names of labels, taints and resources."""
_WORD = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.IGNORECASE)

Known = Callable[[str], str | None]
"""The sort of object (``node``, ``pod`` ...) that has a name in the clusters; None for a word that is no such name."""


def discreet(text: str, known: Known) -> str:
    """The question as it may leave.

    Args:
        text: as people typed it.
        known: which words are names of objects in the clusters; asked for every word in lower case.
    """
    said = clean(anonymous(text))
    for _ in range(_ROUNDS):
        reference = image(said)
        if reference is None:
            break
        said = said.replace(reference, "<image>")
    said = _WORD.sub(lambda match: _named(match[0], known), said)
    for _ in range(_ROUNDS):
        found = objects(fold(said))
        hidden = said
        for sort, name in found.items():
            hidden = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", f"<{sort}>", hidden, flags=re.IGNORECASE)
        if hidden == said:
            break
        said = hidden
    said = _ADDRESS.sub("<address>", said)
    said = _HOST.sub(lambda match: match[0] if match["host"].lower().endswith(_PUBLIC) else "<host>", said)
    return said[:LENGTH]


def _named(word: str, known: Known) -> str:
    sort = known(word.lower())
    return word if sort is None else f"<{sort}>"
