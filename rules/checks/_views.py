"""All GPU nodes as one pod sees them, judged once per kind of node.

Big clusters have thousands of nodes and hundreds of pods that wait, but few kinds of either: nodes with the same
taints, the same GPUs left, the same values of the labels that a selector asks for. A :class:`View` says of all GPU
nodes what :func:`~rules.checks._scheduling.fit` says of one, and works it out per kind: taints once per set of
tolerations, GPUs once per request, selectors once per selector, and the other resources by a search in the sorted
amounts that nodes have left, so that only nodes which lack something are looked at one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain

import msgspec

from rules.checks._scheduling import (
    Fit,
    Obstacle,
    at_the_door,
    beside_gpus,
    in_stock,
    selector_keys,
    selects,
    without_holders,
)
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.objects import PodSpec

_NONE = Decimal(0)
_Keys = tuple[str, ...]
_Door = tuple[frozenset[Obstacle], _Keys, _Keys]
_Verdict = tuple[frozenset[Obstacle], _Keys, _Keys, _Keys]


class Alike(msgspec.Struct, frozen=True):
    """GPU nodes that are alike to a pod; the attributes are those of :class:`~rules.checks._scheduling.Fit`.

    Attributes:
        places: positions of the nodes in :attr:`~rules.facts.cluster.ClusterFacts.gpu_nodes`, ascending.
    """

    obstacles: frozenset[Obstacle]
    tolerable: tuple[str, ...]
    sick: tuple[str, ...]
    lacking: tuple[str, ...]
    places: tuple[int, ...]


class View:
    """GPU nodes, or some of them, as a pod sees them. Empty where there is none.

    Args:
        everything: all GPU nodes of the cluster.
        groups: those that are in the view.
    """

    def __init__(self, everything: tuple[NodeFacts, ...] = (), groups: Iterable[Alike] = ()) -> None:
        self._everything = everything
        self.groups = tuple(groups)

    def __len__(self) -> int:
        return sum(len(group.places) for group in self.groups)

    def __iter__(self) -> Iterator[Fit]:
        """One by one, in the order of the cluster."""
        found = [
            (place, Fit(self._everything[place], group.obstacles, group.tolerable, group.sick, group.lacking))
            for group in self.groups
            for place in group.places
        ]
        found.sort(key=lambda item: item[0])
        return (item for _, item in found)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Positions of its nodes in ``gpu_nodes``: equal for two views of the same nodes."""
        if len(self.groups) == 1:
            return self.groups[0].places
        return tuple(sorted(chain.from_iterable(group.places for group in self.groups)))

    @cached_property
    def nodes(self) -> tuple[NodeFacts, ...]:
        """Its nodes, in the order of the cluster."""
        return tuple(self._everything[place] for place in self.places)

    def where(self, keep: Callable[[Alike], object]) -> "View":
        """The nodes for whose kind ``keep`` is true."""
        return View(self._everything, (group for group in self.groups if keep(group)))

    @cached_property
    def kinds(self) -> frozenset[Obstacle]:
        """All obstacles of its nodes."""
        return frozenset(kind for group in self.groups for kind in group.obstacles)

    @cached_property
    def admitted(self) -> "View":
        """Nodes that the pod's selector admits."""
        return self.where(lambda group: Obstacle.SELECTOR not in group.obstacles)

    @cached_property
    def full(self) -> "View":
        """Nodes on which nothing but GPUs that others hold is in the way."""
        return self.where(lambda group: group.obstacles == {Obstacle.IN_USE})

    @cached_property
    def nearest(self) -> "View":
        """Nodes with the fewest obstacles."""
        fewest = min((len(group.obstacles) for group in self.groups), default=0)
        return self.where(lambda group: len(group.obstacles) == fewest)

    @property
    def has_free(self) -> bool:
        """Whether nothing is in the way on some node."""
        return any(not group.obstacles for group in self.groups)


def view_of(facts: ClusterFacts, pod: PodFacts) -> View:
    """All GPU nodes as the pod sees them."""
    return _kinds(facts).seen_by(pod)


