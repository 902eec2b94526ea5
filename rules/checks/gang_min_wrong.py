"""A PodGroup wants more members than its job will ever have.

What:
    ``minMember`` of a PodGroup is larger than the number of its pods, those have waited longer than the grace period,
    and the job makes no more of them; where the job's object was not read, the number of pods that exist counts.

Why:
    The gang scheduler waits for members that never come, so none starts, however many GPUs are free. High.

Fix:
    Set ``minMember`` (``minAvailable``) to the number of pods that the job really makes.

Source:
    seeds S10, S29; https://github.com/kubeflow/mpi-operator/issues/608.

Seeds: S10, S29
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of, seconds, short
from rules.checks._pod_group import short_groups
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.kinds import group_of
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per PodGroup."""
    for item in short_groups(facts, policy):
        yield item.group.ref
        coming = item.expected is not None and item.expected >= item.wanted
        if item.staged or coming:
            continue
        yield found(
            Severity.HIGH,
            item.group.ref,
            *(pod.ref for pod in item.group.members),
            *([item.owner] if item.owner.kind != "Pod" else []),
            identity=str(item.group.ref),
            notes=[] if item.expected is not None else [note("job_unknown")],
            pod_group=short(item.group.ref),
            pod_group_namespace=item.group.ref.namespace,
            pod_group_name=item.group.ref.name,
            pod_group_api=group_of(item.group.group.apiVersion),
            wanted=of(item.wanted, "spec.minMember"),
            existing=item.existing,
            possible=of(item.expected if item.expected is not None else item.existing, "spec of the job"),
            pods=of(names(pod.ref for pod in item.group.members)),
            waited=seconds(item.waited, "metadata.creationTimestamp"),
        )


RULE = Rule(
    id="gang-min-wrong",
    family="training",
    severity=Severity.HIGH,
    seeds=("S10", "S29"),
    needs=("Node", "Pod", "PodGroup"),
    check=check,
    doc=__doc__ or "",
)
