"""Types of CEL values, as far as conditions over facts need them."""

from typing import Any

import msgspec


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts. ``any`` is the type of nothing in particular, such as an item of an empty list."""

    name: str


BOOL = Scalar("bool")
INT = Scalar("int")
UINT = Scalar("uint")
DOUBLE = Scalar("double")
STRING = Scalar("string")
TIMESTAMP = Scalar("timestamp")
DURATION = Scalar("duration")
NULL = Scalar("null")
ANY = Scalar("any")
NUMBERS = frozenset({INT, UINT, DOUBLE})


class ListOf(msgspec.Struct, frozen=True):
    """A list. ``length`` names what it is long by (``Cluster.nodes``); empty for lists that are always short."""

    item: "Type"
    length: str = ""


class MapOf(msgspec.Struct, frozen=True):
    """A map with string keys, such as labels. A key that is absent is known to be absent."""

    value: "Type"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a shape.

    Attributes:
        type: of its value.
        says: one line for the documentation.
        unit: of the value, where people should see one.
        needs: kinds that must have been read, beyond the object's own.
        only_in: scopes in which it is there; empty means all.
        maybe: whether it can be unknown.
        read: gives the value from (scene, object); None is "unknown", and then the field is absent.
    """

    type: "Type"
    says: str
    unit: str = ""
    needs: tuple[str, ...] = ()
    only_in: tuple[str, ...] = ()
    maybe: bool = False
    read: Any


class Shape(msgspec.Struct, frozen=True, eq=False):
    """A thing with named facts: a node, a pod. ``name`` is how the documentation calls it."""

    name: str
    facts: dict[str, Fact]

    def __repr__(self) -> str:
        return f"Shape({self.name!r})"


Type = Scalar | ListOf | MapOf | Shape


def spelled(type_: Type) -> str:
    """The type as people write it."""
    match type_:
        case Scalar():
            return type_.name
        case ListOf():
            return f"list of {spelled(type_.item)}"
        case MapOf():
            return f"map of {spelled(type_.value)}"
        case Shape():
            return type_.name


def one(type_: Type) -> str:
    """``an int``, ``a list of string``."""
    name = spelled(type_)
    return f"an {name}" if name[0] in "aeiou" and not name.startswith("u") else f"a {name}"


def agree(left: Type, right: Type) -> bool:
    """Whether values of the two types can be equal: the same type, or two numbers."""
    if ANY in (left, right) or (left in NUMBERS and right in NUMBERS):
        return True
    match left, right:
        case ListOf(), ListOf():
            return agree(left.item, right.item)
        case MapOf(), MapOf():
            return agree(left.value, right.value)
        case Shape(), _:
            return False
        case _:
            return left == right
