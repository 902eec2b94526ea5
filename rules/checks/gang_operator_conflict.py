"""The job's controller makes a member only after the others run; the gang scheduler runs none before all exist.

What:
    A PodGroup wants more members than exist, its pods have waited longer than the grace period, and the job that owns
    them has a role without a pod yet: the launcher of an MPIJob, or a later stage of KubeDL's ordered start. The
    members would be complete with that role.

Why:
    A deadlock by design, whatever is free: more GPU nodes do not help. High.

Fix:
    Let the group want only the members that exist from the start, or switch the ordered start off for this job.

Source:
    seeds S10, S29; https://github.com/kubedl-io/kubedl/issues/180; https://github.com/kubeflow/mpi-operator/issues/608.

Seeds: S10, S29
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of, seconds, short
from rules.checks._pod_group import short_groups
from rules.checks._scheduling import free
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.kinds import group_of
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per PodGroup."""
    for item in short_groups(facts, policy):
        yield item.group.ref
        if not item.staged:
            continue
        resources = {name for pod in item.group.members for name in pod.gpu_requests}
        in_service = [node for node in facts.nodes if node.ready and not node.unschedulable]
        spare = sum(free(node, name) for node in in_service for name in resources)
        asked = sum(sum(pod.gpu_requests.values()) for pod in item.group.members)
        owner = item.group.members[0].controller
        kubedl = owner is not None and group_of(owner.apiVersion).endswith("kubedl.io")
        yield found(
            Severity.HIGH,
            item.group.ref,
            *(pod.ref for pod in item.group.members),
            item.owner,
            remedy="kubedl" if kubedl else "mpi" if item.owner.kind == "MPIJob" else "default",
            identity=str(item.group.ref),
            notes=[note("free", spare=spare, asked=asked)] if resources else [],
            pod_group=short(item.group.ref),
            pod_group_namespace=item.group.ref.namespace,
            pod_group_name=item.group.ref.name,
            pod_group_api=group_of(item.group.group.apiVersion),
            job=f"{item.owner.kind} {short(item.owner)}",
            wanted=of(item.wanted, "spec.minMember"),
            existing=item.existing,
            late=of(list(item.late), "roles without a pod"),
            pods=of(names(pod.ref for pod in item.group.members)),
            waited=seconds(item.waited, "metadata.creationTimestamp"),
        )


RULE = Rule(
    id="gang-operator-conflict",
    family="training",
    severity=Severity.HIGH,
    seeds=("S10", "S29"),
    needs=("Node", "Pod", "PodGroup"),
    check=check,
    doc=__doc__ or "",
)
