"""Recognising a GPU by any of the names it goes by, and what the facts say about it.

Names come from GPU Feature Discovery (``NVIDIA-A100-SXM4-80GB-MIG-1g.5gb-SHARED``), nvidia-smi, providers' node labels
(``nvidia-tesla-a100``, ``nvidia-h100-mega-80gb``), AMD's node labeller (``AMD_Instinct_MI300X_OAM``), instance types
and chat (``4090``, ``8x h100``). A name that is not known as a whole is not recognised: A10 is not A100.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal

import msgspec

from rules.compat import data
from rules.compat.data import GpuClass, GpuRow, OpenModules
from rules.compat.versions import key

Vendor = Literal["nvidia", "amd", "other"]


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A recognised GPU: one product, or what several products of one name have in common.

    Where products differ, each attribute is the one that rules out least, so that "does not fit" is certain.

    Attributes:
        name: product id, or the model's name when the text does not tell the product.
        rows: the products it may be; the first stands for their source.
        compute_capability, gpu_class, open_modules, brand, product_min_driver, mig_min_driver: None when unknown or
            when the products differ.
        oldest_cuda, first_cuda, last_cuda, min_branch, last_branch, first_rocm: see
            :class:`~rules.compat.data.GpuRow`; None: no limit known.
        nvswitch, arm64: True when at least one product has it.
        sliced: the name says that it is a MIG slice.
    """

    name: str
    vendor: Literal["nvidia", "amd"]
    rows: tuple[GpuRow, ...]
    architecture: str
    compute_capability: str | None = None
    gfx: str | None = None
    gpu_class: GpuClass | None = None
    open_modules: OpenModules | None = None
    brand: str | None = None
    product_min_driver: str | None = None
    mig_min_driver: str | None = None
    oldest_cuda: str | None = None
    first_cuda: str | None = None
    last_cuda: str | None = None
    min_branch: int | None = None
    last_branch: int | None = None
    first_rocm: str | None = None
    nvswitch: bool = False
    arm64: bool = False
    sliced: bool = False

    @property
    def row(self) -> GpuRow:
        """The row that stands for the source."""
        return self.rows[0]


_SLICE = re.compile(
    r"[\s_-]*(?:mig[\s_-]*)?(?:[0-9]c\.)?\b[1-9]g\.[0-9]{1,3}gb(?:[+.-](?:me|gfx|all))*\b", re.IGNORECASE
)
_MIG_WORD = re.compile(r"[\s_-]+mig(?:[\s_-]+(?:invalid|mixed|single))?\Z", re.IGNORECASE)
_SHARED = re.compile(r"-SHARED\Z", re.IGNORECASE)
_COUNT = re.compile(r"\A\s*[0-9]{1,3}\s*[x×*]\s*|[\s(]*[x×]\s*[0-9]{1,3}\)?\s*\Z", re.IGNORECASE)
_UNIT = re.compile(r"\b([0-9]{1,3})\s*(?:gib|gb|g)\b")
_INSTANCE = re.compile(r"\A([a-z][a-z0-9-]*?)(?:\.[a-z0-9-]+|-[0-9]{1,3}g?)\Z")
_MAKERS = ("nvidia", "amd", "geforce", "tesla", "instinct", "radeon")
_NOISE = frozenset(
    ("nvidia", "amd", "geforce", "tesla", "instinct", "gpu", "gpus", "card", "cards", "accelerator", "blackwell")
)
_FORMS = {
    "sxm": "SXM", "sxm2": "SXM2", "sxm3": "SXM3", "sxm4": "SXM4", "sxm5": "SXM5", "sxm6": "SXM6", "pcie": "PCIE",
    "nvl": "NVL", "nvlink": "SXM", "oam": "", "hbm2": "", "hbm2e": "", "hbm3": "", "hbm3e": "", "mega": "",
    "hgx": "SXM",
}  # fmt: skip


