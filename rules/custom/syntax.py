"""The shape of a CEL expression: tokens and a tree with positions.

The CEL engine compiles and evaluates expressions, but shows nobody its tree. Without one, a misspelt fact would be
found only when an object is judged, and nobody could say where in the expression it stands. So this module reads the
part of the grammar that conditions need (github.com/google/cel-spec, doc/langdef.md) and refuses the rest in words:
message literals, bytes, and macros with two variables. What it accepts must also pass the engine's own parser.
"""

import re
from typing import Literal as OneOf

import msgspec

from rules.custom.errors import ExpressionInvalid

MAX_LENGTH = 2000
MAX_DEPTH = 24

_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
    |(?P<bytes>(?:[bB][rR]?|[rR][bB])(?=["']))
    |(?P<string>[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"[^"\n]*"|'[^'\n]*')
       |\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[!<>+\-*/%?:.,()\[\]{}])""",
    re.VERBOSE,
)


class Node(msgspec.Struct, frozen=True, tag=True):
    """A part of an expression; ``at`` is where it stands."""

    at: int


class Literal(Node, frozen=True, tag=True):
    """``true``, ``3``, ``"text"``; ``text`` is the content of a string without escapes, None of any other."""

    kind: OneOf["bool", "int", "uint", "double", "string", "null"]
    source: str
    text: str | None = None


class Name(Node, frozen=True, tag=True):
    """A variable."""

    name: str


class Select(Node, frozen=True, tag=True):
    """``operand.field``; ``at`` is where the field stands."""

    operand: Node
    field: str


class Index(Node, frozen=True, tag=True):
    """``operand[key]``."""

    operand: Node
    key: Node


class Call(Node, frozen=True, tag=True):
    """``function(...)``, or ``target.function(...)``."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class ListItems(Node, frozen=True, tag=True):
    """``[a, b]``."""

    items: tuple[Node, ...]


class MapEntries(Node, frozen=True, tag=True):
    """``{key: value}``."""

    entries: tuple[tuple[Node, Node], ...]


class Unary(Node, frozen=True, tag=True):
    """``!operand`` or ``-operand``."""

    operator: str
    operand: Node


class Binary(Node, frozen=True, tag=True):
    """Two operands; ``at`` is where the operator stands."""

    operator: str
    left: Node
    right: Node


class Choice(Node, frozen=True, tag=True):
    """``condition ? yes : no``."""

    condition: Node
    yes: Node
    no: Node


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    at: int


_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "!=", "<", "<=", ">", ">=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        ExpressionInvalid: it is too long or too deep, or not an expression of the supported kind.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionInvalid(
            text, MAX_LENGTH, f"the expression has {len(text)} characters; {MAX_LENGTH} are the most"
        )
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            letter = text[at]
            if letter in "\"'":
                raise ExpressionInvalid(text, at, "this text has no closing quote")
            hint = {"=": "; compare with ==", "&": "; and is &&", "|": "; or is ||"}.get(letter, "")
            raise ExpressionInvalid(text, at, f"{letter!r} means nothing here{hint}")
        kind = match.lastgroup or ""
        if match["bytes"]:
            raise ExpressionInvalid(text, at, "bytes are not supported; no fact is made of bytes")
        if match["int"]:
            kind = "uint" if match["unsigned"] else "int"
        if kind != "space":
            found.append(_Token(kind, match[0], at))
        at = match.end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        if not self._tokens:
            raise ExpressionInvalid(self._text, 0, "the expression is empty")
        node = self._choice()
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            raise self._error(token.at, f"{token.text!r} was not expected here")
        return node

    def _error(self, at: int, problem: str) -> ExpressionInvalid:
        return ExpressionInvalid(self._text, at, problem)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self) -> _Token:
        token = self._peek()
        if token is None:
            raise self._error(len(self._text.rstrip()), "the expression ends too early")
        self._next += 1
        return token

    def _is(self, sign: str) -> bool:
        token = self._peek()
        return token is not None and token.text == sign and token.kind in ("sign", "name")

    def _want(self, sign: str) -> _Token:
        token = self._take()
        if token.text != sign or token.kind != "sign":
            raise self._error(token.at, f"{token.text!r} was not expected here; {sign!r} is missing")
        return token

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            token = self._peek()
            raise self._error(token.at if token else len(self._text), f"nested more than {MAX_DEPTH} levels deep")
        condition = self._binary(0)
        if self._is("?"):
            at = self._take().at
            yes = self._binary(0)
            self._want(":")
            condition = Choice(at, condition, yes, self._choice())
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (token := self._peek()) is not None and token.text in _LEVELS[level] and token.kind in ("sign", "name"):
            self._take()
            left = Binary(token.at, token.text, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        signs: list[_Token] = []
        while self._is("!") or self._is("-"):
            signs.append(self._take())
            if len(signs) > MAX_DEPTH:
                raise self._error(signs[-1].at, f"more than {MAX_DEPTH} signs in a row")
        node = self._member()
        for token in reversed(signs):
            node = Unary(token.at, token.text, node)
        return node

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._is("."):
                self._take()
                token = self._take()
                if token.kind != "name" or token.text == "in":
                    raise self._error(token.at, f"a name must follow the dot, not {token.text!r}")
                if self._is("("):
                    node = Call(token.at, token.text, node, self._arguments())
                else:
                    node = Select(token.at, node, token.text)
            elif self._is("["):
                self._take()
                key = self._choice()
                at = self._want("]").at
                node = Index(at, node, key)
            elif self._is("{"):
                raise self._error(self._take().at, "message literals are not supported")
            else:
                return node

    def _arguments(self) -> tuple[Node, ...]:
        self._want("(")
        return self._row(")")

    def _row(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._is(end):
            items.append(self._choice())
            if not self._is(","):
                break
            comma = self._take()
            if self._is(end) and end == ")":
                raise self._error(comma.at, "nothing follows this comma")
        self._want(end)
        return tuple(items)

    def _primary(self) -> Node:
        token = self._take()
        if token.kind in ("int", "uint", "double"):
            return Literal(token.at, token.kind, token.text)  # type: ignore[arg-type]
        if token.kind == "string":
            return Literal(token.at, "string", token.text, _content(token.text))
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            node = self._choice()
            self._want(")")
            return node
        if token.text == "[":
            return ListItems(token.at, self._row("]"))
        if token.text == "{":
            return MapEntries(token.at, self._entries())
        raise self._error(token.at, f"{token.text!r} was not expected here")

    def _named(self, token: _Token) -> Node:
        if token.text in ("true", "false"):
            return Literal(token.at, "bool", token.text)
        if token.text == "null":
            return Literal(token.at, "null", token.text)
        if token.text == "in":
            raise self._error(token.at, "'in' needs something on its left")
        if self._is("("):
            return Call(token.at, token.text, None, self._arguments())
        return Name(token.at, token.text)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        entries: list[tuple[Node, Node]] = []
        while not self._is("}"):
            key = self._choice()
            self._want(":")
            entries.append((key, self._choice()))
            if not self._is(","):
                break
            self._take()
        self._want("}")
        return tuple(entries)


def _content(source: str) -> str | None:
    """What a string literal says; None where it has escapes, which only the engine reads."""
    raw = source[0] in "rR"
    body = source[1:] if raw else source
    quotes = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    inner = body[quotes:-quotes]
    return inner if raw or "\\" not in inner else None
