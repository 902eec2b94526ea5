"""``NVIDIA_REQUIRE_*`` of an image: would the container runtime refuse it on this driver and GPU?

Two evaluators exist and differ. ``legacy`` is the C code of libnvidia-container (``src/cli/dsl.c``), which
nvidia-container-cli enforces in legacy hook mode. ``go`` is the Go code of nvidia-container-toolkit
(``internal/requirements``), enforced in CSV mode only. In CDI mode neither is: the pod starts and fails inside CUDA.

The grammar is the same: alternatives separated by spaces (OR) of conditions separated by commas (AND).
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

Result = Literal["satisfied", "not_satisfied", "error"]
Mode = Literal["legacy", "go"]


class Properties(msgspec.Struct, frozen=True, kw_only=True):
    """What the conditions test. None: unknown.

    Attributes:
        cuda: newest CUDA the driver reports; driver: version of the kernel module.
        arch: compute capability and brand: NVML brand of the GPU.
        gpu_visible: without a visible GPU, conditions on arch and brand count as true.
    """

    cuda: str | None = None
    driver: str | None = None
    arch: str | None = None
    brand: str | None = None
    gpu_visible: bool = True


class RequirementError(Exception):
    """An expression that the evaluator does not accept."""


_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION = re.compile(r"([^<>=!]+)([<>=!]+)(.+)\Z", re.DOTALL)
_C_VERSION = re.compile(r"[0-9]+(?:\.+[0-9]+)*\.*\Z")
_GO_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+){0,2}\Z")
_GO_OPERATORS = ("!=", "<=", ">=", "=", "<", ">")


def evaluate(expression: str, properties: Properties, *, mode: Mode = "legacy") -> Result:
    """Result of one requirement value; ``error`` where the evaluator calls it invalid. Never raises."""
    evaluator = _legacy if mode == "legacy" else _go
    try:
        return "satisfied" if evaluator(expression, properties) else "not_satisfied"
    except RequirementError:
        return "error"


def requirements_of(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The requirements of an image's environment, by name.

    Every ``NVIDIA_REQUIRE_*`` is one except ``NVIDIA_REQUIRE_JETPACK*``; all must hold. An image with ``CUDA_VERSION``
    but without ``NVIDIA_REQUIRE_CUDA`` gets an implied ``cuda>=MAJOR.MINOR``.
    ``NVIDIA_DISABLE_REQUIRE`` switches all off.
    """
    if env.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "t", "true"):
        return ()
    found = {
        name: value
        for name, value in env.items()
        if name.startswith("NVIDIA_REQUIRE_") and not name.startswith("NVIDIA_REQUIRE_JETPACK")
    }
    implied = re.match(r"[0-9]+\.[0-9]+", env.get("CUDA_VERSION", ""))
    if "NVIDIA_REQUIRE_CUDA" not in found and implied:
        found["NVIDIA_REQUIRE_CUDA"] = f"cuda>={implied[0]}"
    return tuple(sorted(found.items()))


def lowest_cuda(expression: str) -> str | None:
    """The CUDA version that a value like ``cuda>=12.4 brand=...`` was made for; None when it names none."""
    match = re.match(r"\s*cuda>=([0-9]{1,2}(?:\.[0-9]{1,3}){0,2})(?![0-9.])", expression, re.IGNORECASE)
    return match[1] if match else None


def first_alternative(expression: str) -> str:
    """What the runtime's message names when a requirement does not hold: only the first alternative."""
    return next(iter(expression.split()), "")


def _legacy(expression: str, properties: Properties) -> bool:
    """Alternatives from left to right; whatever stands after the one that decides is not even parsed."""
    result = True
    for alternative in expression.split(" "):
        if not alternative:
            continue
        held = True
        for condition in alternative.split(","):
            if not condition:
                continue
            result = held = _legacy_condition(condition, properties)
            if not held:
                break
        if held:
            break
    return result


def _legacy_condition(condition: str, properties: Properties) -> bool:
    match = _CONDITION.match(condition)
    if match is None:
        raise RequirementError
    # the C code compares as many characters as there are, so a lone "!" passes for "!="
    symbol = next((symbol for symbol in _OPERATORS if symbol.startswith(match[2])), None)
    if symbol is None:
        raise RequirementError
    name, value = match[1].lower(), match[3]
    if name == "brand":
        if symbol not in ("=", "!="):
            raise RequirementError
        if not properties.gpu_visible or properties.brand is None:
            return True
        return (properties.brand.lower() == value.lower()) is (symbol == "=")
    known = _version_property(name, properties)
    if not _C_VERSION.match(value):
        raise RequirementError
    return known is None or _OPERATORS[symbol](_order(known, value), 0)


def _version_property(name: str, properties: Properties) -> str | None:
    if name == "cuda":
        return properties.cuda
    if name == "driver":
        return properties.driver
    if name == "arch":
        return properties.arch if properties.gpu_visible else None
    raise RequirementError


def _order(left: str, right: str) -> int:
    """-1, 0 or 1: numbers as far as both go; left-over parts that are not zero make the longer one greater."""
    numbers = [
        [int(part[:18]) for part in version.split(".") if part.isascii() and part.isdigit()]
        for version in (left, right)
    ]
    length = max(map(len, numbers))
    padded = [[*parts, *[0] * (length - len(parts))] for parts in numbers]
    return (padded[0] > padded[1]) - (padded[0] < padded[1])


def _go(expression: str, properties: Properties) -> bool:
    """Parses everything before it judges; unknown names are no condition."""
    alternatives = []
    for alternative in expression.split(" "):
        conditions = [
            parsed for condition in alternative.split(",") if (parsed := _go_condition(condition)) is not None
        ]
        if conditions:
            alternatives.append(conditions)
    if not alternatives:
        return True
    failure = False
    for conditions in alternatives:
        try:
            if all(_go_holds(name, symbol, value, properties) for name, symbol, value in conditions):
                return True
        except RequirementError:
            failure = True
    if failure and len(alternatives) == 1:
        raise RequirementError
    return False


def _go_condition(condition: str) -> tuple[str, str, str] | None:
    if not condition.strip():
        return None
    start = re.search(r"[<>=!]", condition)
    if start is None:
        raise RequirementError
    name, rest = condition[: start.start()], condition[start.start() :]
    if name not in ("cuda", "driver", "arch", "brand"):
        return None
    symbol = next((symbol for symbol in _GO_OPERATORS if rest.startswith(symbol)), "")
    value = rest.removeprefix(symbol)
    if name != "brand" and not _GO_VERSION.match(value):
        raise RequirementError
    return name, symbol, value


def _go_holds(name: str, symbol: str, value: str, properties: Properties) -> bool:
    if name in ("arch", "brand") and not properties.gpu_visible:
        return True
    known = properties.brand if name == "brand" else _version_property(name, properties)
    if known is None or not symbol:
        raise RequirementError
    order = (known > value) - (known < value) if name == "brand" else _order(known, value.removeprefix("v"))
    return _OPERATORS[symbol](order, 0)