def view_of_gpus(facts: ClusterFacts, pod: PodFacts) -> View:
    """All GPU nodes as the pod sees them, but for what is left on them besides GPUs. One and the same view for all pods
    with the same requests, selectors and tolerations."""
    return _kinds(facts).of_gpus(pod)


def _kinds(facts: ClusterFacts) -> "_Kinds":
    return facts.remember("kinds of GPU nodes", lambda: _Kinds(facts.gpu_nodes))


class _Kinds:
    """GPU nodes sorted into kinds, and what was judged of them so far."""

    def __init__(self, nodes: tuple[NodeFacts, ...]) -> None:
        self._nodes = nodes
        doors: dict[object, int] = {}
        stocks: dict[object, int] = {}
        shapes: dict[tuple[int, int], list[int]] = {}
        self._doors: list[NodeFacts] = []
        self._stocks: list[NodeFacts] = []
        for place, node in enumerate(self._nodes):
            taints = (node.node.spec.taints if node.node.spec else None) or ()
            hard = tuple((taint.key, taint.value, taint.effect) for taint in taints)
            door = _number((node.ready is True, node.unschedulable, hard), doors, node, self._doors)
            stock = _number((node.resources, node.vendor), stocks, node, self._stocks)
            shapes.setdefault((door, stock), []).append(place)
        self._shapes = {shape: frozenset(places) for shape, places in shapes.items()}
        self._admitted: dict[bytes, list[tuple[int, int, bool, frozenset[int]]]] = {}
        self._classes: dict[tuple[str, ...] | None, list[list[int]]] = {}
        self._views: dict[tuple[View, tuple[tuple[str, Decimal], ...]], View] = {}
        self._seen: dict[tuple[bytes, bytes, tuple[tuple[str, int], ...]], View] = {}

    def seen_by(self, pod: PodFacts) -> View:
        gpus, wanted = self.of_gpus(pod), beside_gpus(pod)
        asked = (gpus, tuple(wanted.items()))
        if asked not in self._views:
            self._views[asked] = self._with_rest(gpus, wanted)
        return self._views[asked]

    def _with_rest(self, gpus: View, wanted: Mapping[str, Decimal]) -> View:
        short = self._left.lacking(wanted)
        any_short = frozenset().union(*(places for _, places in short))
        groups: dict[_Verdict, list[Iterable[int]]] = {}
        for part in gpus.groups:
            door = (part.obstacles, part.tolerable, part.sick)
            few = any_short.intersection(part.places) if any_short else any_short
            if not few:
                groups.setdefault((*door, ()), []).append(part.places)
                continue
            # Who lets go of a GPU lets go of its CPU and memory too: only what lacks even then is one more obstacle.
            still = self._freed.lacking(wanted) if Obstacle.IN_USE in part.obstacles else short
            enough = set(part.places)
            for lacking, places in still:
                here = few & places
                if here:
                    enough -= here
                    verdict = (part.obstacles | {Obstacle.OTHER_RESOURCE}, part.tolerable, part.sick, lacking)
                    groups.setdefault(verdict, []).append(here)
            if enough:
                groups.setdefault((*door, ()), []).append(enough)
        return View(self._nodes, (Alike(*verdict, places=_merged(places)) for verdict, places in groups.items()))

    def of_gpus(self, pod: PodFacts) -> View:
        """All GPU nodes as the pod sees them, but for what is left on them besides GPUs."""
        spec = pod.pod.spec
        tolerations = msgspec.json.encode(spec.tolerations if spec else None)
        selector = msgspec.json.encode([spec.nodeSelector, spec.affinity] if spec else None, order="deterministic")
        key = (tolerations, selector, tuple(pod.gpu_requests.items()))
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = View(self._nodes, self._judged(pod, self._selected(selector, spec)))
        return found

    def _judged(self, pod: PodFacts, shapes: list[tuple[int, int, bool, frozenset[int]]]) -> Iterator[Alike]:
        doors = [at_the_door(pod, node) for node in self._doors]
        stocks = [in_stock(pod, node) for node in self._stocks]
        parts: dict[_Door, list[frozenset[int]]] = {}
        for door, stock, admitted, places in shapes:
            if not places:
                continue
            obstacles, tolerable, sick = doors[door]
            every = obstacles | stocks[stock]
            every = every if admitted else every | {Obstacle.SELECTOR}
            parts.setdefault((every, tolerable, sick), []).append(places)
        return (Alike(*door, lacking=(), places=_merged(places)) for door, places in parts.items())

    def _selected(self, key: bytes, spec: PodSpec | None) -> list[tuple[int, int, bool, frozenset[int]]]:
        """Kinds of nodes, split by whether the selector admits them."""
        found = self._admitted.get(key)
        if found is None:
            inside = self._inside(spec)
            found = self._admitted[key] = []
            for (door, stock), places in self._shapes.items():
                found.append((door, stock, True, places & inside))
                found.append((door, stock, False, places - inside))
        return found

    def _inside(self, spec: PodSpec | None) -> frozenset[int]:
        """Places of nodes that the selector admits. Nodes with the same values of its labels are one to it."""
        if spec is None or not (spec.nodeSelector or spec.affinity):
            return frozenset(range(len(self._nodes)))
        labels = selector_keys(spec)
        if labels not in self._classes:
            classes: dict[object, list[int]] = {}
            for place, node in enumerate(self._nodes):
                values = place if labels is None else tuple(node.labels.get(label) for label in labels)
                classes.setdefault(values, []).append(place)
            self._classes[labels] = list(classes.values())
        admitted: list[int] = []
        for places in self._classes[labels]:
            node = self._nodes[places[0]]
            if selects(spec, node.name, node.labels):
                admitted += places
        return frozenset(admitted)

    @cached_property
    def _left(self) -> "_Amounts":
        return _Amounts(node.left for node in self._nodes)

    @cached_property
    def _freed(self) -> "_Amounts":
        return _Amounts(without_holders(node, node.left) for node in self._nodes)


