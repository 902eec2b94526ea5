"""A YAML file of settings, with the place of everything in it: errors name file, line and path."""

import difflib
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import yaml

from service.errors import ConfigInvalid

Steps = tuple[str | int, ...]
"""A path into a file: keys and places in lists."""
_SOME_KEY = "*"
"""What msgspec writes as ``[...]``: it does not say which key."""


class Document:
    """A YAML file with the place of every node."""

    def __init__(self, source: str, root: yaml.Node | None, data: dict[str, Any]) -> None:
        self.source = source
        self.root = root
        self.data = data

    @classmethod
    def empty(cls) -> "Document":
        """What there is without a file."""
        return cls("settings", None, {})

    @classmethod
    def read(cls, path: Path, top: str = "settings such as `clusters:`") -> "Document":
        """Read a file.

        Args:
            top: what its top level should hold, for the error.

        Raises:
            ConfigInvalid: it cannot be read, is no YAML, or holds no mapping.
        """
        source = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigInvalid(source, None, f"the file cannot be read: {reason}") from error
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return cls(source, None, {})
            _refuse_repeated_keys(source, root)
            data = loader.construct_document(root)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise ConfigInvalid(source, line, f"not valid YAML: {error.problem}") from error
        except (yaml.YAMLError, ValueError) as error:
            raise ConfigInvalid(source, None, f"not valid YAML: {error}") from error
        except RecursionError as error:
            raise ConfigInvalid(source, None, "not valid YAML: it is nested too deeply") from error
        finally:
            loader.dispose()
        if not isinstance(data, dict):
            raise ConfigInvalid(source, root.start_mark.line + 1, f"expected {top} at the top")
        return cls(source, root, data)

    def error(self, path: Steps, problem: str, given: Mapping[tuple[str, ...], str] | None = None) -> ConfigInvalid:
        """The error at ``path``, blamed on the variable that set it (see ``given``) or on the line of the file."""
        for set_path, variable in (given or {}).items():
            if path and set_path == path:
                return ConfigInvalid(f"environment variable {variable}", None, problem)
        return ConfigInvalid(self.source, self.line(path), f"{problem} (at `{spelled(path)}`)" if path else problem)

    def line(self, path: Steps) -> int | None:
        """Line (from 1) of the deepest node of ``path`` that the file holds; None without a file.

        A string also leads to the item of a list that is written so.
        """
        found = self._find(path)
        return found[0] if found else None

    def line_in_text(self, path: Steps, line: int) -> int | None:
        """Line of the file where line ``line`` (from 1) of the text at ``path`` stands, as far as YAML tells: exact for
        a block (``|``) and for a single line; the first line of the text elsewhere."""
        found = self._find(path)
        if found is None:
            return None
        node = found[1]
        first = node.start_mark.line + 1
        return first + line if isinstance(node, yaml.ScalarNode) and node.style == "|" else first

    def _find(self, path: Steps) -> tuple[int, yaml.Node] | None:
        node = self.root
        if node is None:
            return None
        line = node.start_mark.line + 1
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            line, node = child
        return line, node

    def _with_keys(self, path: Steps) -> Steps:
        """``path`` with the keys in place of "some key": the first under which the next step is found."""
        found: Steps = ()
        node = self.root
        for number, step in enumerate(path):
            if step == _SOME_KEY and node is not None:
                after = path[number + 1] if number + 1 < len(path) else None
                under = [(key, child) for key, _, child in _children(node) if after is None or _child(child, after)]
                if len(under) != 1 and after is None:
                    return found
                step = under[0][0] if under else step  # noqa: PLW2901 - it is the same step, now known
            found = (*found, step)
            child = _child(node, step) if node is not None else None
            node = child[1] if child else None
        return found

    def convert(self, kind: type[Any], given: Mapping[tuple[str, ...], str] | None = None) -> Any:
        """What the file holds, as a struct.

        Raises:
            ConfigInvalid: names the place of what does not fit, and what would.
        """
        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            raise self._located(error, kind, given) from error

    def _located(
        self, error: msgspec.ValidationError, kind: type[Any], given: Mapping[tuple[str, ...], str] | None
    ) -> ConfigInvalid:
        message, _, where = str(error).partition(" - at `")
        path = _path(where.rstrip("`"))
        unknown = _UNKNOWN_FIELD.fullmatch(message)
        if unknown is None:
            return self.error(self._with_keys(path), message, given)
        key = unknown[1]
        path = self._with_keys((*path, key))[:-1]
        known = _fields(kind, path)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
        return self.error((*path, key), f"unknown setting {key!r}; {hint}", given)


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    for key, line, child in _children(node):
        written = isinstance(node, yaml.SequenceNode) and isinstance(child, yaml.ScalarNode) and child.value == step
        if key == step or written:
            return line, child
    return None


def _children(node: yaml.Node) -> Iterator[tuple[str | int, int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key.value, key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield index, value.start_mark.line + 1, value


def _refuse_repeated_keys(source: str, root: yaml.Node) -> None:
    waiting: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        seen: set[str | int] = set()
        for key, line, child in _children(node):
            if key in seen:
                raise ConfigInvalid(source, line, f"`{spelled((*path, key))}` stands twice; keep one of them")
            seen.add(key)
            waiting.append((child, (*path, key)))


_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`")


def _path(text: str) -> tuple[str | int, ...]:
    """``$.clusters[0].name`` -> ("clusters", 0, "name")."""
    return tuple(
        int(index) if index else name or _SOME_KEY
        for name, index in re.findall(r"\.([^.\[\]]+)|\[(?:(\d+)|\.\.\.)\]", text)
    )  # fmt: skip


def spelled(path: Steps) -> str:
    """``clusters[0].name``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _fields(annotation: Any, path: Steps) -> list[str]:
    """Names that are known at ``path``."""
    for step in path:
        annotation = next(filter(None, (_inside(option, step) for option in _options(annotation))), None)
    return [
        field.encode_name
        for option in _options(annotation)
        if isinstance(option, type) and issubclass(option, msgspec.Struct)
        for field in msgspec.structs.fields(option)
    ]


def _options(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for option in get_args(annotation):
            yield from _options(option)
    else:
        yield annotation


def _inside(annotation: Any, step: str | int) -> Any:
    """The type of what lies at ``step`` in a value of the type; None where nothing does."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        fields = msgspec.structs.fields(annotation)
        return next((field.type for field in fields if field.encode_name == step), None)
    parts = get_args(annotation)
    if not parts:
        return None
    return parts[0] if isinstance(step, int) else parts[-1]
