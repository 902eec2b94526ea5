"""A ResourceClaim holds a GPU and no pod uses it.

What:
    A claim has devices of a GPU driver allocated for more than an hour, nothing is listed in ``status.reservedFor``,
    and they are not for administrative access, which consumes nothing. A claim that belongs to a pod goes with it, so
    these are claims that somebody made by name.

Why:
    The devices stay allocated until the claim is deallocated: nobody else gets the GPU, which is paid. Medium.

Fix:
    Delete the claim, or start the pod that it was made for; templates make claims that end with their pods.

Source:
    seeds S14, S23; kubernetes/api resource/v1 types.go (reservedFor).

Seeds: S14, S23
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, gpus, of, seconds, short
from rules.checks._rollout import ref_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.dra import GPU_DRIVERS
from rules.facts.groups import mapping
from rules.facts.objectset import parse_time
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

GRACE_SECONDS = 3600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per claim."""
    for item in facts.of_kind("ResourceClaim"):
        ref = ref_of(item)
        yield ref
        status = mapping(item.status)
        allocation = mapping(status.get("allocation"))
        since = parse_time(allocation.get("allocationTimestamp")) or item.metadata.creationTimestamp
        held = age(facts, since)
        devices = [
            f"{result.get('pool')}/{result.get('device')}"
            for result in mapping(allocation.get("devices")).get("results") or []
            if isinstance(result, dict) and result.get("driver") in GPU_DRIVERS and not result.get("adminAccess")
        ]
        if not devices or status.get("reservedFor") or held is None or held < GRACE_SECONDS:
            continue
        yield found(
            Severity.MEDIUM,
            ref,
            claim=short(ref),
            claim_namespace=ref.namespace,
            claim_name=ref.name,
            gpus=gpus(len(devices), "status.allocation.devices.results"),
            devices=of(devices),
            held=seconds(held, "status.allocation.allocationTimestamp"),
        )


RULE = Rule(
    id="claim-allocated-unused",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S14", "S23"),
    needs=("Node", "ResourceClaim"),
    check=check,
    doc=__doc__ or "",
)
