"""Lines about nodes, grouped so that many nodes stay short."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Evidence
from rules.language import Language
from rules.questions.words import say

MAX_NAMES = 3
MAX_EVIDENCE_NAMES = 20

K = TypeVar("K")


class Line(msgspec.Struct, frozen=True):
    """One line of an answer (Markdown) and the values it rests on."""

    text: str
    evidence: tuple[Evidence, ...]


def group(nodes: Iterable[NodeFacts], key: Callable[[NodeFacts], K]) -> list[tuple[str | None, K, list[NodeFacts]]]:
    """Nodes by pool and ``key``, the largest group first: (pool, key, nodes). Single nodes of several pools that agree
    in ``key`` are one group without a pool."""
    groups: dict[tuple[str | None, K], list[NodeFacts]] = {}
    for node in nodes:
        groups.setdefault((node.pool, key(node)), []).append(node)
    for value in {value for _, value in groups}:
        alone = [place for place, members in groups.items() if place[1] == value and len(members) == 1]
        if len(alone) > 1:
            merged = [node for place in alone for node in groups.pop(place)]
            groups.setdefault((None, value), []).extend(merged)
    ordered = sorted(
        groups.items(), key=lambda item: (-len(item[1]), item[0][0] or "", min(node.name for node in item[1]))
    )
    return [(pool, value, members) for (pool, value), members in ordered]


def who(pool: str | None, nodes: Sequence[NodeFacts], language: Language) -> str:
    """ "12 nodes of pool a100", "gpu-1", "5 nodes (a, b, c …)"."""
    if pool and len(nodes) > 1:
        return say("state.pool", language, count=len(nodes), pool=f"`{pool}`")
    return say("state.nodes", language, count=len(nodes), names=_names(nodes))


def _names(nodes: Sequence[NodeFacts]) -> str:
    names = sorted(node.name for node in nodes)
    return ", ".join(f"`{name}`" for name in names[:MAX_NAMES]) + (" …" if len(names) > MAX_NAMES else "")


def node_names(nodes: Sequence[NodeFacts]) -> list[str]:
    """Names for an evidence entry, sorted; at most twenty, the rest as a number."""
    names = sorted(node.name for node in nodes)
    rest = len(names) - MAX_EVIDENCE_NAMES
    return names if rest <= 0 else [*names[:MAX_EVIDENCE_NAMES], f"+{rest}"]


def takes_pods(node: NodeFacts) -> bool:
    """False when the scheduler puts no new pod there: cordoned or not ready."""
    return not node.unschedulable and node.ready is not False


class Slots(msgspec.Struct, frozen=True):
    """Units of the advertised GPU resources over some nodes.

    Attributes:
        total: allocatable units.
        free: units on nodes that take pods and that no pod has requested; None when pods were not read.
        held: unrequested units on nodes that take no new pods.
    """

    total: int
    free: int | None
    held: int


def slots(facts: ClusterFacts, nodes: Iterable[NodeFacts]) -> Slots | None:
    """Units of all GPU resources of ``nodes``; None when none of them lists any."""
    total = free = held = 0
    seen = False
    for node in nodes:
        for resource in node.resources:
            if resource.allocatable is None:
                continue
            seen = True
            total += resource.allocatable
            left = max(0, resource.allocatable - resource.requested)
            if takes_pods(node):
                free += left
            else:
                held += left
    if not seen:
        return None
    return Slots(total, free if facts.knows("Pod") else None, held)


def say_slots(found: Slots, language: Language) -> str:
    """ "28 of 48 free; 4 on nodes that take no new pods"."""
    if not found.total:
        return say("state.none", language)
    if found.free is None:
        return say("state.free_unknown", language, total=found.total)
    text = say("state.free", language, free=found.free, total=found.total)
    return text + (say("state.held", language, count=found.held) if found.held else "")
