"""What a sizing question names: model, size, precision, how many of what, memory per item, cards and nodes."""

import re
from collections.abc import Mapping
from typing import Any

from rules.questions.filters import count_of_gpus

_MODEL = re.compile(
    r"\b((?:llama|mistral|mixtral|qwen|gemma|phi|deepseek|falcon|gpt|codellama|command|yi|whisper|sdxl|flux|stable "
    r"diffusion|bert|nemotron|dbrx)"
    r"(?:[\s-]?(?:v?\d+(?:\.\d+)?|coder|instruct|oss|r1|v3|large|medium|small|xl|nemo|vl|chat|next))*(?:[\s-]\d+(?:x\d+)?b)?)(?!\w)"
)
_PRECISION = re.compile(
    r"\b(fp32|fp16|bf16|fp8|fp4|nvfp4|mxfp4|int8|int4|awq|gptq|q4\w*|q8\w*|4[- ]?bits?|8[- ]?bits?|16[- ]?bits?|half "
    r"precision|media precision|mezza precisione|qlora|nf4)\b"
)
_PRECISIONS = {"4bit": "int4", "4bits": "int4", "8bit": "int8", "8bits": "int8", "16bit": "fp16", "16bits": "fp16",
"awq": "int4", "gptq": "int4", "halfprecision": "fp16", "mediaprecision": "fp16", "mezzaprecisione": "fp16", "qlora":
"int4", "nf4": "int4", "q4": "int4", "q8": "int8"}  # fmt: skip
_ITEMS = re.compile(
    r"\b(\d{1,4})\s(?:[a-z~]\w*\s|\d+(?:[.,]\d+)?\s?g(?:b|ig)\s){0,2}?(pods?|replicas?|repliche|models?|modelos?|modelli|notebooks?|users?|usuarios?|utenti|jobs?|services?|"
    r"servicios?|servizi|students?|alumnos?|estudiantes|studenti|containers?|contenedores|inference\w*|endpoints?|workloads?|cargas|carichi|instances?|"
    r"instancias|istanze|people|personas|persone|data scientists?|processes|procesos|processi|experiments?"
    r"|experimentos|esperimenti|workers?|llms?|devs|tasks?|apps?|teams?|equipos?|copias|copie|trabajos|lavori|sviluppatori|desarrolladores|squadre|gruppi|sessions?|sesiones|sessioni|clients?|clientes|clienti|modelitos|modellini|servicitos|servizietti|modelazos|modelloni|programitas|programmini|scripts?|loads|rankers?|embedders?|agents?|bots?|slots?)\b"
)
_WORD_NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12, "twenty":
    20, "dos": 2,
    "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "diez": 10, "doce": 12, "veinte": 20, "due":
    2, "tre": 3,
    "quattro": 4, "cinque": 5, "sei": 6, "sette": 7, "otto": 8, "dieci": 10, "dodici": 12, "venti": 20, "fifteen": 15,
    "sixteen": 16, "thirty": 30, "forty": 40, "fifty": 50, "quince": 15, "treinta": 30, "cuarenta": 40,
    "cincuenta": 50, "quindici": 15, "sedici": 16, "trenta": 30, "quaranta": 40, "cinquanta": 50, "nine": 9, "nueve":
    9, "nove": 9,
}  # fmt: skip
_SPELLED = re.compile(r"\b(" + "|".join(_WORD_NUMBERS) + r")\b(?=\s)")
_MEMORY = re.compile(r"(?<![\w.,])(\d{1,4}(?:[.,]\d+)?)\s?(gi?b|gigas?|gigs?|giga|g|mi?b)\b(?!\.)")
_CARD_MEMORY = re.compile(
    r"\b(?:a100|h100|h200|v100|a800|a10g?|a16|a30|a40|l40s?|l4|t4|b200|mi300x|rtx \d{4}|[2345]090|a6000|6000 ada"
    r"|pcie|sxm\d?|tarjeta|scheda|card|gpus?)[\s(,-]*(?:de |da |con |with |di |of )?(\d+)\s?g(?:i?b)?\b"
    r"|\b(\d+)\s?(?:g|gb|gib|gigas?|gigs?|giga)\s(?:of\s)?(?:gpus?|cards?|tarjetas?|schede?|scheda)\b"
    r"|(?:tarjetas?|schede?|scheda|gpus?|cards?|una|una da|on|su|en) (?:de |da |of )(\d+)\s?(?:gb|gigas?|giga|g)\b"
    r"|(?:tarjetas?|schede?|scheda|gpus?|cards?) (?:de |da |of )(16|24|32|40|48|80|96|141|180|192)\b"
)
_LIST = re.compile(r"\b(\d{1,3}(?:(?:, | y | e | and | \+ )\d{1,3})+)\s?(?:gb|gigas?|giga|gib)\b")
_ALONE = re.compile(r"[x×]\s?(\d{1,3})\b(?!\s?[\w.]*b\b)")
_PARAMETERS = re.compile(r"(?<![\w.x])(\d{1,4}(?:[.,]\d+)?)\s?b(?:illion)?(?![\w-])")
_PARTED = re.compile(
    r"\b(?:slices?|splits?|partition\w*|fett[ae]|porzion[ei]|trozos?|porcion\w*|parto|partir|particion\w*|divid\w*|layout"
    r"|isolation|aislamiento|isolamento|aislad\w*|isolat\w*)\b"
)
_SHARING = (
    ("mig", re.compile(r"\bmig\b|multi-instance|\b\dg[._]\d+gb\b")),
    ("mps", re.compile(r"\bmps\b")),
    ("time_slicing", re.compile(r"time[ -]?slic\w*|timeslic\w*|time[ -]shar\w*")),
)
_CONTEXT = re.compile(
    r"\b(\d{1,4})\s?k\b(?:\s(?:tokens?|context\w*|contesto|ventana))?|\b(\d{4,7})\s(?:tokens?|token)\b"
)
_NODES = re.compile(r"\b(\d{1,4})\s?(?:gpu\s)?(?:nodes?|nodos?|nodi)\b")
_PROFILE = re.compile(r"\b(\d)g[._ ](\d{1,3})gb\b")


