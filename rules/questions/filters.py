"""What a question asks of providers: filters, fields, names, as :mod:`rules.questions.data` ``filters.yaml`` spells
them."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from rules.questions import data
from rules.questions.entities import provider_spans

_RULED_OUT_AFTER = re.compile(
    r"\s*(?:is |are |e |es |too |also )?(?:out of the question|excluded|no thanks|esclus\w+|exclui\w+|descartad\w+)"
)
_LISTED = frozenset({"interconnect", "sharing", "shared_storage", "compliance", "region", "feature"})
"""Filters that hold a list when a text names several values."""
_AROUND = {
    "eu": frozenset({"it", "es", "de", "fr", "nl", "gb", "ie", "fi", "se", "no", "ch", "at", "pl", "pt", "be", "is"}),
    "latam": frozenset({"br", "mx", "cl", "co", "ar"}),
}
"""Regions that a country in them makes superfluous: Frankfurt in Europe is Germany."""

_AMOUNT = r"(\d+(?:[.,]\d+)?)"
_CURRENCY = r"(?:[$€]|usd\b|us\$|eur\b|euros?\b|dollars?\b|dolar(?:es)?\b|dollar[io]\b|bucks\b)"
_PRICE = re.compile(rf"({_CURRENCY})\s?{_AMOUNT}|{_AMOUNT}\s?({_CURRENCY})")
_TOTAL = re.compile(
    r"\b(?:total\w*|in tutto|overall|all together|for everything|(?:per|por) todo|nodo (?:completo|entero|intero)"
    r"|complessivamente|altogether|all in|todo junto|en conjunto|complessiv\w*|whole (?:node|cluster|box)|"
    r"(?:el|il) (?:nodo|cluster) (?:entero|intero)|por todo|per tutto|for (?:all|everything|the lot))\b"
)
_MEMORY = re.compile(
    r"(?<![\w.])(\d{1,4})\s?(?:gi?b|gigas?|gigs?|giga|g)\b(?!\s?(?:de )?(?:ram|system|disk|disco|ssd|nvme|gbps))"
)
_CARD_MEMORY = re.compile(
    r"\b(?:a100|h100|h200|v100|a800|a30|a40|l40s?|pcie|sxm\d?)[\s(-]*(?:de |da |con |with |a )?\d+\s?g(?:i?b)?\b"
)
_NODES = re.compile(
    r"\b(\d{1,4})(\s?\+)?\s?(?:x\s)?(?:(?:or|o) (?:more|mas|piu) )?(?:gpu\s|worker\s|h100\s|a100\s|h200\s|b200\s"
    r"|bare metal\s)?(?:nodes?|nodos?|nodi|machines|maquinas|macchine|servers|servidores|boxes)\b"
)
_LEAST = re.compile(
    r"(?:at least|minimum|min\b|or more|almeno|minimo|al menos|por lo menos|non meno di|no menos de|o mas|o piu|\+"
    r"|>=?|≥"
    r"|starting (?:with|at)|desde|para arriba|in su\b|upwards)"
)
_K8S = re.compile(
    r"(?:k8s|kubernetes|kube|version|versione|v)\s?(?:version\s|versione\s)?v?(1\.(?:2\d|3\d|4\d))\b"
    r"|(?<![\d.$€<=>]\s)(?<![\d.,$€<=>])\b(1\.(?:2[6-9]|3\d))\b(?!\s?(?:usd|eur|€|\$|dol|per|/|all|la hora|an hour|a "
    r"h))"
)
_HOURS = re.compile(
    r"\b(\d{1,3})\s?(?:h|hs|hrs?|hours?|horas?|ore|ora)\b\s?(?:/|a la|alla|a|per|al|por|each|every|de|di"
    r"|cada)?\s?(?:the\s)?"
    r"(daily|weekly|monthly|diari\w+|giornalier\w+|semanal\w*|settimanal\w+|mensual\w*|mensil\w+|day|dia|giorno|week"
    r"|semana|settimana|month|mes|mese)\b"
)
_ALWAYS = re.compile(
    r"24/7|24x7|around the clock|las 24 horas|24 ore su 24|h24|all month|todo el mes|tutto il mese|nonstop|non stop"
)
_DAYS = re.compile(
    r"\b(\d{1,2})\s?(?:days?|dias?|giorni)\s?(?:/|a|per|al|por|the|of the)*\s?(week|semana|settimana|month|mes|mese)\b"
)
_WORKDAYS = re.compile(
    r"working days|weekdays|business days|dias laborables|laborable|entre semana|giorni lavorativi|feriali|lun-ven"
    r"|mon-fri"
)
_COUNT = re.compile(
    r"(?<![\w.,])(\d{1,4})\s?(?:x|×|\*)?\s?(?:of\s|de\s|di\s)?(?:nvidia\s|amd\s)?"
    r"(?:gpus?\b|cards?\b|tarjetas?\b|graficas?\b|schede\b|scheda\b|accelerators?\b"
    r"|(?:a100|a10g?|a30|a40|h100|h200|b200|b300|gb200|gh200|l4|l40s?|t4|v100|mi300x?|mi325x|mi355x|rtx|[2345]0[5-9]0|a6000)s?\b)"
)
_REVERSED = re.compile(r"\b(?:a100|h100|h200|b200|l4|l40s|t4|v100|mi300x)s?\s?[x×]\s?(\d{1,4})\b")
_SPELLED = {
    "one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16, "single": 1, "una": 1, "un": 1, "uno": 1,
    "dos": 2, "cuatro": 4, "ocho": 8, "due": 2, "quattro": 4, "otto": 8, "sedici": 16, "dieciseis": 16, "una sola": 1,
    "three": 3, "tres": 3, "tre": 3, "six": 6, "seis": 6, "sei": 6, "dual": 2, "a pair of": 2, "un paio di": 2,
    "un par de": 2,
}  # fmt: skip
_WORDED = re.compile(
    r"\b(" + "|".join(sorted(_SPELLED, key=lambda word: -len(word))) + r")\s(?:nvidia\s|amd\s|sola\s|singola\s)?"
    r"(?:gpus?\b|cards?\b|tarjetas?\b|schede?\b|(?:rtx\s)?(?:a100|a10g?|a30|a40|h100|h200|b200|b300|l4|l40s?|t4|v100|mi300x?"
    r"|4090|3090|5090|a6000)s?\b)"
)
_SINGLE = re.compile(r"\b(?:a100|h100|h200|b200|b300|l4|l40s?|t4|v100|[345]090) (?:singol[ao]|sola|single)\b")
HOURS_PER_MONTH = 730.0
"""Hours of an average month, as the price lists of the large clouds count it."""
WEEKS_PER_MONTH = 52 / 12


class _File(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, dict[str, list[str]]]
    fields: dict[str, list[str]]
    sort: dict[str, list[str]]
    hyperscalers: str
    exclude: str


@lru_cache(maxsize=1)
def _file() -> _File:
    return data.load("filters.yaml", _File)


def _union(listed: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in listed))


@lru_cache(maxsize=1)
def _values() -> dict[str, tuple[tuple[str, re.Pattern[str]], ...]]:
    return {
        name: tuple((value, _union(listed)) for value, listed in values.items())
        for name, values in _file().values.items()
    }


@lru_cache(maxsize=1)
def _fields() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _union(listed)) for name, listed in _file().fields.items())


@lru_cache(maxsize=1)
def _others() -> tuple[re.Pattern[str], re.Pattern[str], tuple[tuple[str, re.Pattern[str]], ...]]:
    file = _file()
    return (
        re.compile(file.hyperscalers),
        re.compile(rf"(?<!\w){file.exclude}\s*$"),
        tuple((name, _union(listed)) for name, listed in file.sort.items()),
    )


def vocabulary() -> Mapping[str, tuple[str, ...]]:
    """Values of the filters that have a closed list of them, and of ``sort``."""
    file = _file()
    return {name: tuple(values) for name, values in file.values.items()} | {"sort": tuple(file.sort)}


def fields(folded: str) -> tuple[str, ...]:
    """What a folded text wants to know of a provider, in the order of the file."""
    return tuple(name for name, pattern in _fields() if pattern.search(folded))


def filters(folded: str, named: Mapping[str, Any], text: str | None = None) -> dict[str, Any]:
    """The filters in a folded text; ``named`` are its exact entities."""
    found: dict[str, Any] = {}
    for name, values in _values().items():
        hits = [value for value, pattern in values if pattern.search(folded)]
        if name == "region":
            hits = [value for value in hits if _AROUND.get(value, frozenset()).isdisjoint(hits)]
        if not hits:
            continue
        value: Any = hits if name in _LISTED and len(hits) > 1 else hits[0]
        found[name] = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    found |= _names(folded, text)
    found |= _counts(folded, named)
    found |= _money(_spelled_out(folded), found)
    sort = [name for name, pattern in _others()[2] if pattern.search(folded)]
    if sort:
        found["sort"] = sort[0]
    wanted = fields(folded)
    if wanted:
        found["fields"] = list(wanted)
    return found


def _names(folded: str, text: str | None) -> dict[str, Any]:
    """Providers asked for and providers ruled out."""
    hyperscalers, ruled_out, _ = _others()
    wanted: list[str] = []
    excluded: list[str] = []
    end, out = -1, False
    for provider, start, stop in provider_spans(folded, text):
        # "not AWS or Azure": what joins two names carries the exclusion on.
        joined = end >= 0 and re.fullmatch(
            r"\s*(?:,|/|&|and|or|nor|y|o|ni|e|ed|oppure|né|ne)?\s*(?:or|and|o|y|e|ni)?\s*", folded[end:start]
        )
        out = out if joined else bool(ruled_out.search(folded[:start]) or _RULED_OUT_AFTER.match(folded[stop:]))
        (excluded if out else wanted).append(provider)
        end = stop
    big = hyperscalers.search(folded)
    if big and ruled_out.search(folded[: big.start()].rstrip() + " "):
        excluded += ["aws", "gcp", "azure"]
    found: dict[str, Any] = {}
    if wanted:
        found["providers"] = list(dict.fromkeys(wanted))
    if excluded:
        found["exclude"] = list(dict.fromkeys(excluded))
    return found


def count_of_gpus(folded: str) -> int | None:
    """How many cards a text speaks of; the first number that stands before them."""
    for pattern in (_COUNT, _REVERSED):
        match = pattern.search(folded)
        if match:
            return int(match[1])
    worded = _WORDED.search(folded)
    if worded:
        return _SPELLED[worded[1]]
    return 1 if _SINGLE.search(folded) else None


def _counts(folded: str, named: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    models = named.get("gpu")
    if models:
        found["gpu"] = models[0] if len(models) == 1 else list(models)
    count = count_of_gpus(folded)
    if count is not None:
        found["gpu_count"] = count
    counted = _spelled_out(folded)
    nodes = _NODES.search(counted)
    if nodes:
        name = "min_nodes" if _LEAST.search(counted[max(0, nodes.start() - 16) : nodes.end() + 18]) else "nodes"
        found[name] = int(nodes[1])
    memory = [int(match[1]) for match in _MEMORY.finditer(_CARD_MEMORY.sub(" ", folded)) if 4 <= int(match[1]) <= 1600]
    if memory:
        found["min_vram_gb"] = max(memory)
    version = _K8S.search(folded)
    if version:
        found["k8s_version"] = version[1] or version[2]
    hours = _hours(folded)
    if hours:
        found["hours_per_month"] = hours
    return found


_NUMBERS = re.compile(r"\b(" + "|".join(word for word in _SPELLED if len(word) > 2 and " " not in word) + r")\b(?=\s)")


def _spelled_out(folded: str) -> str:
    """The text with small numbers in digits."""
    return _NUMBERS.sub(lambda match: str(_SPELLED[match[1]]), folded)


def _hours(folded: str) -> float | None:
    if _ALWAYS.search(folded):
        return HOURS_PER_MONTH
    match = _HOURS.search(folded)
    if not match:
        return None
    hours, unit = float(match[1]), match[2]
    if unit.startswith("m"):
        return hours
    if unit.startswith(("w", "s")):
        return round(hours * WEEKS_PER_MONTH, 1)
    days = _DAYS.search(folded)
    if days:
        return round(hours * float(days[1]) * (1.0 if days[2] in ("month", "mes", "mese") else WEEKS_PER_MONTH), 1)
    return round(hours * 5 * WEEKS_PER_MONTH, 1) if _WORKDAYS.search(folded) else round(hours * HOURS_PER_MONTH / 24, 1)


def _money(folded: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """A price that must not be passed, per card and hour or for all of them."""
    for match in _PRICE.finditer(folded):
        sign = match[1] or match[4]
        amount = float((match[2] or match[3]).replace(",", "."))
        euro = sign.startswith(("€", "eur"))
        if _TOTAL.search(folded) and not euro:
            return {"max_total_usd_hour": amount, "currency": "usd"}
        return {"max_price_eur_hour" if euro else "max_price_usd_hour": amount, "currency": "eur" if euro else "usd"}
    return {}
