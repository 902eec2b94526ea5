"""A message that leans on the one before it: "and on GKE?", "e in euro?", "¿y con dos nodos?".

A message is taken for a follow-up when it is short, and either begins as one ("and", "what about", "y", "e") or says
nothing that can be read surely by itself, and names something that has a place in the question before: a provider, a
GPU, a region, a price, a version, an object. That takes the place of what was there; the rest stays. A message that
is a question of its own takes nothing from before.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from rules.answers import Kind, Previous
from rules.questions.details import details
from rules.questions.features import features
from rules.questions.reading import Part, Reading
from rules.questions.text import fold

SHORT_WORDS = 9
"""A longer message is a question of its own, unless it begins as a follow-up."""
LONGEST_WORDS = 14

_OPENS = re.compile(
    r"^[\s¿¡,.]*(?:ok(?:ay)?[\s,]+|vale[\s,]+|va bene[\s,]+|thanks[\s,]+|gracias[\s,]+|grazie[\s,]+)?"
    r"(?:and|but|or|what about|how about|what if|same (?:for|on|with)|also|then|instead|only|just|"
    r"y|e|ed|pero|ma|o|oppure|entonces|allora|invece|solo|tambien|anche|lo mismo|lo stesso|que tal|che dici di|"
    r"y si|e se|y que tal|e per|e su|e con|y en|y con|y para)\b"
)
_WHY = re.compile(
    r"^[\s¿¡]*(?:and\s|y\s|e\s|but\s|pero\s|ma\s)?"
    r"(?:why(?: not)?|por ?que(?: no)?|perche(?: no)?|how so|como asi)[\s?!.]*$"
)
_MORE = re.compile(
    r"^[\s¿¡]*(?:tell me more|more details?|more|explain|cuentame mas|mas detalles?|explicamelo|explica|dimmi di piu"
    r"|piu dettagli|spiegami(?: meglio)?|spiega)[\s?!.]*$"
)
_CURRENCIES = (
    (re.compile(r"\b(?:eur|euros?)\b|€"), "eur"),
    (re.compile(r"\b(?:usd|dollars?|dolares|dollari)\b|\$"), "usd"),
)

FIELD_OF_TOPIC: Mapping[str, str] = {
    "drivers_preinstalled": "drivers_preinstalled",
    "multiple_workloads_per_gpu": "sharing",
    "sharing_options": "sharing",
    "device_plugin": "device_plugin",
    "networking": "interconnect",
    "multinode_checklist": "interconnect",
    "distributed_training": "interconnect",
    "spot": "spot_notice",
    "billing_idle": "scale_to_zero",
}
"""What a topic becomes when the follow-up names one provider."""

_SLOTS: Mapping[Kind, tuple[str, ...]] = {
    "compat": ("driver", "cuda", "image", "gpu", "framework"),
    "cluster": ("node", "pod", "namespace", "cluster", "pool", "gpu"),
    "error": ("node", "pod", "namespace", "cluster", "gpu", "driver", "cuda", "image"),
    "faq": ("gpu", "cluster", "node"),
    "sizing": (
        "params_b", "precision", "count", "item", "vram_gb", "gpu_memory_gb", "gpu", "gpus", "nodes", "context_tokens",
        "profile", "sharing", "model",
    ),
}  # fmt: skip


def follow(reading: Reading, previous: Previous | None) -> Reading:
    """The reading in the light of the message before; as it is where it does not lean on it."""
    if previous is None or previous.kind == "out_of_scope" or len(reading.parts) != 1:
        return reading
    folded = fold(reading.text)
    words = len(folded.split())
    opens = bool(_OPENS.match(folded))
    main = reading.main
    asks_on = bool(_WHY.match(folded) or _MORE.match(folded))
    if not asks_on:
        if words > (LONGEST_WORDS if opens else SHORT_WORDS):
            return reading
        if not opens and main.sure and main.kind != "out_of_scope" and not _bare(main, words):
            return reading
    merged = _merged(main, reading.text, folded, previous, asks_on)
    if merged is None:
        return reading
    return msgspec.structs.replace(reading, parts=(merged,), entities={**reading.entities, **merged.entities})


def _bare(main: Part, words: int) -> bool:
    """A few words that only name things: a search with nothing but a provider or a card in it."""
    return words <= 4 and main.kind in ("provider", "compat", "sizing") and main.confidence < 0.9


class _Merge(msgspec.Struct):
    """The question before, and what the follow-up puts into it (``taken``)."""

    kind: Kind
    label: str
    filters: dict[str, Any]
    entities: dict[str, Any]
    provider: str | None
    field: str | None
    taken: dict[str, Any] = {}


def _merged(main: Part, text: str, folded: str, previous: Previous, asks_on: bool) -> Part | None:
    merge = _Merge(
        previous.kind,
        previous.topic or previous.intent or previous.cause or previous.field or _LABELS.get(previous.kind, ""),
        dict(previous.filters),
        dict(previous.entities),
        previous.provider,
        previous.field,
    )
    if asks_on:
        merge.taken = {"": text.strip()}
    elif merge.kind == "provider":
        _into_search(merge, text, folded)
    elif merge.kind == "faq":
        _into_topic(merge, text)
    else:
        _into_entities(merge, text, folded)
    if not merge.taken:
        return None
    shown = ", ".join(f"{name} {value}".strip() for name, value in merge.taken.items())
    return msgspec.structs.replace(
        main,
        kind=merge.kind,
        label=merge.label,
        sure=True,
        rivals=(),
        filters=merge.filters,
        provider=merge.provider,
        field=merge.field if merge.kind == "provider" else None,
        entities=merge.entities,
        matched=(f"follows {merge.kind} {merge.label}: {shown}",),
    )


_LABELS: Mapping[Kind, str] = {"provider": "search", "compat": "check", "sizing": "plan"}


def _into_search(merge: _Merge, text: str, folded: str) -> None:
    found = features(text)
    told = details("provider", "search", found)
    taken = {name: value for name, value in told.filters.items() if name not in ("providers", "fields")}
    for pattern, currency in _CURRENCIES:
        if pattern.search(folded) and not any(name.startswith("max_") for name in taken):
            taken["currency"] = currency
    clouds = list(found.entities.get("provider") or ())
    merge.filters |= taken
    if clouds:
        merge.filters["providers"] = clouds
        if len(clouds) == 1 and (merge.field or merge.provider):
            merge.provider, merge.filters = clouds[0], {**merge.filters, "providers": clouds}
        taken["provider"] = ", ".join(clouds)
    merge.taken = taken
    merge.label = merge.field if merge.field and merge.provider else "search"


def _into_topic(merge: _Merge, text: str) -> None:
    found = features(text)
    clouds = found.entities.get("provider") or []
    if len(clouds) != 1:
        merge.taken = _new(text, _SLOTS["faq"], "faq", merge.label)
        merge.entities |= merge.taken
        return
    merge.taken, merge.provider = {"provider": clouds[0]}, clouds[0]
    field = FIELD_OF_TOPIC.get(merge.label)
    if field is not None:
        merge.kind, merge.label, merge.field, merge.filters = "provider", field, field, {"providers": list(clouds)}


def _into_entities(merge: _Merge, text: str, folded: str) -> None:
    merge.taken = _new(text, _SLOTS[merge.kind], merge.kind, merge.label)
    if merge.kind == "sizing" and not merge.taken and "count" in merge.entities:
        numbers = _BARE_COUNT.findall(folded)
        merge.taken = {"count": int(numbers[0])} if len(numbers) == 1 else {}
    if merge.kind == "compat":
        merge.taken = _versions(folded, merge.entities) | merge.taken
        if "image" in merge.taken:
            merge.entities.pop("cuda", None)
    if merge.kind == "cluster" and "cluster" in merge.taken:
        merge.entities = {name: value for name, value in merge.entities.items() if name not in ("node", "pod")}
    merge.entities |= merge.taken


_BARE_VERSION = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){0,2})(?![\w.]*\w)")


def _versions(folded: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """A number by itself is the driver or the CUDA version, whichever it can be: branches have three digits."""
    found: dict[str, Any] = {}
    for number in _BARE_VERSION.findall(folded):
        major = int(number.split(".")[0])
        if 300 <= major <= 999 and "driver" in before:
            found["driver"] = number
        elif 9 <= major <= 19 and ("cuda" in before or "driver" in before):
            found["cuda"] = number
    return found


_BARE_COUNT = re.compile(r"\b(\d{1,4})\b")


def _new(text: str, names: tuple[str, ...], kind: Kind, label: str) -> dict[str, Any]:
    """What the words name of ``names``, read as a question of ``kind``."""
    told = details(kind, label, features(text)).entities
    return {name: told[name] for name in names if name in told}
