"""An expression, compiled once and evaluated for many objects by the CEL engine."""

import re
from collections.abc import Mapping
from typing import Any

from rules.custom.check import check
from rules.custom.checked import Checked
from rules.custom.errors import ExpressionInvalid
from rules.custom.functions import OWN
from rules.custom.syntax import parse

_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDEFINED = re.compile(r"Undefined variable or function: '(\w+)'")


class FactUnknown(Exception):
    """The value hangs on facts that are not known; ``paths`` are those it may be."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        super().__init__(", ".join(paths))


class EvaluationFailed(Exception):
    """The expression cannot be evaluated for this object."""


class Expression:
    """A checked and compiled expression.

    Args:
        text: in CEL.
        scope: what it is about; see :data:`rules.custom.shapes.SCOPES`.

    Raises:
        ExpressionInvalid: where it is wrong, and what would be right.
    """

    def __init__(self, text: str, scope: str) -> None:
        self.text = text
        self.checked: Checked = check(text, parse(text), scope)
        self._program = _compiled(text)
        for at, constant in self.checked.constants:
            _try(text, at, constant)
        self._unknown: dict[str, tuple[str, ...]] = {}
        for read in self.checked.reads:
            known = self._unknown.get(read.fact, ())
            self._unknown[read.fact] = tuple(dict.fromkeys((*known, read.path)))

    def value(self, context: Any) -> Any:
        """The value for one object.

        Raises:
            FactUnknown: it hangs on a fact that is not known. ``||`` and ``&&`` need not know a side that does not
                decide: ``true || x`` is true whatever x is.
            EvaluationFailed: a key that is not there, an overflow, a fault of the engine.
        """
        try:
            return self._program.execute(context)
        except (KeyboardInterrupt, SystemExit):
            raise
        except KeyError as error:
            key = str(error.args[0]) if error.args else ""
            if key in self._unknown:
                raise FactUnknown(self._unknown[key]) from None
            raise EvaluationFailed(
                f'there is no key {key!r}; ask for it first ("{key}" in ...), or use .get("{key}", "")'
            ) from None
        except BaseException as error:  # a panic of the engine is not an Exception
            missing = _UNDEFINED.search(str(error))
            if missing and missing[1] in self.checked.variables:
                raise FactUnknown((missing[1],)) from None
            raise EvaluationFailed(_said(error)) from None


def context_of(variables: Mapping[str, Any]) -> Any:
    """What expressions about one object are evaluated in.

    Raises:
        EvaluationFailed: a value is beyond what the engine can hold.
    """
    import cel

    try:
        return cel.Context(variables=dict(variables), functions=dict(OWN))
    except (ValueError, OverflowError, TypeError) as error:
        raise EvaluationFailed(_said(error)) from None


def _compiled(text: str) -> Any:
    # importing the engine takes half a second (its package brings a command line along): only teams with rules pay it
    import cel

    try:
        return cel.compile(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        place = _PLACE.search(str(error))
        if place is None:
            raise ExpressionInvalid(text, 0, _said(error)) from None
        lines = text.split("\n")[: int(place[1]) - 1]
        at = sum(len(line) + 1 for line in lines) + int(place[2]) - 1
        raise ExpressionInvalid(text, at, place[3].removeprefix("Syntax error: ")) from None


def _try(text: str, at: int, constant: str) -> None:
    import cel

    try:
        cel.compile(constant).execute({})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        raise ExpressionInvalid(text, at, _said(error)) from None


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text.removesuffix(" Check function arguments and their types.")
    if text.startswith("No such overload"):
        text = "an operation does not go with the types of its values"
    return f"{type(error).__name__}: {text}" if not isinstance(error, TypeError | RuntimeError | ValueError) else text
