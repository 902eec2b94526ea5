"""What is known of an expression before it is evaluated: its type, what it reads, and how much work it can become."""

from collections.abc import Mapping

import msgspec

from rules.custom.types import Type

FEW = 50
"""What a list without a named length is taken to hold."""


class Loop(msgspec.Struct, frozen=True):
    """A macro over a list, with the loops in its body.

    ``square``: the engine copies what it has gathered with every item, which weighs for ``map`` and, more, ``filter``.
    """

    length: str
    square: float
    inner: "tuple[Loop, ...]"

    def steps(self, lengths: Mapping[str, int]) -> float:
        """Work over lists of these lengths; a step takes the engine about a microsecond."""
        items = lengths.get(self.length, FEW)
        return items * (1 + sum(loop.steps(lengths) for loop in self.inner)) + self.square * items * items


class Read(msgspec.Struct, frozen=True):
    """A fact that stands in an expression: ``path`` as people write it, and whether it starts at a variable."""

    path: str
    shape: str
    fact: str
    type: Type
    unit: str
    direct: bool


class Checked(msgspec.Struct, frozen=True):
    """What is known of an expression before it is evaluated.

    Attributes:
        type: of its value.
        variables: those it names.
        reads: facts that it names, in order.
        needs: kinds that must have been read for these facts.
        loops: its macros.
        constants: calls with a fixed argument, which can be tried at once: where they stand, and their text.
    """

    type: Type
    variables: frozenset[str]
    reads: tuple[Read, ...]
    needs: frozenset[str]
    loops: tuple[Loop, ...]
    constants: tuple[tuple[int, str], ...]

    @property
    def wanted(self) -> dict[str, frozenset[str]]:
        """Facts to work out, by name of their shape."""
        found: dict[str, set[str]] = {}
        for read in self.reads:
            found.setdefault(read.shape, set()).add(read.fact)
        return {shape: frozenset(facts) for shape, facts in found.items()}

    def steps(self, lengths: Mapping[str, int]) -> float:
        """Work for one object; see :meth:`Loop.steps`."""
        return 1 + sum(loop.steps(lengths) for loop in self.loops)
