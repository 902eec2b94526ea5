"""Kueue admits a job because its quota allows it, but the GPUs of the quota do not exist.

What:
    The quotas of all ClusterQueues for a GPU resource of one flavor add up to more than the nodes of the flavor
    have, and an admitted Workload that was given this flavor does not get its pods running: ``PodsReady`` is False, or
    pods of it have waited for a node longer than the grace period.

Why:
    Quota is not capacity. Admitted jobs start in part and hold GPUs while they wait, as if there were no queue. High.

Fix:
    Lower the quotas to what there is, and let Kueue wait for pods (``waitForPodsReady``) or place by topology.

Source:
    seeds S11, S29; https://github.com/kubernetes-sigs/kueue/issues/2796.

Seeds: S11, S29
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, names, of, short
from rules.checks._kueue import condition, is_kueue, nodes_of_flavor, owner_of_workload, pods_of_workload, quotas
from rules.checks._pending import by_nodes
from rules.checks._rollout import ref_of
from rules.checks._scheduling import resource_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.groups import mapping
from rules.facts.objects import OtherObject
from rules.facts.objectset import parse_time
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per flavor and resource."""
    given: dict[tuple[str, str], dict[str, int]] = {}
    for quota in quotas(facts):
        given.setdefault((quota.flavor, quota.resource), {})[quota.queue] = quota.amount
    unplaced = {ref for queue in by_nodes(facts, policy) for ref in queue.refs}
    for (flavor, resource), queues in sorted(given.items()):
        nodes = nodes_of_flavor(facts, flavor)
        listed = [resource_of(node, resource) for node in nodes or ()]
        capacity = sum(there.allocatable or 0 for there in listed if there)
        if nodes is None or sum(queues.values()) <= capacity:
            continue
        stuck: dict[ObjectRef, list[ObjectRef]] = {}
        for item in facts.of_kind("Workload"):
            yield ref_of(item)
            if is_kueue(item) and _admitted_to(item, flavor, resource):
                waiting = [pod.ref for pod in pods_of_workload(facts, item) if pod.ref in unplaced]
                if waiting or _not_ready(facts, item, policy):
                    stuck[owner_of_workload(item) or ref_of(item)] = [ref_of(item), *waiting]
        if not stuck:
            continue
        pods = [ref for refs in stuck.values() for ref in refs if ref.kind == "Pod"]
        yield found(
            Severity.HIGH,
            *(ObjectRef("ClusterQueue", "", name) for name in sorted(queues)),
            *(ref for refs in stuck.values() for ref in refs),
            identity=f"{flavor} {resource}",
            flavor=flavor,
            resource=resource,
            queues=of(sorted(queues)),
            queue=max(queues, key=lambda name: (queues[name], name)),
            quota=of(sum(queues.values()), "spec.resourceGroups[].flavors[].resources[].nominalQuota"),
            capacity=of(capacity, "allocatable of the flavor's nodes"),
            jobs=of(sorted(short(ref) for ref in stuck)),
            pods=of(names(pods)),
        )


def _admitted_to(item: OtherObject, flavor: str, resource: str) -> bool:
    if condition(item, "Admitted", "True") is None or condition(item, "Finished", "True"):
        return False
    parts = mapping(mapping(item.status).get("admission")).get("podSetAssignments") or []
    return any(mapping(mapping(part).get("flavors")).get(resource) == flavor for part in parts)


def _not_ready(facts: ClusterFacts, item: OtherObject, policy: Policy) -> bool:
    ready = condition(item, "PodsReady", "False")
    since = age(facts, parse_time(ready.since)) if ready else None
    return since is not None and since >= policy.pending_grace_seconds


RULE = Rule(
    id="kueue-admits-without-capacity",
    family="training",
    severity=Severity.HIGH,
    seeds=("S11", "S29"),
    needs=("Node", "Pod", "ClusterQueue", "ResourceFlavor", "Workload"),
    check=check,
    doc=__doc__ or "",
)
