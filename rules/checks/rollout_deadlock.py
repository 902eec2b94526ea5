"""A rolling update waits for a GPU that only its own old pod could free.

What:
    A Deployment rolls with effectively no unavailable pod (25% of 1 to 3 replicas rounds down to 0) and at least one
    in surge, a pod of its new ReplicaSet has waited longer than the grace period, and on nodes that this pod may use
    only other pods are in its way, among them an old pod of the same Deployment.

Why:
    The old pod holds the GPU until the new one is ready, and the new one starts only when the GPU is free: neither
    moves, and users keep the old version. High.

Fix:
    Let the old pod go first: ``maxSurge: 0`` with ``maxUnavailable: 1``, or ``Recreate``.

Source:
    seeds S9, S14; https://github.com/defilantech/LLMKube/issues/192; Kubernetes pkg/controller/deployment/util.

Seeds: S9, S14
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of
from rules.checks._pending import about, by_nodes
from rules.checks._rollout import rollout_of
from rules.checks._workloads import find
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per Deployment and demand."""
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        owner = facts.deployment_of(queue.first)
        deployment = find(facts, owner) if owner else None
        rollout = rollout_of(deployment) if deployment else None
        if owner is None or rollout is None or rollout.unavailable or queue.first.controller is None:
            continue
        old = [
            pod
            for node in queue.fits.full.nodes
            for pod in node.pods
            if pod.gpu_requests and pod.controller and pod.controller.name != queue.first.controller.name
            if facts.deployment_of(pod) == owner
        ]
        if not old or queue.fits.has_free:
            continue
        yield found(
            Severity.HIGH,
            owner,
            *queue.refs,
            *(pod.ref for pod in old),
            identity=f"{owner} {queue.resource}",
            **about(facts, queue),
            deployment=owner.name,
            deployment_namespace=owner.namespace,
            replicas=rollout.replicas,
            surge=of(rollout.surge, "spec.strategy.rollingUpdate.maxSurge, rounded up"),
            unavailable=of(rollout.unavailable, "spec.strategy.rollingUpdate.maxUnavailable, rounded down"),
            old=of(names(pod.ref for pod in old)),
        )


RULE = Rule(
    id="rollout-deadlock",
    family="inference",
    severity=Severity.HIGH,
    seeds=("S9", "S14"),
    needs=("Node", "Pod", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
