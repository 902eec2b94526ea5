"""YAML as ``kubectl -o yaml`` prints it, without YAML's surprises.

Scalars stay text until the field they belong to is known: a label value ``on``, a version ``1.10``, a quantity ``1e3``
or a time never turn into something else. Aliases are refused: kubectl prints none, and nested ones blow a small file up
to gigabytes (CVE-2019-11253).
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import yaml
from msgspec import inspect
from yaml._yaml import CParser


class Plain(str):
    """A scalar without quotes, whose type the field decides."""

    __slots__ = ()


Tree = dict[str, Any] | list[Any] | str | None

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?\Z")


class YamlInvalid(Exception):
    """The text is not YAML that can be used.

    Args:
        line, column: counted from 1; None when the parser does not say.
        problem: what is wrong.
    """

    def __init__(self, line: int | None, column: int | None, problem: str) -> None:
        self.line = line
        self.column = column
        super().__init__(problem)


def documents(data: bytes, max_nesting: int) -> Iterator[tuple[Tree, int]]:
    """The documents of a stream with the line each begins in (from 1). Raises YamlInvalid."""
    try:
        yield from _documents(CParser(data), max_nesting)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark if error.problem_mark is not None else error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
        raise YamlInvalid(line, column, problem) from error
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise YamlInvalid(None, None, " ".join(str(error).split())) from error


def _documents(parser: Any, max_nesting: int) -> Iterator[tuple[Tree, int]]:
    line = 1
    while (event := parser.get_event()) is not None:
        if isinstance(event, yaml.StreamEndEvent):
            return
        if isinstance(event, yaml.DocumentStartEvent):
            line = _line(event)
        elif not isinstance(event, yaml.StreamStartEvent | yaml.DocumentEndEvent):
            yield _node(parser, event, max_nesting), line


def _node(parser: Any, event: Any, max_nesting: int) -> Tree:
    """One node and all below it, without recursion."""
    root: list[Any] = []
    containers: list[Any] = [root]
    keys: list[str | None] = [None]
    while True:
        kind = type(event)
        if kind is yaml.AliasEvent:
            raise _at(event, "an alias (*name): kubectl prints none, and they are not followed")
        if kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            containers.pop()
            keys.pop()
        else:
            value: Any
            if kind is yaml.ScalarEvent:
                value = Plain(event.value) if not event.style and event.tag is None else event.value
            else:
                value = {} if kind is yaml.MappingStartEvent else []
            _add(containers[-1], keys, value, event)
            if kind is not yaml.ScalarEvent:
                if len(containers) > max_nesting:
                    raise _at(event, f"more than {max_nesting} levels of nesting")
                containers.append(value)
                keys.append(None)
        if len(containers) == 1:
            return root[0]  # type: ignore[no-any-return]
        event = parser.get_event()


def _add(container: Any, keys: list[str | None], value: Any, event: Any) -> None:
    if isinstance(container, list):
        container.append(value)
    elif keys[-1] is None:
        if not isinstance(value, str):
            raise _at(event, "a key that is not a plain word")
        keys[-1] = str(value)
    else:
        container[keys[-1]] = value
        keys[-1] = None


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _at(event: Any, problem: str) -> YamlInvalid:
    return YamlInvalid(_line(event), event.start_mark.column + 1, problem)


def convert(tree: Tree, target: Any) -> Any:
    """A tree as ``target``, a struct of :mod:`rules.facts.objects`. Raises msgspec.ValidationError."""
    return msgspec.convert(_shaper(target)(tree), target)


def resolve(tree: Tree) -> Any:
    """A tree as JSON would have it: null, booleans and numbers by YAML 1.2's core rules, all else text."""
    if isinstance(tree, Plain):
        return _resolve_plain(tree)
    if isinstance(tree, dict):
        return {key: resolve(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [resolve(value) for value in tree]
    return tree


def _resolve_plain(text: Plain) -> Any:
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return str(text)


_Shaper = Callable[[Any], Any]


@cache
def _shaper(target: Any) -> _Shaper:
    return _shape(inspect.type_info(target))


def _shape(info: inspect.Type) -> _Shaper:
    """What brings a tree into the form that ``info`` describes; a tree of another form is left to the converter."""
    if isinstance(info, inspect.UnionType):
        return _union(info)
    if isinstance(info, inspect.StrType):
        return lambda tree: _text(tree) or "" if isinstance(tree, str) else resolve(tree)
    if isinstance(info, inspect.DateTimeType):
        return lambda tree: _text(tree) if isinstance(tree, str) else resolve(tree)
    if isinstance(info, inspect.StructType):
        fields = [(field.encode_name, _shape(field.type)) for field in info.fields]
        return lambda tree: (
            {name: shape(tree[name]) for name, shape in fields if name in tree}
            if isinstance(tree, dict)
            else resolve(tree)
        )
    if isinstance(info, inspect.DictType):
        of_value = _shape(info.value_type)
        return lambda tree: (
            {key: of_value(value) for key, value in tree.items()} if isinstance(tree, dict) else resolve(tree)
        )
    if isinstance(info, inspect.ListType):
        of_item = _shape(info.item_type)
        return lambda tree: [of_item(item) for item in tree] if isinstance(tree, list) else resolve(tree)
    return resolve


def _union(info: inspect.UnionType) -> _Shaper:
    some = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    text = next((member for member in some if isinstance(member, inspect.StrType)), None)
    if text is not None:
        return lambda tree: _text(tree) if isinstance(tree, str) else resolve(tree)
    shape = _shape(some[0])
    return lambda tree: None if isinstance(tree, Plain) and tree in _NULLS else shape(tree)


def _text(tree: str) -> str | None:
    return None if isinstance(tree, Plain) and tree in _NULLS else str(tree)
