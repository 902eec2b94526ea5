"""Things a text names exactly: GPU models, driver and CUDA versions, images, providers, numbers of GPUs.

Exact by design: no typo is forgiven in a model or a version, since A10, A100, L4 and L40S are different cards.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from rules.questions import data

_DATACENTER = (
    r"a(?:2|10g?|16|30|40|100|800)|h(?:100|200|20|800)|gh200|b(?:100|200|300)|gb(?:200|300)|l(?:40s|40|20|2|4)|t4g?|v100|p(?:4|40|100)"
    r"|k80|m60|mi(?:50|100|210|250x?|300[ax]?|308x|325x|350[xp]?|355x?)|gaudi[23]?"
)
_WORKSTATION = r"a(?:2000|4000|4500|5000|5500|6000)|(?:[2345]0[5-9]0|16[56]0|10[678]0)(?:ti)?"
_MODEL = re.compile(rf"(?:{_DATACENTER}|{_WORKSTATION}|v100s|rtx(?:\d{{4}}(?:ti)?)?|gtx(?:\d{{4}}(?:ti)?)?)s?$")
_CARD = re.compile(
    rf"(?<![a-z0-9.])(?:\d{{1,3}}\s?[x×]\s?)?(?:(?P<titan>titan[\s-](?:v|rtx|xp))|(?P<name>grace[\s-](?:hopper|blackwell))|(?P<pro>rtx\s?-?pro\s?-?(?:6000|5000|4500|4000|2000))"
    r"|(?P<ada>(?:rtx\s?-?)?(?:6000|5000|4500|4000|2000)\s?-?ada)"
    r"|(?P<rtx>(?:rtx|gtx)\s?-?a?\d{4}(?:\s?-?(?:ti|super))*)"
    rf"|(?P<plain>{_DATACENTER}|{_WORKSTATION}))s?(?![a-z0-9])(?!-(?:high|ultra|mega|edge))"
    r"(?:[\s(-]{0,2}(?:(?:sxm\d?|pcie|nvl)[\s-]?)?(?:de |da |con |with )?"
    r"(?P<memory>32|40|80|16)(?:\s?gi?b?s?|s)?(?![\w.x×]))?"
)
_SIZED = {"A100": ("40", "80"), "V100": ("16", "32")}
"""Memory sizes of cards that come with several."""
_WITH_X = {"MI300": "MI300X", "MI350": "MI350X", "MI355": "MI355X"}
_DRIVER = re.compile(r"(?<![\d.])([3-9]\d{2}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.]*\d)(?!\s?(?:gb|gib|mib|ms|s\b))")
_BRANCHES = r"(3[49]0|4[1-9]\d|5[0-9][05]|6[0-4][05])"
_DRIVER_BRANCH = re.compile(
    rf"(?:\b(?:driver|controlador|branch|rama|ramo|nvidia|nvidia-driver)(?:s|es)?\b[^\d?.!;]{{0,24}}?[\s:=v-]r?{_BRANCHES}(?:\.x+)?(?![\d.]*\d|\s?(?:gb|gpu|nodes|usd))"
    rf"|\br{_BRANCHES}(?:\.x+)?\b|\b{_BRANCHES}(?:\.x+)?(?:'s)?[\s-](?:\w+\s)?(?:drivers?|controlador\w*|branch|series|rama|ramo)\b|\b{_BRANCHES}\.x+\b)"
)
_BARE_BRANCH = re.compile(
    r"(?<![\w.:/$€-])(4[1-7]0|418|5[1-9]0|5[1-9]5|53[05]|5[024]5|520|575)(?![\w.:%/-]|\s?(?:gb|gib|nodes|pods|usd|eur|gpus?|req|tok))"
)
_BARE_CUDA = re.compile(r"(?<![\d.,$€-])(1[0-4][.,]\d)(?![\d.]|\s?(?:gb|gib|usd|eur|[€$]|b\b|%))")
_CONTAINER = re.compile(
    r"\b(?:containers?|contenedor\w*|images?|imagen\w*|immagin\w*|dockerfile|toolkit|apps?|wheels?|blackwell|roba)\b"
)
_FRAMEWORK = re.compile(
    r"\b(pytorch|torch|tensorflow|tf|jax|vllm|onnxruntime|cupy|paddle|flash-attn|flash attention|deepspeed|triton"
    r"|rapids)"
    r"(?:-gpu|-cuda1\dx?)?[\s=v]*(\d+\.\d+(?:\.\d+)?)?"
)
_AND = r"(?:\s?(?:,|/|and|or|vs\.?|to|y|o|e|a|oppure|with|con)\s?)"
_CUDA = re.compile(
    r"(?:cuda(?:[\s:_>=()'\"-]|toolkit|runtime|version|versione|release|v(?=\d)|is|es|e\b|alla|la|el|il|at|on|a\b|del?|the){0,5}|\bcu|torch[\w.]*\+cu)"
    rf"(1[0-4][.,-]\d{{1,2}}(?:\.\d+)?|[7-9]\.\d|1[0-4]\d(?!\d)|1[0-4](?![\d.,]*\d)|[89](?![\d.]))((?:{_AND}(?:cuda\s?)?1[0-4](?:[.,]\d{{1,2}})?(?!\d))*)"
    r"|(?<![\d.])(1[0-4]\.\d)\s(?:cuda|toolkit)"
)
_CUDA_MORE = re.compile(r"1[0-4](?:[.,]\d{1,2})?")
_IMAGE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+(?::\d+)?/)*[a-z0-9][\w.-]*/[\w.-]+:[\w][\w.-]*"
    r"|(?:pytorch|tensorflow|vllm|triton|tritonserver|cuda|ubuntu|rocm|nvcr|ollama|jax|nemo|comfyui|tgi|sglang)[\w./-]*:[\w][\w.-]+)"
)
_IMAGE_NAME = re.compile(
    r"(?<![\w/.-])((?:nvcr\.io|docker\.io|ghcr\.io|quay\.io|public\.ecr\.aws|registry\.[\w.]+)/[\w./-]*\w"
    r"|(?:pytorch/pytorch|vllm/vllm-openai|nvidia/[a-z][\w.-]*(?:/[\w.-]+)?|tensorflow/tensorflow|rocm/[a-z][\w.-]*|rayproject/[\w-]+|huggingface/[\w-]+|ollama/ollama|lmsysorg/sglang|rapidsai/[\w-]+)"
    r"(?![\w/]*=))"
)
_NOT_IMAGES = re.compile(r"^(?:nvidia/(?:gpu|cuda|driver)?$|[\w.]+\.com/|https?:)")
_PARAMETERS = re.compile(
    r"(?<![\w.])(?:(\d{1,2})\s?x\s?)?(\d{1,4}(?:[.,]\d+)?)\s?b(?:illion|n)?(?![\w-])"
    r"|(\d{1,4}(?:[.,]\d+)?)\s?(?:billones|miliardi|mil millones|billion)"
)
_COUNT = re.compile(r"(?<![\w.])(\d{1,4})\s*(?:[x×](?!\d)|gpus?\b)")


_EXPERTS = {"8x7": 46.7, "8x22": 141.0}
"""Billions of parameters of models whose experts share layers (Mixtral, mistral.ai/news, 2023-12 and 2024-04)."""


def is_gpu_model(word: str) -> bool:
    """True for a word that names a GPU model exactly ("a100", "l40s", "mi300x", "4090")."""
    return _MODEL.match(word) is not None


class _Providers(msgspec.Struct, forbid_unknown_fields=True):
    providers: dict[str, str]
    guarded: dict[str, str]
    shapes: dict[str, str]


_BEFORE = (
    r"(?:\b(?:is|are|on|in|at|from|with|does|do|has|for|vs|versus|or|and|use|using|try|about|compare|between|than|not|nor|no|ni|ne|sin|senza|except"
    r"|su|da|con|di|per|en|de|a|desde|sobre|y|o|e|usa|usare|usar|entre|tra|que|tiene|offre|ofrece)\s+|^\s*|[,(/:]\s*)"
)
_AFTER = r"(?!\w|-\w|\s(?:majority|number|amount|range|array|the|we|with|all|it|you|i\b|they|tomatoes?))"
_EVERYDAY = frozenset({"do", "together", "modal", "thunder", "salad", "e2e", "ms"})
"""Guarded names that need a capital letter as well."""


@lru_cache(maxsize=1)
def _provider_patterns() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    file = data.load("provider_names.yaml", _Providers)
    by_alias: dict[str, str] = {}
    patterns: list[re.Pattern[str]] = []
    for listed, before, after in ((file.providers, r"(?<![\w-])", r"(?![\w-])"), (file.guarded, _BEFORE, _AFTER)):
        own = {alias.strip(): provider for provider, names in listed.items() for alias in names.split("|")}
        by_alias |= {alias: provider for alias, provider in own.items() if alias not in by_alias}
        longest_first = sorted(own, key=lambda alias: (-len(alias), alias))
        patterns.append(re.compile(f"{before}({'|'.join(map(re.escape, longest_first))}){after}"))
    return patterns[0], patterns[1], by_alias


@lru_cache(maxsize=64)
def provider_spans(folded: str, text: str | None = None) -> tuple[tuple[str, int, int], ...]:
    """Id, start and end of every provider named in a folded text, in order. Everyday words count as names only where
    ``text``, the same as typed, has them with a capital letter."""
    plain, guarded, by_alias = _provider_patterns()
    found = [(by_alias[match[1]], match.start(1), match.end(1)) for match in plain.finditer(folded)]
    for match in guarded.finditer(folded):
        start, end = match.span(1)
        if any(start < stop and begin < end for _, begin, stop in found):
            continue
        typed = (text or "")[start:end]
        if match[1] in _EVERYDAY and not (len(text or "") == len(folded) and typed[:1].isupper() and start > 0):
            continue
        found.append((by_alias[match[1]], start, end))
    for provider, shape in _shapes():
        found += [(provider, *match.span()) for match in shape.finditer(folded)]
    return tuple(sorted(found, key=lambda item: item[1]))


@lru_cache(maxsize=1)
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    listed = data.load("provider_names.yaml", _Providers).shapes
    return tuple((provider, re.compile(pattern)) for provider, pattern in listed.items())


def providers(folded: str, text: str | None = None) -> tuple[str, ...]:
    """Ids of the providers named in a folded text, in order, each once."""
    return tuple(dict.fromkeys(provider for provider, _, _ in provider_spans(folded, text)))


def gpu_models(folded: str) -> tuple[str, ...]:
    """The cards that a folded text names, as their makers spell them ("H100", "RTX 4090", "A100 80GB")."""
    return tuple(dict.fromkeys(_cards(folded)))


def _cards(folded: str) -> Iterator[str]:
    for match in _CARD.finditer(folded):
        if match["titan"]:
            yield match["titan"].replace("-", " ").upper()
        elif match["name"]:
            yield "GH200" if "hopper" in match["name"] else "GB200"
        elif match["pro"]:
            yield "RTX PRO " + match["pro"][-4:]
        elif match["ada"]:
            yield f"RTX {re.search(r'[0-9]{4}', match['ada'])[0]} Ada"  # type: ignore[index]
        elif match["rtx"]:
            number = re.search(r"a?\d{4}", match["rtx"])
            kind = "GTX" if match["rtx"].startswith("gtx") else "RTX"
            more = re.search(r"ti|super", match["rtx"])
            yield f"{kind} {number[0].upper()}" + (f" {more[0].capitalize()}" if more else "")  # type: ignore[index]
        else:
            name = match["plain"].upper()
            if re.fullmatch(r"A\d{4}", name):
                name = f"RTX {name}"
            elif re.fullmatch(r"\d{4}(?:TI)?", name):
                name = f"{'GTX' if name[0] == '1' else 'RTX'} {name[:4]}" + (" Ti" if name.endswith("TI") else "")
            name = _WITH_X.get(name, name)
            yield f"{name} {match['memory']}GB" if match["memory"] in _SIZED.get(name, ()) else name


def drivers(folded: str) -> tuple[str, ...]:
    """Driver versions or branches that a folded text names, in order."""
    found = [(match.start(), match[1]) for match in _DRIVER.finditer(folded)]
    taken = {value.split(".")[0] for _, value in found}
    for match in _DRIVER_BRANCH.finditer(folded):
        branch = next(group for group in match.groups() if group)
        if branch not in taken:
            taken.add(branch)
            found.append((match.start(), branch))
    return tuple(dict.fromkeys(value for _, value in sorted(found)))


def cuda_versions(folded: str) -> tuple[str, ...]:
    """CUDA versions that a folded text names, in order; cu121 is 12.1."""
    found: list[str] = []
    for match in _CUDA.finditer(folded):
        first = (match[1] or match[3]).replace(",", ".").replace("-", ".")
        found.append(f"{first[:-1]}.{first[-1]}" if len(first) == 3 and first.isdigit() else first)
        found += [more.replace(",", ".") for more in _CUDA_MORE.findall(match[2] or "")]
    return tuple(dict.fromkeys(found))


def image(text: str) -> str | None:
    """The container image that a text names, as typed; one with a tag before one without."""
    for pattern in (_IMAGE, _IMAGE_NAME):
        for match in pattern.finditer(text):
            name = match[1].rstrip(".:,")
            if not _NOT_IMAGES.match(name):
                return name
    return None


def _one_or_all(found: Sequence[str]) -> Any:
    return found[0] if len(found) == 1 else list(found)


def entities(text: str, folded: str, words: Sequence[str]) -> dict[str, Any]:
    """What the text names: ``gpu`` (list of models), ``driver``, ``cuda`` (one, or a list), ``image``, ``provider``
    (list
    of ids), ``gpu_count``, ``parameters_billion``. Only what is there; nothing is guessed."""
    found: dict[str, Any] = {}
    models = gpu_models(folded)
    if models:
        found["gpu"] = list(models)
    named = image(text)
    if named:
        found["image"] = named
    versions = drivers(folded)
    if versions:
        found["driver"] = _one_or_all(versions)
    cuda = cuda_versions(folded)
    if cuda:
        found["cuda"] = _one_or_all(cuda)
    if not cuda and (versions or models or _CONTAINER.search(folded)):
        # "driver 470.82 and image 11.4": beside a driver or an image a bare version of that range is CUDA's.
        cuda = tuple(dict.fromkeys(match[1].replace(",", ".") for match in _BARE_CUDA.finditer(folded)))
        if cuda and (versions or _BARE_BRANCH.search(folded) or _CONTAINER.search(folded)):
            found["cuda"] = _one_or_all(cuda)
    if not versions and ("cuda" in found or named or models):
        # "we are on 550, does CUDA 12.8 run?": beside a CUDA version a bare branch number is the driver.
        branches = tuple(dict.fromkeys(match[1] for match in _BARE_BRANCH.finditer(folded)))
        if branches:
            found["driver"] = _one_or_all(branches)
    framework = _FRAMEWORK.search(folded)
    if framework:
        found["framework"] = " ".join(filter(None, framework.groups()))
    clouds = providers(folded, text)
    if clouds:
        found["provider"] = list(clouds)
    count = _COUNT.search(folded)
    if count:
        found["gpu_count"] = int(count[1])
    parameters = _PARAMETERS.search(folded)
    if parameters:
        experts, size, spelled = parameters.groups()
        billions = float((size or spelled).replace(",", "."))
        found["parameters_billion"] = _EXPERTS.get(f"{experts}x{size}", billions * int(experts or 1))
    return found
