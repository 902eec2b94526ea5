"""Jobs whose pods talk to each other over the network: the multi-node work of a cluster."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import ObjectRef

from ._workloads import by_workload

_RENDEZVOUS_ENV = frozenset({"MASTER_ADDR", "NNODES", "NUM_NODES", "RDZV_ENDPOINT", "PET_NNODES", "PET_RDZV_ENDPOINT"})
_RENDEZVOUS_ARGS = re.compile(r"--nnodes|--num[_-]machines|--rdzv|--master[_-]addr|--dist-init-addr")


class Gang(msgspec.Struct, frozen=True):
    """Unfinished pods with GPUs of one job that spreads over several pods."""

    ref: ObjectRef
    pods: tuple[PodFacts, ...]


def gangs(facts: ClusterFacts) -> tuple[Gang, ...]:
    """Jobs with two or more unfinished GPU pods that work on one thing: those of training operators, and Jobs and
    StatefulSets whose containers name a rendezvous point. Replicas of a service are none, nor are sweeps."""
    return facts.remember("gangs", lambda: tuple(_gangs(facts)))


def _gangs(facts: ClusterFacts) -> Iterator[Gang]:
    seen: set[ObjectRef] = set()
    for group in facts.workload_groups:
        pods = _gpu_pods(group.pods)
        seen.update(pod.ref for pod in group.pods)
        if len(pods) > 1:
            yield Gang(group.ref, pods)
    others = [pod for pod in _gpu_pods(facts.gpu_pods) if not pod.terminal and pod.ref not in seen and _meets(pod)]
    for ref, members in by_workload(facts, others).items():
        pods = _gpu_pods(members)
        if ref.kind in ("Job", "StatefulSet") and len(pods) > 1:
            yield Gang(ref, pods)


def _gpu_pods(pods: Iterable[PodFacts]) -> tuple[PodFacts, ...]:
    return tuple(pod for pod in pods if pod.gpu_requests or pod.dra_devices)


def _meets(pod: PodFacts) -> bool:
    spec = pod.pod.spec
    for container in (spec.containers if spec else None) or ():
        if any(variable.name in _RENDEZVOUS_ENV for variable in container.env or ()):
            return True
        if any(_RENDEZVOUS_ARGS.search(word) for word in (*(container.command or ()), *(container.args or ()))):
            return True
    return False
