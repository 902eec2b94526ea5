"""What a cluster shows of the four things multi-node training needs. :mod:`rules.advice.readiness` judges them."""

from rules.facts.cluster import ClusterFacts
from rules.facts.components import Role
from rules.facts.network import fast_network
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state.lines import Line
from rules.questions.words import say

BIG_NODE_GPUS = 8
_PIECES = (("gang", Role.GANG_SCHEDULER), ("operator", Role.TRAINING_OPERATOR))


def lines(facts: ClusterFacts, language: Language) -> list[Line]:
    """Big nodes, fast network, gang scheduler, training operator, shared volumes; each known, absent or unknown."""
    return [
        _big_nodes(facts, language),
        _network(facts, language),
        *(_installed(facts, what, role, language) for what, role in _PIECES),
        _shared_volumes(facts, language),
    ]


def _big_nodes(facts: ClusterFacts, language: Language) -> Line:
    big = sum(1 for node in facts.gpu_nodes if (node.physical_gpus or 0) >= BIG_NODE_GPUS)
    unknown = sum(1 for node in facts.gpu_nodes if node.physical_gpus is None)
    text = say("multinode.big", language, count=big)
    if unknown:
        text += say("multinode.big_unknown", language, count=unknown)
    return Line(text, (Evidence("nodes_with_8_gpus", big, source=f"{facts.name}: Node"),))


def _network(facts: ClusterFacts, language: Language) -> Line:
    by_node = {node.name: fast_network(node) for node in facts.gpu_nodes}
    with_it = [name for name, resources in by_node.items() if resources]
    names = sorted({resource for resources in by_node.values() for resource in resources})
    source = f"{facts.name}: status.allocatable"
    if not with_it:
        return Line(say("multinode.no_rdma", language), (Evidence("fast_network", [], source=source),))
    listed = ", ".join(f"`{name}`" for name in names[:3]) + (" …" if len(names) > 3 else "")
    text = say("multinode.rdma", language, count=len(with_it), total=len(by_node), resources=listed)
    return Line(
        text,
        (Evidence("fast_network", names, source=source), Evidence("fast_network_nodes", len(with_it), source=source)),
    )


def _installed(facts: ClusterFacts, what: str, role: Role, language: Language) -> Line:
    source = f"{facts.name}: Pod, Deployment, custom resources"
    names = sorted(item.name for item in facts.components.present(role))
    if names:
        text = say(f"multinode.{what}", language, names=", ".join(names))
        return Line(text, (Evidence(f"{what}_seen", list(names), source=source),))
    absent = facts.components.has(role) is False
    text = say(f"multinode.{what}_none" if absent else f"multinode.{what}_unknown", language)
    return Line(text, (Evidence(f"{what}_seen", [] if absent else None, source=source),))


def _shared_volumes(facts: ClusterFacts, language: Language) -> Line:
    if not facts.knows("PersistentVolumeClaim"):
        return Line(
            say("multinode.rwx_unknown", language),
            (Evidence("shared_volume_claims", None, source=f"{facts.name}: PersistentVolumeClaim"),),
        )
    claims = facts.others.get("PersistentVolumeClaim", ())
    shared = sum(1 for claim in claims if "ReadWriteMany" in ((claim.spec or {}).get("accessModes") or ()))
    text = say("multinode.rwx", language, count=shared)
    return Line(
        text,
        (Evidence("shared_volume_claims", shared, source=f"{facts.name}: PersistentVolumeClaim spec.accessModes"),),
    )
