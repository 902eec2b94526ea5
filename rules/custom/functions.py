"""Functions that expressions may call: those of CEL that the engine has, and three of our own."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from rules.custom.types import ANY, BOOL, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, ListOf, MapOf, Type

Style = Literal["call", "method", "both"]


class Function(msgspec.Struct, frozen=True):
    """A function.

    Attributes:
        style: ``call`` is ``f(x)``, ``method`` is ``x.f()``.
        overloads: types of the arguments (the target of a method is the first) and of the result.
        says: one line for the documentation.
    """

    style: Style
    overloads: tuple[tuple[tuple[Type, ...], Type], ...]
    says: str


def _text(says: str) -> Function:
    return Function("method", (((STRING, STRING), BOOL),), says)


def _of_time(says: str, *, duration: bool = False) -> Function:
    timed = (((TIMESTAMP,), INT), ((DURATION,), INT)) if duration else (((TIMESTAMP,), INT),)
    return Function("method", timed, says)


FUNCTIONS: Mapping[str, Function] = {
    "size": Function(
        "both",
        (((STRING,), INT), ((ListOf(ANY),), INT), ((MapOf(ANY),), INT)),
        "length of a string, list or map",
    ),
    "startsWith": _text('`node.name.startsWith("gpu-")`'),
    "endsWith": _text('`node.name.endsWith(".internal")`'),
    "contains": _text("whether a string contains another one"),
    "matches": _text("regular expression, anywhere in the string; the pattern must be written out"),
    "olderThan": _text('compares versions: `node.driver.olderThan("550.54.14")`'),
    "get": Function(
        "method",
        (((MapOf(ANY), STRING, ANY), ANY),),
        '`node.labels.get("team", "")`: value of a key, or the second argument where the key is absent',
    ),
    "sum": Function(
        "both", (((ListOf(INT),), INT), ((ListOf(DOUBLE),), DOUBLE)), "`cluster.nodes.map(n, n.gpu.count).sum()`"
    ),
    "int": Function(
        "call", tuple(((given,), INT) for given in (INT, UINT, DOUBLE, STRING)), "whole number; cuts off decimals"
    ),
    "double": Function(
        "call", tuple(((given,), DOUBLE) for given in (INT, UINT, DOUBLE, STRING)), "number with decimals"
    ),
    "string": Function(
        "call",
        tuple(((given,), STRING) for given in (STRING, INT, UINT, DOUBLE, TIMESTAMP, DURATION)),
        "text of a number, moment or duration",
    ),
    "timestamp": Function("call", (((STRING,), TIMESTAMP),), '`timestamp("2026-12-01T00:00:00Z")`'),
    "duration": Function("call", (((STRING,), DURATION),), '`duration("36h")`; units are h, m, s, ms'),
    "getFullYear": _of_time("year"),
    "getMonth": _of_time("month, from 0"),
    "getDate": _of_time("day of the month, from 1"),
    "getDayOfMonth": _of_time("day of the month, from 0"),
    "getDayOfWeek": _of_time("day of the week, 0 is Sunday"),
    "getHours": _of_time("hour; of a duration, all of its hours", duration=True),
    "getMinutes": _of_time("minute; of a duration, all of its minutes", duration=True),
    "getSeconds": _of_time("second; of a duration, all of its seconds", duration=True),
}

MACROS: Mapping[str, str] = {
    "exists": '`node.taints.exists(t, t.effect == "NoExecute")`: true for one item at least',
    "all": "true for every item (and for an empty list)",
    "exists_one": "true for exactly one item",
    "filter": "the items for which it is true",
    "map": "a list of what each item becomes",
}
"""Of lists, and of maps (then of their keys)."""

HAS = "`has(node.driver)`: whether a fact is known; `has(node.labels.team)`: whether a key is there"

VERSION = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9})*)")


def older_than(one: object, other: object) -> bool | None:
    """Whether version ``one`` is older than ``other``, number by number; None when one of them is no version.

    What follows the numbers (``-rc1``, ``+build``) is left aside, and missing numbers count as 0.
    """
    found = [VERSION.match(text) if isinstance(text, str) else None for text in (one, other)]
    if found[0] is None or found[1] is None:
        return None
    left, right = ([int(number) for number in match[1].split(".")] for match in found if match)
    width = max(len(left), len(right))
    return left + [0] * (width - len(left)) < right + [0] * (width - len(right))


def get(entries: object, key: object, otherwise: object) -> object:
    """The value under a key, or the other one."""
    return entries.get(key, otherwise) if isinstance(entries, Mapping) else otherwise


def total(numbers: object) -> int | float | None:
    """Sum of numbers; None where something else is among them."""
    if not isinstance(numbers, list) or not all(
        isinstance(number, int | float) and not isinstance(number, bool) for number in numbers
    ):
        return None
    return sum(numbers)


OWN: Mapping[str, Callable[..., Any]] = {"olderThan": older_than, "get": get, "sum": total}
"""What the engine does not have. They never raise; None makes the expression fail, which is then said."""
