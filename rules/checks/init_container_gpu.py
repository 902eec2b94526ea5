"""An init container asks for more GPUs than the main containers ever use.

What:
    A plain init container of an unfinished pod requests more of a GPU resource than the containers and sidecars of the
    pod together.

Why:
    The scheduler reserves the larger of the two for the whole life of the pod, so the difference is held and never used
    once initialisation is over. Medium.

Fix:
    Do the GPU work of the init container in a Job, or with no more GPUs than the main container has.

Source:
    seeds S14, S23; kubernetes/component-helpers resource/helpers.go.

Seeds: S14, S23
"""

from collections.abc import Iterator

from rules.checks._kit import found, gpus, names, of, owner_of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.objects import PodSpec
from rules.facts.resources import gpu_requests
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and resource."""
    owners: dict[tuple[ObjectRef, str], list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        if pod.terminal or not pod.gpu_requests or not (pod.pod.spec and pod.pod.spec.initContainers):
            continue
        yield pod.ref
        for name, amount in pod.gpu_requests.items():
            if amount > _running(pod.pod.spec).get(name, 0):
                owners.setdefault((owner_of(pod), name), []).append(pod)
    for (owner, name), pods in sorted(owners.items()):
        first = pods[0]
        used = _running(first.pod.spec).get(name, 0) if first.pod.spec else 0
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in pods),
            identity=f"{owner} {name}",
            pod=short(first.ref),
            pods=of(names(pod.ref for pod in pods)),
            container=_hungriest(first, name),
            resource=name,
            reserved=gpus(first.gpu_requests[name], "spec.initContainers[].resources"),
            used=gpus(used, "spec.containers[].resources"),
        )


def _running(spec: PodSpec) -> dict[str, int]:
    """What containers and sidecars ask for."""
    sidecars = [item for item in spec.initContainers or () if item.restartPolicy == "Always"]
    return dict(gpu_requests(PodSpec(containers=[*(spec.containers or ()), *sidecars])))


def _hungriest(pod: PodFacts, name: str) -> str:
    containers = (pod.pod.spec.initContainers if pod.pod.spec else None) or []
    return max(containers, key=lambda item: gpu_requests(PodSpec(containers=[item])).get(name, 0)).name


RULE = Rule(
    id="init-container-gpu",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S14", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
    alone="Pod",
)
