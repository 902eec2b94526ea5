"""Deriving facts of nodes and pods, and keeping what still holds when the objects of a cluster change a little.

Which object follows from which. Facts of a pod follow from its object, from whether its node has a GPU, and from the
claims (DRA) that it names. Facts of a node follow from its object, the slices and claims of its devices, the Machines
that name its pool, the prices, and the pods on it. Objects never change once they are decoded, so the same object (the
same one, not an equal one) gives the same facts; for the rest :class:`Deriver` compares what has gone into them. A run
costs little more than going through the pods once; what is derived anew is what changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import cast

from rules.facts.dra import Dra
from rules.facts.model import NodeFacts, PodFacts
from rules.facts.nodes import BoundPods, NodeReader, ReadNode
from rules.facts.objects import Node, OtherObject, Pod
from rules.facts.pods import pod_facts
from rules.facts.prices import PriceBook

Others = Mapping[str, tuple[OtherObject, ...]]
_DRA_KINDS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
_SLACK, _SPARE = 1.25, 1000
"""Facts of pods that are gone are thrown away when there are so many times as many facts as pods, and some more."""


class Derived:
    """Facts of one run. Derived from unchanged objects, they are those of the run before, the same objects.

    Attributes:
        nodes, pods: in the order of the objects.
    """

    __slots__ = ("nodes", "pods")

    def __init__(self, nodes: tuple[NodeFacts, ...], pods: tuple[PodFacts, ...]) -> None:
        self.nodes = nodes
        self.pods = pods


class Deriver:
    """Derives the facts of one cluster again and again.

    Args:
        prices: what nodes cost. Other prices need another Deriver.
    """

    def __init__(self, prices: PriceBook) -> None:
        self._prices = prices
        self._others: Others = {}
        self._dra_known = False
        self._dra = Dra({}, frozenset())
        self._reader = NodeReader(prices, self._dra, ())
        self._read: dict[str, ReadNode] = {}
        self._nodes: dict[str, NodeFacts] = {}
        self._gpu_nodes: frozenset[str] = frozenset()
        # By identity: an object is held by its facts, so that no other can take its place.
        self._pods: dict[int, PodFacts] = {}

    def derive(self, nodes: Iterable[Node], pods: Iterable[Pod], others: Others, kinds: frozenset[str]) -> Derived:
        """Facts of these nodes and pods.

        Args:
            others: objects of further kinds by kind key.
            kinds: that were read completely.
        """
        before = self._dra
        machines_same = self._take_others(others, kinds)
        read = [self._read_node(node, before) for node in nodes]
        gpu_nodes = frozenset(item.name for item in read if item.hardware.evidence is not None)
        turned, self._gpu_nodes = gpu_nodes ^ self._gpu_nodes, gpu_nodes
        all_pods = self._derive_pods(pods, turned, claims_changed=self._dra is not before)
        bound = _by_node((item.name for item in read), all_pods)
        made = []
        for item in read:
            mine = bound[item.name]
            known = self._nodes.get(item.name) if machines_same else None
            if known is None or not self._holds(item, mine, known, before):
                known = self._reader.facts(item, mine)
            made.append(known)
        self._read = {item.name: item for item in read}
        self._nodes = {item.name: item for item in made}
        return Derived(tuple(made), all_pods)

    @property
    def remembered_pods(self) -> int:
        """Number of pods of which facts are kept."""
        return len(self._pods)

    def _take_others(self, others: Others, kinds: frozenset[str]) -> bool:
        """Note slices, claims and Machines; answer whether the Machines are the same as before."""
        last, self._others = self._others, {kind: others.get(kind, ()) for kind in (*_DRA_KINDS, "Machine")}
        machines_same = _same(last.get("Machine", ()), others.get("Machine", ()))
        known = "DeviceClass" in kinds
        dra_same = known == self._dra_known and all(
            _same(last.get(kind, ()), others.get(kind, ())) for kind in _DRA_KINDS
        )
        if not dra_same:
            self._dra_known = known
            self._dra = Dra(others, kinds)
        if not dra_same or not machines_same:
            self._reader = NodeReader(self._prices, self._dra, others.get("Machine", ()))
        return machines_same

    def _read_node(self, node: Node, before: Dra) -> ReadNode:
        known = self._read.get(node.metadata.name)
        if known is not None and known.node is node:
            name = known.name
            if before is self._dra or before.gpus_by_node.get(name) == self._dra.gpus_by_node.get(name):
                return known
        return self._reader.read(node)

    def _holds(self, read: ReadNode, bound: BoundPods, known: NodeFacts, before: Dra) -> bool:
        """Whether facts of a node still hold: all that has gone into them is the same."""
        name = read.name
        return (
            self._read.get(name) is read
            and _same(known.pods, bound.pods)
            and known.last_gpu_release == bound.last_release
            and (before is self._dra or before.held_by_node.get(name) == self._dra.held_by_node.get(name))
        )

    def _derive_pods(
        self, pods: Iterable[Pod], turned: frozenset[str], *, claims_changed: bool
    ) -> tuple[PodFacts, ...]:
        """Facts of pods; ``turned`` are nodes that got their first GPU or lost the last one."""
        every = pods if isinstance(pods, tuple | list) else tuple(pods)
        known = self._pods
        made = [known.get(id(pod)) for pod in every]
        again = turned or claims_changed
        for place, facts in enumerate(made):
            if facts is None:
                made[place] = self._pod(every[place])
            elif again and self._may_turn(facts, turned, claims_changed=claims_changed):
                made[place] = self._pod_again(facts)
        found = cast("list[PodFacts]", made)
        if len(known) > _SLACK * len(found) + _SPARE:
            self._pods = {id(facts.pod): facts for facts in found}
        return tuple(found)

    def _pod(self, pod: Pod) -> PodFacts:
        facts = self._pods[id(pod)] = pod_facts(pod, self._gpu_nodes, self._dra)
        return facts

    def _may_turn(self, facts: PodFacts, turned: frozenset[str], *, claims_changed: bool) -> bool:
        spec = facts.pod.spec
        return facts.node_name in turned or bool(claims_changed and spec and spec.resourceClaims)

    def _pod_again(self, facts: PodFacts) -> PodFacts:
        """Facts of a pod whose node or claims have changed; the same ones where that changes nothing."""
        fresh = pod_facts(facts.pod, self._gpu_nodes, self._dra)
        if (fresh.other_gpu_claim, fresh.dra_devices) == (facts.other_gpu_claim, facts.dra_devices):
            return facts
        self._pods[id(facts.pod)] = fresh
        return fresh


def _by_node(names: Iterable[str], pods: Iterable[PodFacts]) -> dict[str, BoundPods]:
    bound = {name: BoundPods() for name in names}
    for pod in pods:
        on_node = bound.get(pod.node_name) if pod.node_name is not None else None
        if on_node is None:
            continue
        if not pod.terminal:
            on_node.pods.append(pod)
        elif pod.gpu_requests or pod.other_gpu_claim:
            on_node.ended(pod)
    return bound


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two sequences hold the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))
