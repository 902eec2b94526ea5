"""Two half scheduled jobs hold the GPUs that the other one needs.

What:
    At least two multi-node jobs run in part and wait in part for the same GPU resource (see ``partial-gang``), and
    together they lack more than is free.

Why:
    Each waits for the other to let go, so neither ever finishes while all their GPUs are paid. High.

Fix:
    Suspend one of them; the other starts. For good, queue such jobs through a gang scheduler.

Source:
    seeds S10, S29; https://github.com/kubeflow/trainer/issues/165.

Seeds: S10, S29
"""

from collections.abc import Iterator

from rules.checks._kit import found, gpus, of
from rules.checks._partial import Partial, gpus_of, partial_gangs
from rules.checks._scheduling import free
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per GPU resource that several such jobs fight for."""
    by_resource: dict[str, list[Partial]] = {}
    for item in partial_gangs(facts, policy):
        for name in gpus_of(item.stuck).keys() & gpus_of(item.running).keys():
            by_resource.setdefault(name, []).append(item)
    for name, items in sorted(by_resource.items()):
        yield items[0].group.ref
        spare = sum(free(node, name) for node in facts.nodes if node.ready and not node.unschedulable)
        missing = sum(gpus_of(item.stuck)[name] for item in items)
        if len({item.group.ref for item in items}) < 2 or missing <= spare:
            continue
        least = min(items, key=lambda item: (gpus_of(item.running)[name], item.group.ref))
        yield found(
            Severity.HIGH,
            *(item.group.ref for item in items),
            *(pod.ref for item in items for pod in item.stuck),
            identity=f"{name} {' '.join(sorted({str(item.group.ref) for item in items}))}",
            jobs=of(sorted({f"{item.group.ref.namespace}/{item.group.ref.name}" for item in items})),
            resource=name,
            gpus_held=gpus(sum(gpus_of(item.running)[name] for item in items)),
            gpus_missing=gpus(missing),
            free=of(spare, "allocatable minus requests of unfinished pods"),
            job_kind=least.group.ref.kind,
            job=f"{least.group.ref.namespace}/{least.group.ref.name}",
        )


RULE = Rule(
    id="two-jobs-deadlock",
    family="training",
    severity=Severity.HIGH,
    seeds=("S10", "S29"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
