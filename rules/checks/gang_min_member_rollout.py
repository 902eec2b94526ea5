"""A Deployment asks Volcano for a gang that is larger than what its rolling update starts at a time.

What:
    The pod template of a GPU Deployment carries ``scheduling.volcano.sh/group-min-member`` with more members than a
    rolling update may have of the new version at first (surge plus unavailable).

Why:
    The new ReplicaSet gets its own gang, which starts only when all members exist, but the controller creates so many
    only after some have started: the update never moves. High while pods of the Deployment wait, else medium.

Fix:
    Lower the number, or use ``Recreate``.

Source:
    seeds S9, S10; https://github.com/volcano-sh/volcano/issues/4739.

Seeds: S9, S10
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, names, of
from rules.checks._rollout import ref_of, rollout_of, template_gpus, template_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.groups import mapping, whole
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per Deployment."""
    waiting: dict[ObjectRef, list[PodFacts]] = {}
    for pod in facts.pending_gpu_pods:
        owner = facts.deployment_of(pod)
        if owner is not None and (age(facts, pod.pod.metadata.creationTimestamp) or 0) >= policy.pending_grace_seconds:
            waiting.setdefault(owner, []).append(pod)
    for item in facts.of_kind("Deployment"):
        ref = ref_of(item)
        yield ref
        annotations = mapping(mapping(template_of(item).get("metadata")).get("annotations"))
        wanted = whole(annotations.get(MIN_MEMBER))
        rollout = rollout_of(item) if wanted is not None else None
        if wanted is None or rollout is None or not template_gpus(item):
            continue
        first = rollout.surge + rollout.unavailable
        if wanted <= first:
            continue
        pods = [pod.ref for pod in waiting.get(ref, [])]
        yield found(
            Severity.HIGH if pods else Severity.MEDIUM,
            ref,
            *pods,
            identity=str(ref),
            deployment=ref.name,
            deployment_namespace=ref.namespace,
            wanted=of(wanted, MIN_MEMBER),
            first=of(first, "maxSurge and maxUnavailable of the rolling update"),
            replicas=rollout.replicas,
            pods=of(names(pods)),
        )


RULE = Rule(
    id="gang-min-member-rollout",
    family="training",
    severity=Severity.HIGH,
    seeds=("S9", "S10"),
    needs=("Node", "Pod", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
