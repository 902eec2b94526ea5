"""Checking an expression before any object is judged: names, types, and how much work it can become."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rules.custom.checked import Checked, Loop, Read
from rules.custom.errors import ExpressionInvalid
from rules.custom.functions import FUNCTIONS, MACROS, VERSION, Function
from rules.custom.shapes import VARIABLES
from rules.custom.syntax import (
    Binary,
    Call,
    Choice,
    Index,
    ListItems,
    Literal,
    MapEntries,
    Name,
    Node,
    Select,
    Unary,
)
from rules.custom.types import (
    ANY,
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    NULL,
    NUMBERS,
    STRING,
    TIMESTAMP,
    UINT,
    ListOf,
    MapOf,
    Scalar,
    Shape,
    Type,
    agree,
    one,
    spelled,
)

MAX_LOOPS = 3
MAX_PATTERN = 200
MAX_REPEATS = 1000
_LITERALS: Mapping[str, Type] = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "null": NULL,
}
_ORDERED = (STRING, TIMESTAMP, DURATION, BOOL)
_REPEAT = re.compile(r"\{([0-9]*),?([0-9]*)\}")
_CLOCK: Mapping[tuple[str, Type, Type], Type] = {
    ("+", DURATION, DURATION): DURATION,
    ("-", DURATION, DURATION): DURATION,
    ("+", TIMESTAMP, DURATION): TIMESTAMP,
    ("+", DURATION, TIMESTAMP): TIMESTAMP,
    ("-", TIMESTAMP, DURATION): TIMESTAMP,
    ("-", TIMESTAMP, TIMESTAMP): DURATION,
    ("+", STRING, STRING): STRING,
}


_SQUARE = {"map": 0.05, "filter": 0.5}


def check(text: str, node: Node, scope: str) -> Checked:
    """Check the tree of ``text``.

    Raises:
        ExpressionInvalid: a name does not exist, types do not fit, or it would do too much work.
    """
    checker = _Checker(text, scope)
    type_ = checker.type_of(node)
    return Checked(
        type_,
        frozenset(checker.variables),
        tuple(dict.fromkeys(checker.reads)),
        frozenset(checker.needs),
        tuple(checker.loops[0]),
        tuple(checker.constants),
    )


def near(word: str, known: Iterable[str], every: str) -> str:
    """``did you mean ...?``, or a sentence that names all there are."""
    names = sorted(known)
    # first without regard to case, so that olderthan and older_than find olderThan
    plain = {re.sub("_", "", name).lower(): name for name in names}
    close = difflib.get_close_matches(re.sub("_", "", word).lower(), plain, n=1, cutoff=0.7)
    hint = f"did you mean {plain[close[0]]!r}? " if close else ""
    return f"{hint}{every}: {', '.join(names)}"


class _Checker:
    def __init__(self, text: str, scope: str) -> None:
        self._text = text
        self._scope = scope
        self._names: dict[str, Type] = dict(VARIABLES[scope])
        self._paths: dict[str, str] = {}
        self.variables: set[str] = set()
        self.reads: list[Read] = []
        self.needs: set[str] = set()
        self.loops: list[list[Loop]] = [[]]
        self.constants: list[tuple[int, str]] = []

    def _error(self, at: int, problem: str) -> ExpressionInvalid:
        return ExpressionInvalid(self._text, at, problem)

    def type_of(self, node: Node) -> Type:
        match node:
            case Literal():
                return _LITERALS[node.kind]
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case ListItems():
                return self._list(node)
            case MapEntries():
                return self._map(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Choice():
                return self._choice(node)
        raise AssertionError(node)

    def _name(self, node: Name) -> Type:
        found = self._names.get(node.name)
        if found is None:
            every = f"names of scope {self._scope}"
            raise self._error(node.at, f"there is no {node.name!r} here; {near(node.name, self._names, every)}")
        if node.name in VARIABLES[self._scope]:
            self.variables.add(node.name)
            if node.name == "node":
                self.needs.add("Node")
        return found

    def _select(self, node: Select) -> Type:
        operand = self.type_of(node.operand)
        if operand == ANY:
            return ANY
        if isinstance(operand, MapOf):
            return operand.value
        if not isinstance(operand, Shape):
            raise self._error(node.at, f"{one(operand)} has no part {node.field!r}")
        fact = operand.facts.get(node.field)
        if fact is None:
            every = f"facts of a {operand.name}"
            raise self._error(node.at, f"there is no fact {node.field!r}; {near(node.field, operand.facts, every)}")
        if fact.only_in and self._scope not in fact.only_in:
            raise self._error(
                node.at, f"{operand.name}.{node.field} is there in scope {' and '.join(fact.only_in)} only"
            )
        self.needs.update(fact.needs)
        base = self._path(node.operand)
        path = f"{base or operand.name}.{node.field}"
        self.reads.append(Read(path, operand.name, node.field, fact.type, fact.unit, direct=base is not None))
        return fact.type

    def _path(self, node: Node) -> str | None:
        """How people write a fact of a variable; None for facts of anything else."""
        match node:
            case Name() if node.name in VARIABLES[self._scope]:
                return node.name
            case Select():
                base = self._path(node.operand)
                return f"{base}.{node.field}" if base else None
            case _:
                return None

    def _index(self, node: Index) -> Type:
        operand, key = self.type_of(node.operand), self.type_of(node.key)
        if operand == ANY:
            return ANY
        if isinstance(operand, ListOf):
            self._must(node.key, key, INT, "a place in a list is a whole number")
            return operand.item
        if isinstance(operand, MapOf):
            self._must(node.key, key, STRING, "keys are strings")
            return operand.value
        if isinstance(operand, Shape):
            raise self._error(node.operand.at, f"facts of a {operand.name} are named with a dot, not in brackets")
        raise self._error(node.operand.at, f"{one(operand)} has no parts")

    def _must(self, node: Node, found: Type, wanted: Type, why: str) -> None:
        if found not in (wanted, ANY):
            raise self._error(node.at, f"{why}; this is {one(found)}")

    def _list(self, node: ListItems) -> Type:
        types = [self._whole(item) for item in node.items]
        for item, type_ in zip(node.items[1:], types[1:], strict=True):
            if not agree(types[0], type_):
                raise self._error(item.at, f"a list of {spelled(types[0])} cannot hold {one(type_)}")
        return ListOf(types[0] if types else ANY)

    def _map(self, node: MapEntries) -> Type:
        values: list[Type] = []
        for key, value in node.entries:
            self._must(key, self.type_of(key), STRING, "keys are strings")
            values.append(self._whole(value))
            if not agree(values[0], values[-1]):
                raise self._error(value.at, f"a map of {spelled(values[0])} cannot hold {one(values[-1])}")
        return MapOf(values[0] if values else ANY)

    def _whole(self, node: Node) -> Type:
        """The type of a value that stands for itself: not null, not a thing with facts."""
        type_ = self.type_of(node)
        if type_ == NULL:
            raise self._error(
                node.at, "no fact is ever null: what is unknown is absent; has(node.driver) tells whether it is known"
            )
        if isinstance(type_, Shape):
            raise self._error(node.at, f"this is a whole {type_.name}; name one of its facts: {', '.join(type_.facts)}")
        return type_

    def _unary(self, node: Unary) -> Type:
        type_ = self._whole(node.operand)
        allowed = (BOOL, ANY) if node.operator == "!" else (INT, DOUBLE, ANY)
        if type_ not in allowed:
            raise self._error(node.at, f"{node.operator!r} cannot stand before {one(type_)}")
        return type_

    def _choice(self, node: Choice) -> Type:
        self._must(node.condition, self._whole(node.condition), BOOL, "what stands before ? must be true or false")
        yes, no = self._whole(node.yes), self._whole(node.no)
        if not agree(yes, no) or (yes in NUMBERS and no in NUMBERS and yes != no):
            raise self._error(node.no.at, f"both sides of : must be of one type; here {spelled(yes)} and {spelled(no)}")
        return no if yes == ANY else yes

    def _binary(self, node: Binary) -> Type:
        left, right = self._whole(node.left), self._whole(node.right)
        match node.operator:
            case "&&" | "||":
                for side, type_ in ((node.left, left), (node.right, right)):
                    self._must(side, type_, BOOL, f"what {node.operator} joins must be true or false")
                return BOOL
            case "==" | "!=":
                if not agree(left, right):
                    raise self._error(node.at, f"{one(left)} is never equal to {one(right)}")
                return BOOL
            case "in":
                return self._in(node, left, right)
            case "<" | "<=" | ">" | ">=":
                numbers = left in NUMBERS | {ANY} and right in NUMBERS | {ANY}
                if not numbers and not (left in _ORDERED and agree(left, right)) and left != ANY:
                    raise self._error(node.at, f"{one(left)} and {one(right)} have no order")
                return BOOL
        return self._arithmetic(node, left, right)

    def _in(self, node: Binary, left: Type, right: Type) -> Type:
        if isinstance(right, ListOf) and not agree(left, right.item):
            raise self._error(node.at, f"{one(left)} is never in {one(right)}")
        if isinstance(right, MapOf):
            self._must(node.left, left, STRING, "keys are strings")
        elif not isinstance(right, ListOf) and right != ANY:
            hint = "; for texts there is contains()" if right == STRING else ""
            raise self._error(node.right.at, f"'in' looks into lists and maps, not into {one(right)}{hint}")
        return BOOL

    def _arithmetic(self, node: Binary, left: Type, right: Type) -> Type:
        if ANY in (left, right):
            return right if left == ANY else left
        timed = _CLOCK.get((node.operator, left, right))
        if timed is not None:
            return timed
        if left == right and left in NUMBERS and not (node.operator == "%" and left == DOUBLE):
            return left
        if node.operator == "+" and isinstance(left, ListOf) and isinstance(right, ListOf) and agree(left, right):
            return ListOf(left.item, left.length or right.length)
        hint = "; write double(...) around the int" if {left, right} == {INT, DOUBLE} else ""
        raise self._error(node.at, f"{node.operator!r} does not go with {spelled(left)} and {spelled(right)}{hint}")

    def _call(self, node: Call) -> Type:
        if node.function == "has" and node.target is None:
            return self._has(node)
        if node.function in MACROS and node.target is not None:
            return self._macro(node, node.target)
        known = FUNCTIONS.get(node.function)
        if known is None:
            every = (*FUNCTIONS, *MACROS, "has")
            raise self._error(
                node.at, f"there is no function {node.function!r}; {near(node.function, every, 'there are')}"
            )
        if known.style == ("call" if node.target is not None else "method"):
            right = "x.f(...)" if known.style == "method" else "f(x)"
            raise self._error(node.at, f"{node.function} is written {right.replace('f(', f'{node.function}(')}")
        arguments = (*((node.target,) if node.target is not None else ()), *node.arguments)
        types = tuple(self.type_of(argument) for argument in arguments)
        result = self._result(node, known, types)
        self._constant(node, arguments)
        return result

    def _has(self, node: Call) -> Type:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Select):
            raise self._error(node.at, "has(...) takes one fact, such as has(node.driver)")
        self.type_of(node.arguments[0])
        return BOOL

    def _result(self, node: Call, function: Function, types: tuple[Type, ...]) -> Type:
        for wanted, result in function.overloads:
            if len(wanted) == len(types) and all(map(_takes, wanted, types)):
                if node.function != "get" or not isinstance(types[0], MapOf):
                    return result
                if not agree(types[0].value, types[2]):
                    break
                return types[0].value
        given = ", ".join(map(spelled, types)) or "nothing"
        ways = " or ".join(f"({', '.join(map(spelled, wanted))})" for wanted, _ in function.overloads)
        raise self._error(node.at, f"{node.function} takes {ways}, not ({given})")

    def _constant(self, node: Call, arguments: tuple[Node, ...]) -> None:
        last = arguments[-1]
        fixed = last if isinstance(last, Literal) and last.kind == "string" else None
        if node.function == "matches":
            if fixed is None:
                raise self._error(last.at, "the pattern must be written out, as a text in quotes")
            self._pattern(fixed)
            self.constants.append((fixed.at, f'"".matches({fixed.source})'))
        elif node.function in ("duration", "timestamp") and fixed is not None:
            self.constants.append((fixed.at, f"{node.function}({fixed.source})"))
        elif node.function == "olderThan" and fixed is not None and fixed.text is not None:
            match = VERSION.match(fixed.text)
            if match is None:
                raise self._error(fixed.at, f"{fixed.text!r} is not a version such as 550.54.14")

    def _pattern(self, pattern: Literal) -> None:
        repeats = 1
        for least, most in _REPEAT.findall(pattern.source):
            repeats *= max(1, int(least[:9] or 0), int(most[:9] or 0))
        if len(pattern.source) > MAX_PATTERN or repeats > MAX_REPEATS:
            raise self._error(
                pattern.at, f"the pattern is too large: {MAX_PATTERN} characters and {MAX_REPEATS} repeats are the most"
            )

    def _macro(self, node: Call, target: Node) -> Type:
        of = self.type_of(target)
        usual = 3 if node.function == "map" and len(node.arguments) == 3 else 2
        if len(node.arguments) != usual or not isinstance(node.arguments[0], Name):
            raise self._error(
                node.at, f"{node.function} takes a name for the item and an expression: list.{node.function}(item, ...)"
            )
        item: Type
        if isinstance(of, ListOf):
            item, length = of.item, of.length
        elif isinstance(of, MapOf) or of == ANY:
            item, length = (STRING if isinstance(of, MapOf) else ANY), ""
        else:
            raise self._error(node.at, f"{node.function} goes over lists and maps, not over {one(of)}")
        variable = node.arguments[0]
        if variable.name in self._names:
            raise self._error(variable.at, f"{variable.name!r} already names something; take another name for the item")
        with self._loop(node, variable.name, item, length):
            bodies = [self._body(argument, node.function) for argument in node.arguments[1:]]
        if node.function == "map":
            if len(bodies) == 2:
                self._must(node.arguments[1], bodies[0], BOOL, "the condition of map must be true or false")
            return ListOf(bodies[-1], length)
        self._must(node.arguments[1], bodies[0], BOOL, f"the condition of {node.function} must be true or false")
        return ListOf(item, length) if node.function == "filter" else BOOL

    def _body(self, node: Node, function: str) -> Type:
        return self.type_of(node) if function == "map" else self._whole(node)

    @contextmanager
    def _loop(self, node: Call, name: str, item: Type, length: str) -> Iterator[None]:
        if len(self.loops) > MAX_LOOPS:
            raise self._error(node.at, f"more than {MAX_LOOPS} macros in each other")
        self._names[name] = item
        self.loops.append([])
        yield
        inner = tuple(self.loops.pop())
        self.loops[-1].append(Loop(length, _SQUARE.get(node.function, 0.0), inner))
        del self._names[name]


def _takes(wanted: Type, given: Type) -> bool:
    if ANY in (wanted, given):
        return given != NULL and not isinstance(given, Shape)
    match wanted, given:
        case ListOf(), ListOf():
            return given.item == wanted.item or ANY in (wanted.item, given.item)
        case MapOf(), MapOf():
            return True
        case _:
            return wanted == given


def plain(type_: Type) -> bool:
    """Whether people can be shown a value of the type: a scalar, or a list of them."""
    item = type_.item if isinstance(type_, ListOf) else type_
    return isinstance(item, Scalar) and item != NULL
