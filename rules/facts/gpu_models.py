"""One name for a GPU model, whatever label, price list or person spells it."""

import re
from functools import lru_cache

_NOISE = re.compile(r"\b(nvidia|tesla|geforce|amd|instinct|radeon|grid|intel|hgx|gpu)\b")
_FAMILY = re.compile(
    r"\b(quadro rtx [0-9]{4}|rtx pro [0-9]{4}|rtx [0-9]{4} ada|rtx a[0-9]{4}|(?:rtx|gtx) [0-9]{4}(?: ti| super)*"
    r"|g[bh][0-9]{3}|a[0-9]{4}|[abh][0-9]{3}|h20|a10g|a10|a16|a30|a40|a2|l40s|l40|l20|l4|t4g|t4|v100|p100|p40|p4|k80|m60"
    r"|mi[0-9]{2,3}[xa]?|gaudi ?[0-9]?)\b"
)
_MEMORY = re.compile(r"\b([0-9]{2,3}) ?gi?b?\b")
_WITH_MEMORY = frozenset({"a100", "a800", "v100"})
_SHARED_SUFFIX = re.compile(r"-shared\Z|-mig-.*\Z", re.IGNORECASE)

_ALIASES: dict[str, str] = {
    # GKE's accelerator names leave the memory out (cloud.google.com/kubernetes-engine/docs/how-to/gpus, 2026-08).
    "nvidia-tesla-a100": "a100 40gb",
    "nvidia-tesla-v100": "v100 16gb",
}


@lru_cache(maxsize=4096)
def model_key(name: str) -> str | None:
    """A name to compare models by: ``h100``, ``a100 80gb``, ``rtx 4090``, ``mi300x``; None when no model is in it.

    Form (SXM, PCIe) is left out. Memory is part of the name where one model comes with several sizes (A100, V100); a
    name that does not tell the size stays without it and so equals no sized one.
    """
    lowered = _SHARED_SUFFIX.sub("", name.strip()).lower()
    if lowered in _ALIASES:
        return _ALIASES[lowered]
    words = " ".join(_NOISE.sub(" ", re.sub(r"[-_/,()]+", " ", lowered)).split())
    family = _FAMILY.search(words)
    if family is None:
        return None
    key = family[1].replace(" ", "") if family[1].startswith("gaudi") else family[1]
    if re.fullmatch(r"a[0-9]{4}", key):
        key = f"rtx {key}"
    memory = _MEMORY.search(words, family.end()) if key in _WITH_MEMORY else None
    return f"{key} {memory[1]}gb" if memory else key
