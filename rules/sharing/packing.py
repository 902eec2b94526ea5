"""The fewest or cheapest bins for a set of items: branch and bound, with a proof or the distance to one.

A bin is one GPU of a kind in a mode; what fits into it is the kind's own affair. Alike items are counted, not listed.
The search always opens a bin for the first item left (the largest), so no two orders of the same bins are looked at;
it tries every largest possible filling of that bin, drops a branch whose cost and lower bound reach the best known, and
remembers states. It ends after a number of counted steps, never by a clock, so that the same request always gives the
same plan.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

STEPS = 400
"""Fillings that are looked at before the search gives up proving; about 50 microseconds each."""

MOST_BINS_SEARCHED = 150
_THRESHOLDS = 12
_BOUNDS_KEPT = 4
_EPSILON = 1e-7


class Kind(Protocol):
    """A kind of bin.

    Attributes:
        cost: of one bin: 1, or micro-dollars per hour.
        loads: per item type, the shares of one bin that it takes, one number per bound; None: it may not be in there.
            The loads of whatever fits together never add up to more than 1 in any bound.
        greedy: filling a bin with the largest items left is never worse than another filling, because whatever holds an
            item holds a smaller one in its place.
    """

    @property
    def greedy(self) -> bool:
        """See above."""
        ...

    @property
    def cost(self) -> int:
        """See above."""
        ...

    @property
    def loads(self) -> Sequence[tuple[float, ...] | None]:
        """See above."""
        ...

    def key(self, item: int) -> Hashable:
        """Item types with one key behave alike in this kind; falsy for those that it may not hold."""
        ...

    def empty(self) -> Hashable:
        """The state of an empty bin."""
        ...

    def add(self, state: Hashable, item: int) -> Hashable | None:
        """The state after one more item of that type; None when it does not fit."""
        ...


class Filled(msgspec.Struct, frozen=True):
    """A bin: the index of its kind, and how many items of each type it holds."""

    kind: int
    items: tuple[tuple[int, int], ...]


class Packing(msgspec.Struct, frozen=True):
    """A packing of all items.

    Attributes:
        cost: of its bins.
        bound: no packing costs less.
        optimal: proven to be the least.
    """

    bins: tuple[Filled, ...]
    cost: int
    bound: int
    optimal: bool


def pack(counts: Sequence[int], kinds: Sequence[Kind], *, steps: int = STEPS) -> Packing | None:
    """Pack ``counts`` items of each type (largest first); None when some item may be in no kind of bin."""
    classes: dict[tuple[Hashable, ...], list[int]] = {}
    for item in range(len(counts)):
        alike = tuple(kind.key(item) for kind in kinds)
        if counts[item] and not any(alike):
            return None
        classes.setdefault(alike, []).append(item)
    members = list(classes.values())
    merged = [_Merged(kind, members) for kind in kinds]
    packing = _Search([sum(counts[item] for item in group) for group in members], merged, steps).run()
    queues = [deque(item for item in group for _ in range(counts[item])) for group in members]
    bins = tuple(_named(filled, queues) for filled in packing.bins)
    return Packing(bins, packing.cost, packing.bound, packing.optimal)


def least_cost(counts: Sequence[int], kinds: Sequence[Kind]) -> int:
    """What a packing in these kinds costs at least, without a search; every item must have a kind."""
    return _Search(counts, kinds, 0).bound(counts)


def _named(filled: Filled, queues: Sequence[deque[int]]) -> Filled:
    """The bin of merged types with the real ones in it."""
    held: dict[int, int] = {}
    for group, n in filled.items:
        for _ in range(n):
            item = queues[group].popleft()
            held[item] = held.get(item, 0) + 1
    return Filled(filled.kind, tuple(sorted(held.items())))


class _Merged:
    """A kind of bin over types that are alike in all kinds taken together."""

    def __init__(self, kind: Kind, members: Sequence[Sequence[int]]) -> None:
        self.inner, self.first = kind, [group[0] for group in members]
        self.cost, self.greedy = kind.cost, kind.greedy
        self.loads = [kind.loads[item] for item in self.first]
        self.empty = kind.empty

    def key(self, item: int) -> Hashable:
        return self.inner.key(self.first[item])

    def add(self, state: Hashable, item: int) -> Hashable | None:
        return self.inner.add(state, self.first[item])


class _Search:
    def __init__(self, counts: Sequence[int], kinds: Sequence[Kind], steps: int) -> None:
        self.counts = tuple(counts)
        self.kinds = kinds
        self.steps = steps
        self.unit = _common(kind.cost for kind in kinds)
        self.possible = [
            [k for k, kind in enumerate(kinds) if kind.loads[item] is not None] for item in range(len(counts))
        ]
        self.shares = self._least_shares(sharp=False)
        self.best: list[Filled] = []
        self.best_cost = 0
        self.seen: dict[tuple[int, ...], int] = {}
        self.complete = True
        self.counting = False
        self.all_greedy = all(kind.greedy for kind in kinds)

    def _least_shares(self, *, sharp: bool) -> list[tuple[float, ...]]:
        """Per bound and item type, the least it can cost: its share of the cheapest kind's bin.

        If ``sharp``, those of the dual feasible functions of Martello and Toth (L2) stand beside the plain shares:
        above 1 - t an item counts as a whole bin, below t as nothing. The few that say most of the whole are kept.
        """
        dimensions = max((len(load) for kind in self.kinds for load in kind.loads if load), default=0)
        rows = []
        for dimension in range(dimensions):
            for threshold in self._thresholds(dimension) if sharp else (0.0,):
                row = [self._least_share(item, dimension, threshold) for item in range(len(self.counts))]
                rows.append(tuple(row))
        rows.sort(key=lambda row: -sum(map(float.__mul__, row, map(float, self.counts))))
        return rows[:_BOUNDS_KEPT]

    def _thresholds(self, dimension: int) -> list[float]:
        loads = {load[dimension] for kind in self.kinds for load in kind.loads if load and 0 < load[dimension] <= 0.5}
        found = sorted(loads)
        step = max(1, len(found) // _THRESHOLDS)
        return [0.0, *found[::step], 0.5]

    def _least_share(self, item: int, dimension: int, threshold: float) -> float:
        least: float | None = None
        for k in self.possible[item]:
            load = (self.kinds[k].loads[item] or ())[dimension]
            if load > 1 - threshold + _EPSILON:
                load = 1.0
            elif load < threshold - _EPSILON:
                load = 0.0
            cost = self.kinds[k].cost * load
            least = cost if least is None else min(least, cost)
        return least or 0.0

    def bound(self, counts: Sequence[int]) -> int:
        """What the items cost at least: the largest of the bounds, up to the next cost that bins can add up to."""
        least = max((sum(map(float.__mul__, row, map(float, counts))) for row in self.shares), default=0.0)
        units = -int(-(least / self.unit - _EPSILON) // 1)
        return max(0, units) * self.unit

    def run(self) -> Packing:
        self.best = self._greedy()
        self.best_cost = self._cost(self.best)
        bound = self.bound(self.counts)
        if bound < self.best_cost and self.steps > 0:
            self.shares = self._least_shares(sharp=True)
            bound = self.bound(self.counts)
        if bound < self.best_cost:
            if len(self.best) <= MOST_BINS_SEARCHED:
                self.counting = True
                self._descend(self.counts, 0, [])
            else:
                self.complete = False
        optimal = self.complete or bound >= self.best_cost
        return Packing(tuple(self.best), self.best_cost, self.best_cost if optimal else bound, optimal)

    def _cost(self, bins: Sequence[Filled]) -> int:
        return sum(self.kinds[item.kind].cost for item in bins)

    def _greedy(self) -> list[Filled]:
        """Bin by bin, the filling that carries the most for its cost."""
        left = self.counts
        bins: list[Filled] = []
        while any(left):
            first = next(item for item, n in enumerate(left) if n)
            options = [(*next(self._fillings(k, left, first)), k) for k in self.possible[first]]
            filled, _, kind = max(
                options, key=lambda option: (self._worth(option[0]) / self.kinds[option[2]].cost, -option[2])
            )
            # The same again and again, while there are items for it.
            times = min(left[item] // n for item, n in filled)
            bins += [Filled(kind, filled)] * times
            for _ in range(times):
                left = _without(left, dict(filled))
        return bins

    def _worth(self, filled: Sequence[tuple[int, int]]) -> float:
        return max((sum(row[item] * n for item, n in filled) for row in self.shares), default=1.0) or 1.0

    def _descend(self, counts: tuple[int, ...], cost: int, bins: list[Filled]) -> None:
        first = next((item for item, n in enumerate(counts) if n), None)
        if first is None:
            if cost < self.best_cost:
                self.best, self.best_cost = list(bins), cost
            return
        for kind in self.possible[first]:
            price = self.kinds[kind].cost
            for filled, after in self._fillings(kind, counts, first):
                if self.steps < 0:
                    self.complete = False
                    return
                now = cost + price
                if now + self.bound(after) >= self.best_cost or self.seen.get(after, self.best_cost) <= now:
                    if self.all_greedy:
                        break
                    continue
                self.seen[after] = now
                bins.append(Filled(kind, filled))
                self._descend(after, now, bins)
                bins.pop()
                if self.all_greedy:
                    break

    def _fillings(
        self, k: int, counts: tuple[int, ...], first: int
    ) -> Iterator[tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]:
        """Fillings of a bin with the first item in it to which nothing can be added, those of large items first."""
        kind = self.kinds[k]
        order = [item for item, n in enumerate(counts) if n and kind.loads[item] is not None]
        taken: dict[int, int] = {}
        declined: list[int] = []

        def fill(position: int, state: Hashable) -> Iterator[dict[int, int]]:
            # What does not fit now does not fit later either, so only what was declined can still be added at the end.
            while position < len(order) and kind.add(state, order[position]) is None:
                position += 1
            if position == len(order):
                self.steps -= self.counting
                if self.steps < 0 or all(kind.add(state, item) is None for item in declined):
                    yield taken
                return
            item = order[position]
            states = [state]
            while len(states) <= counts[item]:
                following = kind.add(states[-1], item)
                if following is None:
                    break
                states.append(following)
            most, least = len(states) - 1, 1 if item == first else 0
            for n in range(most, least - 1, -1):
                if n:
                    taken[item] = n
                else:
                    taken.pop(item, None)
                if n == most - 1:
                    declined.append(item)
                yield from fill(position + 1, states[n])
            if most > least:
                declined.pop()
            taken.pop(item, None)

        for chosen in fill(0, kind.empty()):
            filled = tuple(sorted(chosen.items()))
            yield filled, _without(counts, chosen)


def _without(counts: Sequence[int], chosen: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(n - chosen.get(item, 0) for item, n in enumerate(counts))


def _common(costs: Iterator[int]) -> int:
    from math import gcd

    found = 0
    for cost in costs:
        found = gcd(found, cost)
    return found or 1
