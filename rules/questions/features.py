"""What of a text is counted: concepts of the field in any language, exact things it names, stems, pairs, letter groups.

The features carry no position and no language, so that what is learnt from a line in one language helps in the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from rules.questions import data
from rules.questions.causes import Trace, traces
from rules.questions.entities import entities, is_gpu_model
from rules.questions.filters import filters
from rules.questions.language import function_words
from rules.questions.lexicon import Lexicon, lexicon
from rules.questions.objects import objects
from rules.questions.ratings import rate
from rules.questions.signals import signals
from rules.questions.text import Word, fold, words
from rules.questions.workloads import workload

VERSION = 5
"""Raised when the same text gives other features than before: weights of another version do not fit."""
MAX_WORDS = 160
"""Of a longer text its beginning and its end are read: a pasted log repeats itself."""
STEM = 6
WEIGHTS = {"g": 1.0, "l": 1.0, "e": 1.0, "x": 1.4, "t": 1.0, "p": 0.6, "s": 0.7, "b": 0.5, "c": 0.2, "k": 0.7, "f": 0.8}
"""How strongly a sort of feature counts: glossary, lexicon, entity, exact message, pointer, pair of concepts, stem,
pair of
stems, letters, skipping pair of stems, filter or size."""
_MEMORY = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?\s?(?:gi?b|gigas?|giga|gbytes?|g)\b")
_CARD_MEMORY = re.compile(r"\b(?:[a-z]{1,3}\d{1,4}[a-z]{0,2})[\s(-]*(?:de |da |con |with )?\d+\s?gi?b?\b")
_FLEET = re.compile(
    r"\b(\d{1,4})\s?x?\s?(?:(\d)x\s?)?(?:gpus?\b|(?:nvidia\s)?(?:a100|h100|h200|b200|b300|gb200|mi300x?|l40s)s?\b)"
)
FLEET_GPUS = 9
"""So many GPUs stand in more than one node."""
RULE_SCALE = 4.0
"""A rule of this weight counts as one."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*[a-z]{0,3}$")


class Features(msgspec.Struct, frozen=True):
    """Attributes:
    values: feature -> weight in the text.
    words: words per concept, for people who ask why.
    entities: what the text names exactly; filters, workload, objects: what it asks of a provider, of a card, and which
        Kubernetes objects it names.
    traces: error messages and pointers to a cause.
    """

    values: dict[str, float]
    words: dict[str, str]
    entities: dict[str, Any]
    filters: dict[str, Any]
    workload: dict[str, Any]
    objects: dict[str, Any]
    traces: tuple[Trace, ...]


class _Concept(msgspec.Struct, forbid_unknown_fields=True):
    any: str = ""
    en: str = ""
    es: str = ""
    it: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    concepts: dict[str, _Concept]


@lru_cache(maxsize=1)
def glossary() -> Lexicon:
    """The small words of the field."""
    file = data.load("glossary.yaml", _File)
    return Lexicon({}, {name: msgspec.structs.asdict(concept) for name, concept in file.concepts.items()})


def _tokens(corrected: Iterable[str]) -> list[str]:
    """The words as they are counted: a model, a number is one of its sort."""
    found: list[str] = []
    for word in corrected:
        if is_gpu_model(word):
            found.append("<gpu>")
        elif _NUMBER.match(word):
            found.append("<1>" if word == "1" else "<n>")
        else:
            found.append(word)
    return found