@lru_cache(maxsize=1024)
def recognise(name: str | None) -> Gpu | None:
    """The GPU that ``name`` means; None when it is empty or not known."""
    text = (name or "").strip()
    if not text or len(text) > 120:
        return None
    bare = _COUNT.sub("", _SHARED.sub("", text))
    whole = _SLICE.sub("", bare)
    whole = _MIG_WORD.sub("", whole).strip()
    sliced = whole != bare.strip()
    rows = _by_label(whole) or _by_name(whole) or _by_instance(whole) or _by_words(whole)
    return _merge(rows[0], rows[1], sliced=sliced) if rows else None


def of_capability(capability: str | None, *, name: str | None = None, family: str | None = None) -> Gpu | None:
    """What is known of a GPU of which only the compute capability or the family label is known.

    ``name`` gives the class away where it says GeForce or Tesla. None when no row has that capability or family.
    """
    rows = [row for row in data.gpus() if capability and row.compute_capability == capability]
    rows = rows or [row for row in data.gpus() if family and not capability and row.family == family.lower()]
    if not rows:
        return None
    gpu = _merge((name or "").strip() or f"compute capability {capability or family}", rows)
    lowered = (name or "").lower()
    gpu_class: GpuClass | None = None
    if "geforce" in lowered or "titan" in lowered:
        gpu_class = "consumer"
    elif "tesla" in lowered:
        gpu_class = "datacenter"
    return msgspec.structs.replace(
        gpu, gpu_class=gpu_class, brand=None, nvswitch=False, arm64=False, product_min_driver=None, mig_min_driver=None
    )


def vendor_of(name: str | None) -> Vendor | None:
    """Whose GPU an unrecognised name means, where a word in it says so."""
    words = set(re.split(r"[^a-z0-9]+", (name or "").lower()))
    if words & {"nvidia", "geforce", "tesla", "quadro", "rtx", "gtx"}:
        return "nvidia"
    if words & {"amd", "radeon", "instinct"}:
        return "amd"
    if words & {"intel", "gaudi", "gaudi2", "gaudi3", "habana", "inferentia", "trainium", "neuron", "tpu"}:
        return "other"
    return None


