"""Reading and comparing version numbers of drivers, toolkits and ROCm.

Versions compare number by number and missing parts count as 0, so 570.26 is older than 570.86.10 and 535.86.10 is older
than 535.104.05. Nothing here raises on any text: what cannot be read is None.
"""

import re
from functools import lru_cache
from typing import Literal

import msgspec

Key = tuple[int, ...]
Precision = Literal["full", "major.minor", "major"]

_DIGITS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,5}\Z")

_NVIDIA_BRANCH = re.compile(r"(?:nvidia[- ]?)?(?:driver[- ]?)?[rv]?([1-9][0-9]{2})(?:\.[x*]+|\+)?\Z", re.IGNORECASE)
_NVIDIA_DRIVER = re.compile(r"(?<![\w.])[rv]?([1-9][0-9]{2}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)(?![\w.])", re.IGNORECASE)
_AMD_DRIVER = re.compile(r"(?<![\w.])v?([1-9][0-9]?\.[0-9]{1,2}(?:\.[0-9]{1,4}){0,2})(?:\.x)?(?![\w.])", re.IGNORECASE)

_PLATFORM = re.compile(r"(?P<name>cuda|rocm|hip)?[\s:=_/-]*(?:version|toolkit)?[\s:=_/v-]*", re.IGNORECASE)
_NUMBERS = re.compile(r"([1-9][0-9]?)(?:[.,]([0-9]{1,2}|[x*]+))?((?:\.[0-9]{1,4}){0,2})(?:\.[x*]+)?\Z", re.IGNORECASE)
_UPDATE = re.compile(r"([1-9][0-9]?\.[0-9]{1,2})\s*(?:update|u)\s*([0-9])\Z", re.IGNORECASE)
_WHEEL = re.compile(r"cu(?:da)?([0-9]{2,4})\Z", re.IGNORECASE)


class Toolkit(msgspec.Struct, frozen=True):
    """A CUDA or ROCm version as far as it is known.

    Attributes:
        platform: ``cuda`` or ``rocm``; None when the text does not say which.
        version: ``12.4.1``, ``12.4`` or ``12``.
        precision: how much of it is known.
    """

    platform: Literal["cuda", "rocm"] | None
    version: str
    precision: Precision


@lru_cache(maxsize=4096)
def key(version: str) -> Key:
    """Sort key of a dotted number; trailing zeros do not count. Empty for a text that is not a dotted number."""
    if not _DIGITS.match(version):
        return ()
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def line(version: str) -> tuple[int, int]:
    """The first two numbers: the line of a toolkit (12.4 of 12.4.1)."""
    numbers = (*key(version), 0, 0)
    return numbers[0], numbers[1]


def line_text(version: str) -> str:
    """:func:`line` as text."""
    return "{}.{}".format(*line(version))


def major(version: str) -> int:
    """The first number: CUDA family or driver branch."""
    return line(version)[0]


def nvidia_driver(text: str | None) -> str | None:
    """The NVIDIA driver that ``text`` names: ``535.183.01``, or ``535`` when only the branch is given.

    Takes what people and tools print: ``R535``, ``535.x``, ``v570.26``, ``535.183.01-0ubuntu1``, the line of
    ``/proc/driver/nvidia/version``. None when there is none, more than one, or a number of another kind (Windows
    drivers such as 31.0.15.3623 are another series).
    """
    cleaned = (text or "").strip()
    if len(cleaned) > 300:
        return None
    branch = _NVIDIA_BRANCH.match(cleaned)
    if branch:
        return branch[1]
    found = {match[1] for match in _NVIDIA_DRIVER.finditer(cleaned)}
    return found.pop() if len(found) == 1 else None


def is_branch(driver: str) -> bool:
    """True for a driver of which only the branch is known."""
    return "." not in driver


def amd_driver(text: str | None) -> str | None:
    """The amdgpu driver that ``text`` names: a ROCm release (6.3), an own release (30.10) or a module (6.19.14)."""
    cleaned = (text or "").strip()
    if len(cleaned) > 300:
        return None
    found = {match[1] for match in _AMD_DRIVER.finditer(cleaned)}
    return found.pop() if len(found) == 1 else None


def wheel_version(digits: str) -> str:
    """The version that ``cuNNN`` means: all but the last digit are the major number, the last is the minor one.

    Two digits from 11 on are a bare major number (``cu12`` packages), four digits carry the update (``cu1241``).
    """
    if len(digits) == 4:
        return f"{digits[:2]}.{digits[2]}.{digits[3]}"
    if len(digits) == 2 and digits >= "11" and digits[0] == "1":
        return digits
    return f"{digits[:-1]}.{digits[-1]}"


def toolkit(text: str | None) -> Toolkit | None:
    """The CUDA or ROCm version that ``text`` names; None when it names none.

    Takes ``12.8``, ``12.4.1``, ``12``, ``12.x``, ``cuda12.8``, ``CUDA 12.8``, ``cu128``, ``rocm 6.3``, ``12.2.2.009``
    (NGC appends a build number) and ``12.8 Update 1`` (returned as ``12.8 Update 1``: which number that is stands in
    the toolkit table).
    """
    cleaned = (text or "").strip()
    if not cleaned or len(cleaned) > 60:
        return None
    wheel = _WHEEL.match(cleaned)
    if wheel and not (len(wheel[1]) == 2 and cleaned.lower().startswith("cuda")):
        return _toolkit("cuda", wheel_version(wheel[1]))
    prefix = _PLATFORM.match(cleaned)
    named = (prefix["name"] or "").lower() if prefix else ""
    platform: Literal["cuda", "rocm"] | None = "cuda" if named == "cuda" else "rocm" if named else None
    rest = cleaned[prefix.end() :] if prefix else cleaned
    update = _UPDATE.match(rest)
    if update:
        return Toolkit(platform or "cuda", f"{update[1]} Update {update[2]}", "full")
    numbers = _NUMBERS.match(rest)
    if not numbers:
        return None
    minor = numbers[2] if numbers[2] and numbers[2][0].isdigit() else None
    if minor is None:
        return Toolkit(platform, numbers[1], "major")
    patch = numbers[3].split(".")[1] if numbers[3] else None
    return _toolkit(platform, f"{numbers[1]}.{int(minor)}" + (f".{int(patch)}" if patch is not None else ""))


def _toolkit(platform: Literal["cuda", "rocm"] | None, version: str) -> Toolkit:
    precision: tuple[Precision, ...] = ("major", "major.minor", "full")
    return Toolkit(platform, version, precision[version.count(".")])
