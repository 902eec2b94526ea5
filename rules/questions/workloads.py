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
"awq": "int4", "gptq": "int4", "qlora": "int4", "nf4": "int4", "q4": "int4", "q8": "int8"}  # fmt: skip
_ITEMS = re.compile(
    r"\b(\d{1,4})\s(?:\w+\s){0,2}?(pods?|replicas?|repliche|models?|modelos?|modelli|notebooks?|users?|usuarios?|utenti|jobs?|services?|"
    r"servicios?|servizi|students?|alumnos?|estudiantes|studenti|containers?|contenedores|inference\w*|endpoints?|workloads?|cargas|carichi|instances?|"
    r"instancias|istanze|people|personas|persone|data scientists?|processes|procesos|processi|experiments?"
    r"|experimentos|esperimenti|workers?|llms?|devs|tasks?|apps?)\b"
)
_WORD_NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12, "twenty":
    20, "dos": 2,
    "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "diez": 10, "doce": 12, "veinte": 20, "due":
    2, "tre": 3,
    "quattro": 4, "cinque": 5, "sei": 6, "sette": 7, "otto": 8, "dieci": 10, "dodici": 12, "venti": 20,
}  # fmt: skip
_SPELLED = re.compile(r"\b(" + "|".join(_WORD_NUMBERS) + r")\b(?=\s)")
_MEMORY = re.compile(r"(?<![\w.,])(\d{1,4}(?:[.,]\d+)?)\s?(?:gi?b|gigas?|giga|g)\b(?!\.)")
_CARD_MEMORY = re.compile(
    r"\b(?:a100|h100|h200|v100|a800|a10g?|a16|a30|a40|l40s?|l4|t4|b200|mi300x|rtx \d{4}|[2345]090|a6000|6000 ada"
    r"|pcie|sxm\d?|tarjeta|scheda|card|gpus?)[\s(,-]*(?:de |da |con |with |di |of )?(\d+)\s?g(?:i?b)?\b"
    r"|\b(\d+)\s?g(?:i?b)?\s(?:gpus?|cards?|tarjetas?|schede?|vram)\b"
)
_CONTEXT = re.compile(
    r"\b(\d{1,4})\s?k\b(?:\s(?:tokens?|context\w*|contesto|ventana))?|\b(\d{4,7})\s(?:tokens?|token)\b"
)
_NODES = re.compile(r"\b(\d{1,4})\s?(?:gpu\s)?(?:nodes?|nodos?|nodi)\b")
_PROFILE = re.compile(r"\b(\d)g[._ ](\d{1,3})gb\b")


def workload(folded: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """Entities of a sizing question in a folded text; ``named`` are its exact entities.

    Returns:
        some of ``model``, ``params_b`` (billions), ``precision``, ``count`` (items) and ``item``, ``vram_gb`` (memory
        per item, GB), ``gpu_memory_gb``, ``gpu``, ``gpus``, ``nodes``, ``context_tokens``, ``profile``.
    """
    found: dict[str, Any] = {}
    model = _MODEL.search(folded)
    if model:
        found["model"] = model[1].strip()
    if "parameters_billion" in named:
        found["params_b"] = named["parameters_billion"]
    precision = _PRECISION.search(folded)
    if precision:
        name = re.sub(r"[\s-]", "", precision[1])
        found["precision"] = _PRECISIONS.get(name, _PRECISIONS.get(name[:2], name))
    counted = _SPELLED.sub(lambda match: str(_WORD_NUMBERS[match[1]]), folded)
    items = _ITEMS.search(counted)
    if items:
        found["count"], found["item"] = int(items[1]), items[2]
    card = _CARD_MEMORY.search(folded)
    if card:
        found["gpu_memory_gb"] = int(card[1] or card[2])
    memory = _MEMORY.findall(_CARD_MEMORY.sub(" ", folded))
    if memory:
        found["vram_gb"] = float(memory[0].replace(",", "."))
        if len(memory) > 1:
            found["vram_gb_each"] = [float(value.replace(",", ".")) for value in memory]
    models = named.get("gpu")
    if models:
        found["gpu"] = models[0] if len(models) == 1 else list(models)
    gpus = count_of_gpus(folded)
    if gpus is not None:
        found["gpus"] = gpus
    nodes = _NODES.search(folded)
    if nodes:
        found["nodes"] = int(nodes[1])
    context = _CONTEXT.search(folded)
    if context:
        found["context_tokens"] = int(context[1]) * 1024 if context[1] else int(context[2])
    profile = _PROFILE.search(folded)
    if profile:
        found["profile"] = f"{profile[1]}g.{profile[2]}gb"
    return found