def _compact(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _without_maker(compact: str) -> str:
    for maker in _MAKERS:
        if compact.startswith(maker) and len(compact) > len(maker):
            return _without_maker(compact[len(maker) :])
    return compact


@cache
def _labels() -> dict[str, tuple[GpuRow, ...]]:
    index: dict[str, tuple[GpuRow, ...]] = {}
    for row in data.gpus():
        for label in (*row.labels, row.id):
            for spelled in {_compact(label), _without_maker(_compact(label))}:
                if row not in index.get(spelled, ()):
                    index[spelled] = (*index.get(spelled, ()), row)
    return index


@cache
def _aliases() -> dict[str, tuple[GpuRow, ...]]:
    index: dict[str, tuple[GpuRow, ...]] = {}
    for row in data.gpus():
        for alias in dict.fromkeys(_without_maker(_compact(alias)) for alias in row.aliases):
            index[alias] = (*index.get(alias, ()), row)
    return index


@cache
def _models() -> dict[str, tuple[GpuRow, ...]]:
    index: dict[str, tuple[GpuRow, ...]] = {}
    for row in data.gpus():
        spelled = _compact(row.model)
        index[spelled] = (*index.get(spelled, ()), row)
    return index


_Match = tuple[str, tuple[GpuRow, ...]]


def _by_label(text: str) -> _Match | None:
    compact = _compact(text)
    models = _models()
    for spelled in (compact, _without_maker(compact)):
        rows = _labels().get(spelled)
        if rows:
            # one product prints just "NVIDIA H100"; people who write that mean the model
            of_model = len(models.get(_without_maker(compact), ())) > 1
            return (rows[0].id if len(rows) == 1 and not of_model else rows[0].model), rows
    return None


def _by_name(text: str) -> _Match | None:
    compact = _without_maker(_compact(text))
    for spelled in dict.fromkeys(
        (compact, compact.removesuffix("gpus"), compact.removesuffix("gpu"), compact.removesuffix("s"))
    ):
        rows = _aliases().get(spelled)
        if rows:
            return _name(spelled, rows), rows
        rows = _models().get(spelled)
        if rows:
            return _name(spelled, rows), rows
    return None


def _name(spelled: str, rows: tuple[GpuRow, ...]) -> str:
    model = rows[0].model
    if len(rows) > 1 or (spelled == _compact(model) and len(_models()[spelled]) > 1):
        return model
    return rows[0].id


def _by_instance(text: str) -> _Match | None:
    """AWS ``p5.48xlarge`` and Google ``a2-highgpu-1g`` name their GPU."""
    match = _INSTANCE.match(text.lower())
    if match is None or not re.search(r"[0-9]", match[1]):
        return None
    rows = _aliases().get(_compact(match[1]))
    size = text[len(match[1]) :]
    if rows and (re.fullmatch(r"\.(?:[0-9]*x?large|metal[a-z0-9-]*)", size.lower()) or "-" in match[1]):
        return _name("", rows), rows
    return None


def _by_words(text: str) -> _Match | None:
    """A model followed by memory size and form factor, in any order."""
    words = re.split(r"[^a-z0-9]+", _UNIT.sub(r"\1gb", re.sub(r"[^a-z0-9]+", " ", text.lower())))
    words = [word for word in words if word and word not in _NOISE]
    memory = [int(word[:-2]) for word in words if re.fullmatch(r"[0-9]{1,3}gb", word)]
    forms = [_FORMS[word] for word in words if word in _FORMS]
    rest = [word for word in words if word not in _FORMS and not re.fullmatch(r"[0-9]{1,3}gb", word)]
    sizes = [int(word) for word in rest[1:] if re.fullmatch(r"[0-9]{2,3}", word)]
    for model, extra in (("".join(rest), []), (rest[0] if len(rest) == 2 and sizes else "", sizes)):
        match = _by_name(model) if model else None
        if match is None:
            continue
        rows = _models()[_compact(match[1][0].model)]
        fitting = _fitting(rows, [*memory, *extra], [form for form in forms if form])
        if fitting and (memory or extra or any(forms)):
            return (fitting[0].id if len(fitting) == 1 else fitting[0].model), fitting
        if fitting or not extra:
            return match
    return None


def _fitting(rows: Iterable[GpuRow], memory: list[int], forms: list[str]) -> tuple[GpuRow, ...]:
    return tuple(
        row
        for row in rows
        if all(row.memory_gib is None or row.memory_gib == size for size in memory)
        and all(form in row.id.upper() or not re.search(r"SXM|PCIE|NVL", row.id.upper()) for form in forms)
    )


def _merge(name: str, rows: Iterable[GpuRow], *, sliced: bool = False) -> Gpu:
    found = tuple(rows)

    def agreed(attribute: str) -> str | None:
        values = {getattr(row, attribute) for row in found}
        return values.pop() if len(values) == 1 else None

    def lowest(attribute: str) -> str | None:
        values = [getattr(row, attribute) for row in found]
        return None if None in values else min(values, key=key)

    last_cuda = [row.last_cuda for row in found]
    min_branch = [row.min_branch for row in found]
    last_branch = [row.last_branch for row in found]
    return Gpu(
        name=name,
        vendor=found[0].vendor,
        rows=found,
        architecture=found[0].architecture,
        compute_capability=agreed("compute_capability"),
        gfx=agreed("gfx"),
        gpu_class=agreed("gpu_class"),  # type: ignore[arg-type]
        open_modules=agreed("open_modules"),  # type: ignore[arg-type]
        brand=agreed("brand"),
        product_min_driver=agreed("product_min_driver"),
        mig_min_driver=agreed("mig_min_driver"),
        oldest_cuda=lowest("oldest_cuda"),
        first_cuda=lowest("first_cuda"),
        last_cuda=None if None in last_cuda else max((cuda for cuda in last_cuda if cuda), key=key),
        min_branch=None if None in min_branch else min(branch for branch in min_branch if branch),
        last_branch=None if None in last_branch else max(branch for branch in last_branch if branch),
        first_rocm=lowest("first_rocm"),
        nvswitch=any(row.nvswitch for row in found),
        arm64=any(row.arm64 for row in found),
        sliced=sliced,
    )
