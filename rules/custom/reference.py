"""``docs/facts.md``: everything that expressions may name, written from the tables that give them types and values.

``python -m rules.custom.reference > docs/facts.md`` writes it anew.
"""

import sys
from collections.abc import Iterable, Iterator

from rules.custom.functions import FUNCTIONS, HAS, MACROS
from rules.custom.shapes import SCOPES, SHAPES, VARIABLES
from rules.custom.types import ListOf, MapOf, Shape, Type, spelled

_INTRODUCTION = """\
<!-- Written by `python -m rules.custom.reference > docs/facts.md`; do not edit by hand. -->

# Facts for rules of your own

What the conditions of [rules of your own](custom-rules.md) may name. A fact keeps its name, its type and its meaning;
new ones may be added.

**Unknown** facts are absent: a condition that hangs on one has no value, finds nothing, and the object is listed as
`undecided`. `has(node.driver)` tells whether a fact is known. What is known to be nothing is `""`, `0` or an empty
list. No fact is ever null. Facts marked *?* in the tables can be unknown; the others never are.
"""


def facts_page() -> str:
    """The page, as Markdown."""
    return "\n".join([_INTRODUCTION, *_scopes(), *_shapes(), *_functions()]).rstrip() + "\n"


def _scopes() -> Iterator[str]:
    yield "## Scopes"
    yield ""
    yield from _table(
        ("scope", "asked about", "names"),
        ((f"`{name}`", about, ", ".join(f"`{each}`" for each in VARIABLES[name])) for name, about in SCOPES.items()),
    )
    yield "In scope `pod`, `node` is the node of the pod; a pod that has none is passed over where that decides."
    yield ""


def _shapes() -> Iterator[str]:
    for shape in SHAPES:
        yield f"## {shape.name}"
        yield ""
        yield from _table(
            ("fact", "type", "", "what it is"),
            (
                (f"`{name}`", _type(fact.type), "?" if fact.maybe else "", f"{fact.says}{_only(fact.only_in)}")
                for name, fact in shape.facts.items()
            ),
        )


def _only(scopes: tuple[str, ...]) -> str:
    return f"; in scope {', '.join(f'`{scope}`' for scope in scopes)} only" if scopes else ""


def _type(type_: Type) -> str:
    match type_:
        case Shape():
            return f"[{type_.name}](#{type_.name.replace('.', '').replace(' ', '-').lower()})"
        case ListOf():
            return f"list of {_type(type_.item)}"
        case MapOf():
            return f"map of {_type(type_.value)}"
    return spelled(type_)


def _functions() -> Iterator[str]:
    yield "## Functions"
    yield ""
    yield from _table(
        ("function", "takes", "gives", "what it does"),
        (
            (
                f"`{name}`",
                " or ".join(dict.fromkeys(", ".join(map(spelled, takes)) for takes, _ in function.overloads)),
                " or ".join(dict.fromkeys(spelled(gives) for _, gives in function.overloads)),
                f"{_written(name, function.style)}{function.says}",
            )
            for name, function in FUNCTIONS.items()
        ),
    )
    yield "## Macros"
    yield ""
    yield from _table(("macro", "what it does"), ((f"`{name}`", says) for name, says in MACROS.items()))
    yield f"And {HAS}."


def _written(name: str, style: str) -> str:
    return {"call": f"`{name}(x)`: ", "method": "", "both": f"`{name}(x)` or `x.{name}()`: "}[style]


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(facts_page())
