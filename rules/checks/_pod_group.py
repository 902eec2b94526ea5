"""PodGroups that wait for members which are not there."""

from collections.abc import Iterator

import msgspec

from rules.checks._kit import age, owner_of
from rules.checks._workloads import find
from rules.facts.cluster import ClusterFacts
from rules.facts.groups import TRAINING_KINDS, PodGroupFacts, mapping, members_wanted, whole
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef
from rules.policy import Policy


class ShortGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A PodGroup with fewer pods than its ``minMember``, some of which have waited longer than the grace period.

    Attributes:
        owner: the job that its pods belong to.
        wanted: its ``minMember``; existing: its pods that are not finished.
        expected: pods that the job makes in all; None when that is unknown.
        late: roles of the job that have no pod yet (``Launcher``).
        waited: seconds since its oldest waiting pod was created.
    """

    group: PodGroupFacts
    owner: ObjectRef
    wanted: int
    existing: int
    expected: int | None
    late: tuple[str, ...]
    waited: float

    @property
    def staged(self) -> bool:
        """Whether the missing members are of a role that the job's controller makes later."""
        known = self.expected is not None and self.wanted <= self.expected and bool(self.late)
        return known or (self.expected is None and self.late == ("Launcher",) and self.wanted == self.existing + 1)


def short_groups(facts: ClusterFacts, policy: Policy) -> Iterator[ShortGroup]:
    """All of them that ask for GPUs."""
    for group in facts.pod_groups:
        waiting = [pod for pod in group.members if pod.node_name is None and pod.phase == "Pending"]
        waited = max((age(facts, pod.pod.metadata.creationTimestamp) or 0.0 for pod in waiting), default=0.0)
        short = group.min_member is not None and group.min_member > len(group.members)
        if not short or group.min_member is None or waited < policy.pending_grace_seconds:
            continue
        if not any(pod.gpu_requests or pod.other_gpu_claim for pod in group.members):
            continue
        owner = owner_of(group.members[0])
        item = find(facts, owner)
        yield ShortGroup(
            group=group,
            owner=owner,
            wanted=group.min_member,
            existing=len(group.members),
            expected=members_wanted(item) if item else None,
            late=_late(group, owner, item),
            waited=waited,
        )


def _late(group: PodGroupFacts, owner: ObjectRef, item: OtherObject | None) -> tuple[str, ...]:
    """Roles of the job without a pod."""
    names = [pod.ref.name for pod in group.members]

    def there(role: str) -> bool:
        return any(f"-{role.lower()}" in name for name in names)

    if item is None:
        return ("Launcher",) if owner.kind == "MPIJob" and not there("Launcher") else ()
    if owner.kind not in TRAINING_KINDS:
        return ()
    roles = next((value for key, value in (item.spec or {}).items() if key.endswith("ReplicaSpecs")), None)
    return tuple(
        role for role, part in mapping(roles).items() if whole(mapping(part).get("replicas", 1)) and not there(role)
    )
