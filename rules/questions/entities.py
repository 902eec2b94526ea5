"""Things a text names exactly: GPU models, driver and CUDA versions, providers, numbers of GPUs.

Exact by design: no typo is forgiven in a model or a version, since A10, A100, L4 and L40S are different cards.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from rules.questions import data

_MODEL = re.compile(
    r"(?:a(?:2|10g?|16|30|40|100|800|2000|4000|4500|5000|5500|6000)|h(?:100|200|20|800)|gh200|b(?:100|200|300)|gb(?:200|300)"
    r"|l(?:4|20|40|40s)|t4g?|v100s?|p(?:4|40|100)|k80|m60|mi(?:100|210|250x?|300[ax]?|308x|325x|350x|355x)|gaudi[23]?"
    r"|rtx(?:\d{4}(?:ti)?)?|gtx(?:\d{4}(?:ti)?)?|[2345]0[5-9]0(?:ti)?)$"
)
_DRIVER = re.compile(r"(?<![\d.])([3-9]\d{2}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.]*\d)")
_DRIVER_BRANCH = re.compile(
    r"(?:driver|controlador|branch|rama|ramo)e?s?\s+(?:nvidia\s+)?(?:version\s+)?r?([3-9]\d{2})(?![\d.])", re.IGNORECASE
)
_CUDA = re.compile(
    r"(?:cuda[\s:_-]*(?:toolkit|version|versione)?[\s:_-]*|\bcu)(\d{1,2}(?:[.,]\d)?(?:\.\d)?|1\d{2})(?!\d)",
    re.IGNORECASE,
)
_IMAGE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+(?::\d+)?/)*[a-z0-9][\w.-]*/[\w.-]+:[\w][\w.-]*"
    r"|(?:pytorch|tensorflow|vllm|triton|cuda|ubuntu|rocm|nvcr)[\w./-]*:[\w][\w.-]+)"
)
_PARAMETERS = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)?)\s?b(?:illion)?(?![\w-])", re.IGNORECASE)
_COUNT = re.compile(r"(?<![\w.])(\d{1,4})\s*(?:x|×|gpus?\b)", re.IGNORECASE)


def is_gpu_model(word: str) -> bool:
    """True for a word that names a GPU model exactly ("a100", "l40s", "mi300x", "4090")."""
    return _MODEL.match(word) is not None


class _Providers(msgspec.Struct, forbid_unknown_fields=True):
    providers: dict[str, str]


@lru_cache(maxsize=1)
def _provider_pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    listed = data.load("provider_names.yaml", _Providers).providers
    by_alias = {alias.strip(): provider for provider, names in listed.items() for alias in names.split("|")}
    longest_first = sorted(by_alias, key=lambda alias: (-len(alias), alias))
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])"), by_alias


def providers(folded: str) -> tuple[str, ...]:
    """Ids of the providers named in a folded text, in order, each once."""
    pattern, by_alias = _provider_pattern()
    return tuple(dict.fromkeys(by_alias[match[0]] for match in pattern.finditer(folded)))


def entities(text: str, folded: str, words: Sequence[str]) -> dict[str, Any]:
    """What the text names: ``gpu`` (list of models), ``driver``, ``cuda``, ``image``, ``provider`` (list of ids),
    ``gpu_count``, ``parameters_billion``. Only what is there; nothing is guessed."""
    found: dict[str, Any] = {}
    models = list(dict.fromkeys(word.upper() for word in words if is_gpu_model(word)))
    if models:
        found["gpu"] = models
    image = _IMAGE.search(text)
    if image:
        found["image"] = image[1]
    driver = _DRIVER.search(text) or _DRIVER_BRANCH.search(text)
    if driver:
        found["driver"] = driver[1]
    cuda = _CUDA.search(text)
    if cuda:
        digits = cuda[1].replace(",", ".")
        found["cuda"] = f"{digits[:-1]}.{digits[-1]}" if len(digits) == 3 and "." not in digits else digits
    named = providers(folded)
    if named:
        found["provider"] = list(named)
    count = _COUNT.search(text)
    if count:
        found["gpu_count"] = int(count[1])
    parameters = _PARAMETERS.search(text)
    if parameters:
        found["parameters_billion"] = float(parameters[1].replace(",", "."))
    return found
