"""A GPU pod does not tolerate the taint of every node that could run it.

What:
    The pod has waited longer than the grace period; on every node that its selector admits and that has GPUs enough,
    a NoSchedule or NoExecute taint keeps it off, and on at least one of them nothing else does but other pods. Key,
    operator, value and effect are compared as the scheduler does. Taints that mark a fault, or a node that is coming or
    going, never count: they must not be tolerated. Nor does the taint where the pod has tolerated nodes that are merely
    full: then its owner chose.

Why:
    It waits for ever beside free GPUs. Since 1.36 the scheduler's message does not even name the key. Often a
    toleration of ``nvidia.com/gpu`` copied into a cluster that uses ``sku=gpu`` or ``dedicated=gpu``. High.

Fix:
    Add a toleration of the taint that the nodes really carry.

Source:
    seeds S6, S14; https://github.com/kubeflow/kubeflow/issues/5275; kubernetes v1.36.2
    pkg/scheduler/framework/plugins/tainttoleration.

Seeds: S6, S14
"""

from collections.abc import Iterator

from rules.checks._karpenter import stuck_startup_taints
from rules.checks._kit import found, names, note, of, tolerations
from rules.checks._pending import about, by_nodes
from rules.checks._scheduling import Fit, Obstacle
from rules.engine import Root, Rule, Symptom
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_UNFIT = frozenset({Obstacle.NOT_OFFERED, Obstacle.BROKEN, Obstacle.TOO_SMALL, Obstacle.UNHEALTHY})
_PASSING = frozenset({Obstacle.TAINT, Obstacle.IN_USE, Obstacle.OTHER_RESOURCE})


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | Symptom | ObjectRef]:
    """Yield one finding per owner and demand; a symptom where the taint should have gone by itself."""
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        able = queue.admitted.where(lambda group: not group.obstacles & _UNFIT)
        ready = able.where(lambda group: group.obstacles <= _PASSING)
        tainted = all(Obstacle.TAINT in group.obstacles for group in able.groups)
        if not ready.groups or not queue.first.gpu_requests or not tainted:
            continue
        best = list(ready.nearest)
        keys = {key for item in best for key in item.tolerable}
        finding = found(
            Severity.HIGH,
            *queue.refs,
            *(item.node.ref for item in best),
            identity=queue.identity,
            notes=_notes(queue.first, best, keys),
            **about(facts, queue),
            taints=of(_taints(best), "spec.taints"),
            nodes=of(names(item.node.ref for item in best)),
            tolerated=of(_tolerated(queue.first), "spec.tolerations"),
            tolerations=tolerations(keys),
        )
        roots = tuple(Root(item.node.ref, ("karpenter-startup-taint-stuck",)) for item in best)
        yield Symptom(finding, roots, queue.refs) if _starting(facts, best) else finding


def _starting(facts: ClusterFacts, best: list[Fit]) -> bool:
    """Whether all that keeps the pod off are startup taints, which somebody should take away and no pod tolerate."""
    return all(set(item.tolerable) <= set(stuck_startup_taints(facts, item.node)) for item in best)


def _taints(best: list[Fit]) -> list[str]:
    found_taints = set()
    for item in best:
        for taint in (item.node.node.spec.taints if item.node.node.spec else None) or []:
            if taint.key in item.tolerable:
                found_taints.add(f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}")
    return sorted(found_taints)


def _tolerated(pod: PodFacts) -> list[str]:
    items = (pod.pod.spec.tolerations if pod.pod.spec else None) or []
    return sorted({item.key for item in items if item.key and not item.key.startswith("node.kubernetes.io/")})


def _notes(pod: PodFacts, best: list[Fit], keys: set[str]) -> Iterator[Note]:
    tolerated = _tolerated(pod)
    if keys & set(tolerated):
        yield note("value_differs", same=sorted(keys & set(tolerated)))
    elif tolerated:
        yield note("other_key")
    if all(Obstacle.IN_USE in item.obstacles for item in best):
        yield note("in_use_too")


RULE = Rule(
    id="untolerated-gpu-taint-pod",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S6", "S14"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