class _Amounts:
    """What nodes have of each resource, sorted."""

    def __init__(self, rests: Iterable[Mapping[str, Decimal]]) -> None:
        columns: dict[str, list[tuple[Decimal, int]]] = {}
        for place, rest in enumerate(rests):
            for name, amount in rest.items():
                columns.setdefault(name, []).append((max(amount, _NONE), place))
        self._places: dict[str, list[int]] = {}
        self._amounts: dict[str, list[Decimal]] = {}
        for name, column in columns.items():
            column.sort()
            self._amounts[name] = [amount for amount, _ in column]
            self._places[name] = [place for _, place in column]
        self._last: tuple[Mapping[str, Decimal], _Short] | None = None

    def lacking(self, wanted: Mapping[str, Decimal]) -> "_Short":
        """Nodes that list a resource and have too little of it: places, by the names of all that they lack."""
        if self._last is not None and self._last[0] is wanted:
            return self._last[1]
        short: _Short = []
        for name, amount in wanted.items():
            column = self._amounts.get(name)
            few = frozenset(self._places[name][: bisect_left(column, amount)] if column else ())
            if not few:
                continue
            split: _Short = [((name,), few.difference(*(places for _, places in short)))]
            for names, places in short:
                split += [(names, places - few), ((*names, name), places & few)]
            short = [item for item in split if item[1]]
        self._last = (wanted, short)
        return short


_Short = list[tuple[_Keys, frozenset[int]]]


def _number(key: object, known: dict[object, int], node: NodeFacts, kinds: list[NodeFacts]) -> int:
    found = known.get(key)
    if found is None:
        found = known[key] = len(kinds)
        kinds.append(node)
    return found


def _merged(places: Sequence[Iterable[int]]) -> tuple[int, ...]:
    if len(places) == 1 and isinstance(places[0], tuple):
        return places[0]
    return tuple(sorted(chain.from_iterable(places)))
