"""A GPU service that could scale to zero never does, by its settings.

What:
    A ScaledObject of KEDA with ``minReplicaCount`` of one or more, or a Knative Service with ``min-scale`` of one or
    more, keeps pods that hold GPUs. A HorizontalPodAutoscaler is not meant: by itself it cannot go to zero. Whether the
    GPU is idle needs metrics.

Why:
    Both tools exist to stop a service that nobody calls. A floor of one is right where a cold start is too slow, and
    costs a GPU around the clock where it is not: information to decide on.

Fix:
    Set the floor to 0, or to 0 at night, where users can wait for a cold start.

Source:
    seeds S9, S24; kedacore/keda apis/keda/v1alpha1 (minReplicaCount, default 0); knative.dev/docs/serving/autoscaling.

Seeds: S9, S24
"""

from collections.abc import Iterable, Iterator

from rules.checks._kit import found, names, of, short
from rules.checks._workloads import by_workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import whole
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_MIN_SCALE = ("autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/minScale")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per service."""
    pods = [pod for pod in facts.gpu_pods if pod.holds_gpu]
    by_owner = by_workload(facts, pods)
    for item in facts.of_kind("ScaledObject", "keda.sh"):
        target = (item.spec or {}).get("scaleTargetRef") or {}
        namespace = item.metadata.namespace or ""
        owner = ObjectRef(str(target.get("kind") or "Deployment"), namespace, str(target.get("name")))
        floor = whole((item.spec or {}).get("minReplicaCount")) or 0
        # An idle count of 0 overrides the floor while no trigger is active.
        if (item.spec or {}).get("idleReplicaCount") != 0:
            yield from _say(
                ObjectRef("ScaledObject", namespace, item.metadata.name), floor, by_owner.get(owner, ()), "keda"
            )
    for item in facts.of_kind("Service.serving.knative.dev"):
        name, namespace = item.metadata.name, item.metadata.namespace or ""
        own = [
            pod
            for pod in pods
            if pod.ref.namespace == namespace
            and (pod.pod.metadata.labels or {}).get("serving.knative.dev/service") == name
        ]
        yield from _say(ObjectRef("Service", namespace, name), _min_scale(item), own, "knative")


def _say(ref: ObjectRef, floor: int, pods: Iterable[PodFacts], remedy: str) -> Iterator[Finding | ObjectRef]:
    yield ref
    refs = [pod.ref for pod in pods]
    if floor >= 1 and refs:
        yield found(
            Severity.INFO,
            ref,
            *refs,
            identity=str(ref),
            remedy="default" if remedy == "keda" else remedy,
            scaler=short(ref),
            floor=of(floor, "minReplicaCount" if remedy == "keda" else _MIN_SCALE[0]),
            pods=names(refs),
            namespace=ref.namespace,
            name=ref.name,
        )


def _min_scale(item: OtherObject) -> int:
    template = ((item.spec or {}).get("template") or {}).get("metadata") or {}
    marks = template.get("annotations") or {}
    return next((number for key in _MIN_SCALE if (number := whole(marks.get(key))) is not None), 0)


RULE = Rule(
    id="keda-min-one",
    family="inference",
    severity=Severity.INFO,
    seeds=("S9", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
