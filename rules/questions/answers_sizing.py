"""Answers to "how many GPUs", "does it fit" and "which slice": what the planner works out."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from rules import words
from rules.answers import Verdict
from rules.language import Language
from rules.questions.composers import Asked, Piece
from rules.questions.text import fold
from rules.questions.words import say
from rules.sharing.errors import PlanInvalid
from rules.sharing.model import MODES, Mode, SharingPlan, SharingRequest, Sizing, Task, Workload
from rules.sharing.plan import plan
from rules.sharing.words import mode_name
from rules.sharing.words import say as remark

MOST_REPLICAS = 2000
ENOUGH = 64
"""Replicas that no GPU holds: planned with where the question is how many one takes."""
ROOM_SHOWN = 4
"""Caveats that are told; the whole list comes with ``gpu-advisor plan``."""

_SHARING: tuple[tuple[re.Pattern[str], tuple[Mode, ...]], ...] = (
    (re.compile(r"\bmig\b|\b\d[gG][._]\d+gb\b|\bslices?\b"), ("mig",)),
    (re.compile(r"\bmps\b"), ("mps",)),
    (re.compile(r"time[ -]?slic\w*|timeslic\w*|tiempo compartido|a turn[io]"), ("time-slicing",)),
    (re.compile(r"\b(?:whole|entire|dedicated|enteras?|dedicadas?|inter[ae]|dedicat[ae])\b"), ("whole",)),
)
_MODES: dict[str, tuple[Mode, ...]] = {"mig": ("mig",), "mps": ("mps",), "time_slicing": ("time-slicing",)}
_TASKS: tuple[tuple[re.Pattern[str], Task], ...] = (
    (re.compile(r"\bq?lora\b|\bpeft\b|\badapters?\b|\badattator\w+|\badaptador\w*"), "lora"),
    (re.compile(r"\b(?:pre-?train\w*|full fine-?tun\w*|train(?:ing)?\b|entren\w+|addestr\w+|adam\w?\b)"), "training"),
)
_WEIGHTS = re.compile(r"\b(?:weights?|pesos?|pesi|checkpoint)\b")
_FIT = re.compile(
    r"\b(?:fit|fits|enough|possible|possibile|posible|caben?|cabr\w+|entran?|alcanza|llega|basta\w*|sta|stanno|ci sta"
    r"|entrano|will it|can i run|puedo|posso|riesco|does it|is it)\b"
)


def compose(asked: Asked) -> Piece | None:
    """What the planner says; asks back for what is missing."""
    named, language = asked.part.entities, asked.language
    text = fold(asked.part.text)
    name = str(named.get("model") or say("sizing.model", language))
    workload, assumed = _workload(named, text, name)
    gpus = _gpus(named)
    lacking = [
        say(f"sizing.needs_{what}", language)
        for what, missing in (("memory", workload is None), ("gpu", not gpus))
        if missing
    ]
    if workload is None:
        return _ask(lacking, ["memory_gib"], language)
    said = _MODES.get(str(named.get("sharing")))
    modes = said or next((modes for pattern, modes in _SHARING if pattern.search(text)), None)
    capacity = "count" not in named and modes not in (None, ("whole",))
    if capacity:
        workload = msgspec.structs.replace(workload, replicas=ENOUGH)
    request = SharingRequest(models=(workload,), gpus=gpus or ("any",), modes=modes or MODES)
    try:
        found = plan(request)
    except PlanInvalid as error:
        return _cannot(str(error), language)
    if not gpus:
        return _ask(lacking, ["gpus"], language, weights=found.sizings[0].weights_gb)
    return _told(found, asked, text, assumed, modes, capacity)


def _workload(named: dict[str, Any], text: str, name: str) -> tuple[Workload | None, bool]:
    """What is to run, and whether its precision was assumed; None where nothing tells its memory."""
    replicas = min(int(named.get("count") or 1), MOST_REPLICAS)
    task: Task = next((task for pattern, task in _TASKS if pattern.search(text)), "inference")
    profile = named.get("profile")
    memory = named.get("vram_gb")
    parameters = named.get("params_b")
    if memory is not None and _WEIGHTS.search(text):
        return Workload(name=name, replicas=replicas, weights_gb=float(memory), task=task), False
    if parameters is not None:
        precision = named.get("precision")
        chosen = precision if precision is not None or task == "training" else "fp16"
        made = Workload(
            name=name, replicas=replicas, parameters_b=float(parameters), precision=_precision(chosen), task=task
        )
        return made, precision is None and task != "training"
    if memory is not None:
        return Workload(name=name, replicas=replicas, memory_gb=float(memory), profile=profile), False
    if profile is not None:
        room = float(str(profile).split(".")[1].removesuffix("gb"))
        return Workload(name=name, replicas=replicas, memory_gb=room * 0.9, profile=str(profile)), False
    return None, False


def _precision(name: str | None) -> Any:
    return {"nvfp4": "fp4", "mxfp4": "fp4", "16bit": "fp16", "4bit": "int4", "8bit": "int8"}.get(name or "", name)


def _gpus(named: dict[str, Any]) -> tuple[str, ...]:
    given = named.get("gpu")
    size = named.get("gpu_memory_gb")
    models = [] if given is None else [given] if isinstance(given, str) else list(given)
    if models:
        sized = [f"{model}-{size}GB" if size and not re.search(r"\d+\s?GB", model) else model for model in models]
        return tuple(_known(with_size, model) for with_size, model in zip(sized, models, strict=True))
    return (f"{size}GB",) if size else ()


def _known(with_size: str, model: str) -> str:
    """The model with its size where such a card exists, else the model."""
    from rules.sharing.devices import device

    try:
        device(with_size)
    except PlanInvalid:
        return model
    return with_size


def _ask(lacking: list[str], fields: list[str], language: Language, weights: float | None = None) -> Piece:
    blocks = [say("sizing.needs_more", language, what=words.format_list(lacking, language))]
    if weights is not None:
        blocks.insert(0, say("sizing.weights", language, weights=words.format_value(weights, "", language)))
    answer: dict[str, Any] = {"needs_more": fields}
    if weights is not None:
        answer["weights_gb"] = weights
    return Piece(
        title=say("sizing.title", language),
        blocks=tuple(blocks),
        verdict="unknown",
        clarify=True,
        fields={"answer": answer},
    )


def _cannot(why: str, language: Language) -> Piece:
    return Piece(
        title=say("sizing.title", language),
        blocks=(say("sizing.unplaced", language, why=why),),
        verdict="unknown",
        clarify=True,
        fields={"answer": {"needs_more": ["gpus"]}},
    )


def _told(
    found: SharingPlan, asked: Asked, text: str, assumed: bool, modes: tuple[Mode, ...] | None, capacity: bool
) -> Piece:
    one, language = found.sizings[0], asked.language
    if capacity:
        return _capacity(one, found, language)
    owned = asked.part.entities.get("gpus")
    asks_fit = bool(_FIT.search(text)) and one.replicas == 1
    blocks = [" ".join(_lead(one, found, owned, asks_fit, language))]
    if one.need is not None and one.need.estimated:
        blocks.append(" ".join(_memory(one, language)))
    if assumed:
        blocks.append(say("sizing.assumed_fp16", language))
    if found.whole_gpus and one.gpus and found.whole_gpus > one.gpus:
        blocks.append(say("sizing.whole", language, count=found.whole_gpus))
    caveats = [f"- {remark(item, language)}" for item in found.caveats[:ROOM_SHOWN]]
    if caveats:
        blocks.append(f"**{say('heading.mind', language)}**\n" + "\n".join(caveats))
    blocks.append(say("sizing.measure", language))
    return Piece(
        title=say("sizing.title", language),
        blocks=tuple(blocks),
        verdict=_verdict(one, owned),
        fields={"answer": _numbers(one, owned, modes)},
    )


def _capacity(one: Sizing, found: SharingPlan, language: Language) -> Piece:
    """How many of them one GPU holds, where nobody said how many there are."""
    blocks = []
    if one.per_gpu:
        how = mode_name(one.mode or "whole", language) + (f" `{one.profile}`" if one.profile else "")
        blocks.append(
            f"**{say('sizing.per_gpu', language, count=one.per_gpu)}** ({one.gpu}, "
            f"{say('sizing.with', language, mode=how)})."
        )
    else:
        blocks.append(say("sizing.does_not_fit", language, gpu=one.gpu or next(iter(found.by_gpu), "GPU")))
    caveats = [f"- {remark(item, language)}" for item in found.caveats[:ROOM_SHOWN]]
    if caveats:
        blocks.append(f"**{say('heading.mind', language)}**\n" + "\n".join(caveats))
    answer = {
        "gpu": one.gpu,
        "per_gpu": one.per_gpu,
        "mode": one.mode,
        "profile": one.profile,
        "fits": bool(one.per_gpu),
    }
    return Piece(
        title=say("sizing.title", language),
        blocks=tuple(blocks),
        verdict="yes" if one.per_gpu else "no",
        fields={"answer": {name: value for name, value in answer.items() if value is not None}},
    )


def _lead(one: Sizing, found: SharingPlan, owned: int | None, asks_fit: bool, language: Language) -> Iterator[str]:
    gpu = one.gpu or (next(iter(found.by_gpu), "GPU"))
    if asks_fit or one.fits is False:
        spare = words.format_value(round(one.spare_gib or 0, 1), "GiB", language)
        key = "does_not_fit" if not one.fits else "tight" if one.tight else "fits"
        yield say(f"sizing.{key}", language, gpu=gpu, spare=spare)
        if one.fits and one.replicas == 1:
            return
    if one.gpus is None:
        return
    how = []
    if one.per_gpu:
        how.append(say("sizing.per_gpu", language, count=one.per_gpu))
    if one.mode not in (None, "whole"):
        mode = mode_name(one.mode, language) + (f" `{one.profile}`" if one.profile else "")
        how.append(say("sizing.with", language, mode=mode))
    yield say("sizing.gpus", language, count=one.gpus, gpu=gpu, how=f" ({', '.join(how)})" if how else "")
    if one.min_gpus is not None and one.min_gpus < one.gpus:
        yield say("sizing.least", language, least=one.min_gpus, count=one.gpus)
    if owned and owned != one.gpus:
        yield say(f"sizing.owned_{'enough' if owned >= one.gpus else 'short'}", language, owned=owned)


def _memory(one: Sizing, language: Language) -> Iterator[str]:
    if one.weights_gb is not None:
        yield say("sizing.weights", language, weights=words.format_value(one.weights_gb, "", language))
    if one.need is not None:
        yield say(
            "sizing.needs",
            language,
            name=one.name[0].upper() + one.name[1:],
            memory=words.format_value(round(one.need.memory_gib, 1), "GiB", language),
            least=words.format_value(round(one.need.minimum_gib, 1), "GiB", language),
        )


def _verdict(one: Sizing, owned: int | None) -> Verdict:
    if owned and one.min_gpus is not None:
        return "yes" if owned >= (one.gpus or 0) else "depends" if owned >= one.min_gpus else "no"
    if one.fits is None:
        return "unknown"
    return "depends" if one.tight else "yes" if one.fits else "no"


def _numbers(one: Sizing, owned: int | None, modes: tuple[Mode, ...] | None) -> dict[str, Any]:
    fits = one.fits
    if owned and one.min_gpus is not None:
        fits = owned >= one.min_gpus
    elif one.replicas > 1 and one.gpus is not None:
        fits = one.gpus == 1
    numbers = {
        "gpu": one.gpu,
        "gpus": one.gpus,
        "min_gpus": one.min_gpus,
        "per_gpu": one.per_gpu,
        "mode": one.mode if modes is None or one.mode else modes[0],
        "profile": one.profile,
        "fits": fits,
        "tight": one.tight,
        "weights_gb": one.weights_gb,
    }
    return {name: value for name, value in numbers.items() if value is not None}
