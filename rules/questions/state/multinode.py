"""What a cluster shows of the four things multi-node training needs.

Resource names, schedulers and operators as their projects name them: k8s-rdma-shared-dev-plugin, NVIDIA Network
Operator, AWS EFA device plugin, GKE networks; Kueue, Volcano, KAI, YuniKorn, coscheduling; Kubeflow trainer, MPI
operator, KubeRay, JobSet, LeaderWorkerSet.
"""

import re
from collections.abc import Mapping

import msgspec

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import Quantity
from rules.findings import Evidence
from rules.language import Language
from rules.questions.state.lines import Line
from rules.questions.words import say

BIG_NODE_GPUS = 8

_FAST_NETWORK = re.compile(
    r"rdma/|vpc\.amazonaws\.com/efa$|nvidia\.com/(?:hostdev|.*rdma|.*sriov|.*mlnx)|openshift\.io/.*(?:ib|rdma|mlnx|roce)"
    r"|mellanox\.com/|networking\.gke\.io\.networks/(?:rdma|gpu)|amd\.com/nic"
)


class _Piece(msgspec.Struct, frozen=True):
    """Software that may be installed: parts of names of its pods, Deployments and CRDs, and kinds of its objects."""

    what: str
    words: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]


_GANG = {
    "Kueue": ("kueue",),
    "Volcano": ("volcano",),
    "KAI": ("kai-scheduler", "kai-operator"),
    "YuniKorn": ("yunikorn",),
    "coscheduling": ("coscheduling", "scheduler-plugins"),
}
_GANG_KINDS = {"ClusterQueue": "Kueue", "PodGroup": "PodGroup"}
_OPERATOR = {
    "Kubeflow": ("training-operator", "kubeflow-trainer", "trainer-controller", "pytorchjobs.", "trainjobs."),
    "MPI operator": ("mpi-operator", "mpijobs."),
    "KubeRay": ("kuberay", "rayjobs.", "rayclusters."),
    "JobSet": ("jobset",),
    "LeaderWorkerSet": ("lws-controller", "leaderworkerset"),
}
_OPERATOR_KINDS = {
    "PyTorchJob": "Kubeflow", "TrainJob": "Kubeflow", "MPIJob": "MPI operator", "RayJob": "KubeRay",
    "RayCluster": "KubeRay", "JobSet": "JobSet", "LeaderWorkerSet": "LeaderWorkerSet",
}  # fmt: skip
_PIECES = (_Piece("gang", _GANG, _GANG_KINDS), _Piece("operator", _OPERATOR, _OPERATOR_KINDS))


def lines(facts: ClusterFacts, language: Language) -> list[Line]:
    """Big nodes, fast network, gang scheduler, training operator, shared volumes; each known, absent or unknown."""
    names = _names(facts)
    return [
        _big_nodes(facts, language),
        _network(facts, language),
        *(_installed(facts, names, piece, language) for piece in _PIECES),
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


def fast_network(node: NodeFacts) -> tuple[str, ...]:
    """Names of the node's allocatable resources that stand for an RDMA or EFA device, sorted."""
    allocatable = (node.node.status.allocatable if node.node.status else None) or {}
    return tuple(sorted(name for name, value in allocatable.items() if _FAST_NETWORK.match(name) and _some(value)))


def _some(value: Quantity) -> bool:
    return str(value).strip() not in ("", "0")


def _installed(facts: ClusterFacts, names_in_use: str, piece: _Piece, language: Language) -> Line:
    what, kinds = piece.what, piece.kinds
    seen = {name for name, parts in piece.words.items() if any(part in names_in_use for part in parts)}
    # Kinds of other API groups carry their group in the key: PodGroup.scheduling.volcano.sh.
    seen |= {kinds[kind] for key, items in facts.others.items() if items and (kind := key.partition(".")[0]) in kinds}
    names = sorted(seen)
    if names:
        text = say(f"multinode.{what}", language, names=", ".join(names))
        return Line(
            text, (Evidence(f"{what}_seen", list(names), source=f"{facts.name}: Pod, Deployment, custom resources"),)
        )
    if facts.knows("CustomResourceDefinition") and facts.knows("Pod"):
        evidence = Evidence(f"{what}_seen", [], source=f"{facts.name}: CustomResourceDefinition, Pod")
        return Line(say(f"multinode.{what}_none", language), (evidence,))
    return Line(
        say(f"multinode.{what}_unknown", language), (Evidence(f"{what}_seen", None, source=f"{facts.name}: Pod"),)
    )


def _names(facts: ClusterFacts) -> str:
    """Names of running pods, their schedulers, Deployments and CRDs as one text: clusters have many thousand pods, and
    a substring of one text is found much faster than one in each name."""
    running = [pod for pod in facts.pods if not pod.terminal]
    schedulers = {pod.pod.spec.schedulerName for pod in running if pod.pod.spec}
    others = [
        item.metadata.name for kind in ("Deployment", "CustomResourceDefinition") for item in facts.others.get(kind, ())
    ]
    return "\n".join([*filter(None, schedulers), *others, *(pod.ref.name for pod in running)])


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