def workload(folded: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Entities of a sizing question in a folded text; ``named`` are its exact entities.

    Returns:
        some of ``model``, ``params_b`` (billions, or a list), ``precision`` (one or a list), ``count`` (items) and
        ``item``, ``vram_gb`` (memory per item, GB) or ``vram_gb_each`` (several), ``gpu_memory_gb`` (of a card),
        ``gpu``,
        ``gpus``, ``nodes``, ``context_tokens``, ``profile`` (MIG), ``sharing``.
    """
    counted = _SPELLED.sub(lambda match: str(_WORD_NUMBERS[match[1]]), folded)
    found = _models(folded, named) | _items(counted) | _memory(counted, named)
    models = named.get("gpu")
    if models:
        found["gpu"] = models[0] if len(models) == 1 else list(models)
    gpus = count_of_gpus(folded) or count_of_gpus(counted)
    if gpus is not None:
        found["gpus"] = gpus
    nodes = _NODES.search(counted)
    if nodes:
        found["nodes"] = int(nodes[1])
    context = _CONTEXT.search(folded)
    if context:
        found["context_tokens"] = int(context[1]) * 1024 if context[1] else int(context[2])
    profile = _PROFILE.search(folded)
    if profile:
        found["profile"] = f"{profile[1]}g.{profile[2]}gb"
    sharing = next((name for name, pattern in _SHARING if pattern.search(folded)), None)
    if sharing or _PARTED.search(folded):
        found["sharing"] = sharing or "mig"
    return found


def _models(folded: str, named: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    model = _MODEL.search(folded)
    if model:
        found["model"] = model[1].strip()
    if "parameters_billion" in named:
        sizes = [_number(size) for size in _PARAMETERS.findall(folded)]
        found["params_b"] = sizes if len(sizes) > 1 else _whole(named["parameters_billion"])
    names = [re.sub(r"[\s-]", "", match[1]) for match in _PRECISION.finditer(folded)]
    precisions = list(dict.fromkeys(_PRECISIONS.get(name, _PRECISIONS.get(name[:2], name)) for name in names))
    if precisions:
        found["precision"] = precisions[0] if len(precisions) == 1 else precisions
    return found


def _items(counted: str) -> dict[str, Any]:
    items = _ITEMS.search(counted)
    if items:
        return {"count": int(items[1]), "item": items[2]}
    alone = _ALONE.search(counted)
    return {"count": int(alone[1])} if alone else {}


def _memory(counted: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Memory of each item, and of a card where the text gives it."""
    found: dict[str, Any] = {}
    card = _CARD_MEMORY.search(counted)
    if card:
        found["gpu_memory_gb"] = int(card[1] or card[2] or card[3] or card[4])
    rest = _CARD_MEMORY.sub(" ", counted)
    listed = _LIST.search(rest)
    each = [_number(value) for value in re.findall(r"\d+", listed[1])] if listed else []
    if not each:
        each = [
            _number(value) if unit[0] == "g" else _whole(round(_number(value) / 1000, 3))
            for value, unit in _MEMORY.findall(rest)
        ]
    if len(each) > 1:
        found["vram_gb_each"] = each
    elif each and "parameters_billion" in named and "gpu" not in named and not card:
        # "a 14b on 16 GB": the size of the model is told already, so the memory is the card's.
        found["gpu_memory_gb"] = each[0]
    elif each:
        found["vram_gb"] = each[0]
    return found


def _number(text: str) -> float | int:
    return _whole(float(text.replace(",", ".")))


def _whole(value: float) -> float | int:
    return int(value) if value == int(value) else value