def _shortened(found: Sequence[Word]) -> tuple[Word, ...]:
    if len(found) <= MAX_WORDS:
        return tuple(found)
    return (*found[: MAX_WORDS // 2], *found[-MAX_WORDS // 2 :])


def features(text: str, whole: Features | None = None) -> Features:
    """The features of a cleaned text.

    Args:
        text: a message, or a stretch of one.
        whole: features of the message that a stretch is from; what that does not have is not looked for again.
    """
    folded = fold(text)
    read = _shortened(words(text))
    corrected = lexicon().correct(read)
    values: dict[str, float] = {}
    spoken: dict[str, str] = {}
    row: list[str] = []
    for match in glossary().find(corrected):
        name = f"g:{match.concept}"
        values[name] = WEIGHTS["g"]
        spoken.setdefault(match.concept, text[read[match.start].start : read[match.end - 1].end])
        row.append(match.concept)
    found: set[str] = set()
    for match in lexicon().find(corrected):
        found.add(match.concept)
        values[f"l:{match.concept}"] = WEIGHTS["l"]
        spoken.setdefault(match.concept, text[read[match.start].start : read[match.end - 1].end])
    for index, first in enumerate(row):
        for second in row[index + 1 : index + 4]:
            if first != second:
                values[f"p:{min(first, second)}+{max(first, second)}"] = WEIGHTS["p"]
    named = entities(text, folded, corrected)
    for name in named:
        values[f"e:{name}"] = WEIGHTS["e"]
    for signal in signals(text, folded, named):
        values[f"e:{signal}"] = WEIGHTS["e"]
    values |= _subject(row, read, spoken, named)
    asked = filters(folded, named, text) if whole is None or whole.filters else {}
    sized = workload(folded, named) if whole is None or whole.workload else {}
    things = objects(folded) if whole is None or whole.objects else {}
    values |= _shapes(asked, sized, things)
    found |= set(_computed(folded, corrected, named, values))
    for name, score in rate(found, len(read)).items():
        values[f"r:{name}"] = min(1.5, score / RULE_SCALE)
    shown = traces(folded) if whole is None or whole.traces else ()
    for trace in shown:
        values[f"{'x' if trace.exact else 't'}:{trace.cause}"] = WEIGHTS["x" if trace.exact else "t"]
    _letters_and_stems(_tokens(corrected), values)
    return Features(values, spoken, named, asked, sized, things, shown)


FIELD = frozenset(
    {
        "t_gpu", "t_node", "t_pool", "t_pod", "t_namespace", "t_cluster", "t_k8s", "t_driver", "t_cuda", "t_toolkit",
        "t_plugin", "t_operator", "t_model", "t_notebook", "t_inference", "t_training", "t_batch", "t_distributed",
        "t_gang", "t_rdma", "t_spot", "t_timeslicing", "t_mps", "t_mig", "t_hami", "t_amd", "t_arm", "t_shm",
        "t_autoscaler", "t_storage", "t_provider_search", "t_managed", "t_baremetal", "t_monitor", "t_vm",
        "t_controlplane", "t_egress", "e_nccl", "e_fabric", "e_hardware",
    }
)  # fmt: skip
"""Concepts that only talk of machines and clusters holds."""


def _shapes(asked: Mapping[str, Any], sized: Mapping[str, Any], things: Mapping[str, Any]) -> dict[str, float]:
    """Which filters, sizes and objects are named, whatever their values."""
    found = {f"f:{name}": WEIGHTS["f"] for name in asked if name != "fields"}
    found |= {f"f:field:{name}": WEIGHTS["f"] for name in asked.get("fields", ())}
    found |= {f"w:{name}": WEIGHTS["f"] for name in sized}
    found |= {f"o:{name}": WEIGHTS["f"] for name in things}
    several = len(asked.keys() - {"fields", "gpu", "gpu_count", "vendor", "nodes", "sharing", "feature", "managed"})
    if several > 1:
        found["f:several"] = 1.0
    return found


def _subject(
    row: Sequence[str], read: Sequence[Word], spoken: Mapping[str, str], named: Mapping[str, Any]
) -> dict[str, float]:
    """Whether anything of the field is named, and where not, whether something else is: "which one is better?" lacks a
    subject, "which restaurant is better?" has another one."""
    if named or not FIELD.isdisjoint(row):
        return {}
    covered = {word.folded for text in spoken.values() for word in words(text)}
    small = function_words()
    other = [w.folded for w in read if len(w.folded) > 3 and w.folded not in small and w.folded not in covered]
    return {"e:no_subject": 1.0} if not other else {"e:other_subject": 1.0}


def _computed(
    folded: str, corrected: Sequence[str], named: Mapping[str, Any], values: Mapping[str, float]
) -> Iterator[str]:
    """Concepts of the rules that are shapes of the text or exact entities."""
    for concept, entity in (
        ("provider_name", "provider"), ("driver_version", "driver"), ("cuda_version", "cuda"),
        ("image_reference", "image"), ("parameters_named", "parameters_billion"),
    ):  # fmt: skip
        if entity in named:
            yield concept
    if "cuda" in corrected:
        yield "cuda_named"
    if "e:log" in values:
        yield "log_line"
    # The memory of a card (A100 80GB) says which card it is, not how much something needs.
    if _MEMORY.search(_CARD_MEMORY.sub(" ", folded)):
        yield "memory_named"
    fleet = _FLEET.search(folded)
    if fleet and int(fleet[1]) * int(fleet[2] or 1) >= FLEET_GPUS:
        yield "fleet"


def _letters_and_stems(tokens: Sequence[str], values: dict[str, float]) -> None:
    stems = [token[:STEM] if token.isalpha() else token for token in tokens]
    for index, stem in enumerate(stems):
        values[f"s:{stem}"] = WEIGHTS["s"]
        if index + 1 < len(stems):
            values[f"b:{stem} {stems[index + 1]}"] = WEIGHTS["b"]
        if index + 2 < len(stems):
            values[f"k:{stem} . {stems[index + 2]}"] = WEIGHTS["b"] * WEIGHTS["k"]
    for token in set(tokens):
        if token.isalpha() and len(token) > 3:
            padded = f"^{token}$"
            for start in range(len(padded) - 3):
                values[f"c:{padded[start : start + 4]}"] = WEIGHTS["c"]
