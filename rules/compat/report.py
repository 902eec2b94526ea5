"""Cases and verdicts as plain data: what the command line, the API and a batch file exchange."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from rules.compat.check import Verdict, check
from rules.compat.words import Reason, headline
from rules.errors import InputInvalid
from rules.language import Language

_TEXTS = ("driver", "cuda", "image", "gpu", "vendor", "compute_capability", "family", "driver_cuda")
_CHOICES = {"kernel_modules": ("open", "proprietary"), "arch": ("amd64", "arm64")}


def judge(record: Mapping[str, Any], *, today: date | None = None) -> Verdict:
    """The verdict on a record with the arguments of :func:`rules.compat.check` as keys; other keys do not matter.

    A version may come as a number (YAML writes 12.8 so); null is "not given".

    Raises:
        InputInvalid: a value of the wrong type; the message names the key.
    """
    values: dict[str, Any] = {name: _text(name, record.get(name)) for name in _TEXTS}
    for name, allowed in _CHOICES.items():
        value = record.get(name)
        if value is not None and value not in allowed:
            raise InputInvalid(f'"{name}" must be one of {", ".join(allowed)}')
        values[name] = value
    mig = record.get("mig")
    if mig is not None and not isinstance(mig, bool):
        raise InputInvalid('"mig" must be true or false')
    config = record.get("image_config")
    if config is not None and not isinstance(config, Mapping):
        raise InputInvalid('"image_config" must be an object, as the registry keeps it')
    return check(**values, mig=bool(mig), image_config=config, today=today)


def document(verdict: Verdict, language: Language = "en") -> dict[str, Any]:
    """A verdict as plain data, its sentences in ``language``."""
    image = verdict.image
    return {
        "verdict": verdict.verdict,
        "summary": headline(verdict.verdict).in_(language),
        "reasons": [_reason(reason, language) for reason in verdict.reasons],
        "cuda": verdict.cuda,
        "rocm": verdict.rocm,
        "driver": verdict.driver,
        "gpu": verdict.gpu,
        "min_driver": verdict.min_driver,
        "floor_driver": verdict.floor_driver,
        "image": None
        if image is None
        else {
            "cuda": image.cuda,
            "rocm": image.rocm,
            "platform": image.platform,
            "family": image.family,
            "how": image.how,
            "precision": image.precision,
        },
        "warnings": [_reason(warning, language) for warning in verdict.warnings],
    }


def _reason(reason: Reason, language: Language) -> dict[str, str | None]:
    return {
        "key": reason.key,
        "text": reason.text.in_(language),
        "source": reason.source,
        "as_of": reason.as_of,
    }


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputInvalid(f'"{name}" must be a string')
