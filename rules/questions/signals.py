"""Shapes of a text that say what sort of message it is, whatever its words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rules.questions.text import LOG_LINE

_CODE = re.compile(r"[{}=\[\]<>|\\]|::|//|--\w|\w_\w|\b\w+\.\w+/\w+")
_MEMORY = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?\s?(?:gi?b|gigas?|giga|gbytes?|g)\b")
_MONEY = re.compile(r"[$€]\s?\d|\d\s?(?:[$€]|usd|eur|euros?|dollar\w*|dolar\w*|bucks|pavos)")
_NODES = re.compile(r"\b\d+\s?(?:nodes?|nodos?|nodi|nodo|machines|maquinas|macchine)\b")
_COUNTED = re.compile(r"\b\d{1,4}\s?(?:x|×|gpus?\b|cards?\b|tarjetas?\b|schede\b)")
_PODS = re.compile(
    r"\b\d+\s?(?:pods?|replicas?|repliche|models?|modelos?|modelli|modello|notebooks?|users?|usuarios?|utenti|jobs?|"
    r"services?|servicios?|servizi|students|alumnos|studenti|containers?)\b"
)
_TOGETHER = re.compile(r"\b(?:nccl|cuda|nvml|nvrm|torch|runtimeerror|traceback|error:|failed|fatal|warn)\b")
_TEMPERATURE = re.compile(r"\b0/\d+ (?:nodes|nodos|nodi)\b")
_YEARS = re.compile(r"\b(?:1|3|un|uno|tres|tre|one|three)\s?(?:y|yr|years?|anos?|ann[oi])\b")


def signals(text: str, folded: str, named: Mapping[str, Any]) -> Iterator[str]:
    """Names of the shapes that a text has."""
    if "?" in text:
        yield "asks"
    if LOG_LINE.search(text):
        yield "log"
    if len(_CODE.findall(text)) >= 4:
        yield "code"
    length = len(folded.split())
    yield "short" if length <= 4 else "line" if length <= 25 else "long"
    for name, pattern in (
        ("memory", _MEMORY), ("money", _MONEY), ("nodes", _NODES), ("counted", _COUNTED), ("pods", _PODS),
        ("raised", _TOGETHER), ("scheduler", _TEMPERATURE), ("years", _YEARS),
    ):  # fmt: skip
        if pattern.search(folded):
            yield name
    listed = named.get("provider")
    if listed:
        yield "one_provider" if len(listed) == 1 else "providers"
    if "driver" in named and ("cuda" in named or "image" in named):
        yield "driver_and_cuda"
    if len(named.get("gpu", ())) > 1:
        yield "several_gpus"
    if not named:
        yield "nothing_named"
