"""A Kueue Workload is larger than its queue can ever hold, or fits no flavor.

What:
    A Workload that asks for GPUs has no quota reserved, and Kueue says that waiting will not change it: reason
    ``ExceedsMaxQuota``, ``NoMatchingFlavor`` or ``Misconfigured``, or a message that the request is more than the
    maximum capacity.

Why:
    It waits for ever, and as a suspended job has no pods, tools that look at pods see nothing. High.

Fix:
    Ask for less, raise the quota or the cohort's lending, or correct the flavor.

Source:
    seeds S11, S29; kubernetes-sigs/kueue apis/kueue/v1beta2/workload_types.go.

Seeds: S11, S29
"""

import re
from collections.abc import Iterator

from rules.checks._kit import age, found, of, seconds, short
from rules.checks._kueue import condition, gpus_asked, is_kueue, owner_of_workload
from rules.checks._rollout import ref_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.groups import mapping
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_NEVER = ("ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured")
_TOO_MUCH = re.compile(
    r"request > maximum capacity|exceeds the maximum|didn't match any (?:flavor|resourceflavor)", re.IGNORECASE
)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per Workload."""
    for item in facts.of_kind("Workload"):
        if not is_kueue(item):
            continue
        ref = ref_of(item)
        yield ref
        reserved = condition(item, "QuotaReserved")
        if reserved is None or reserved.status != "False" or condition(item, "Finished", "True"):
            continue
        asked = gpus_asked(item)
        if not asked or not (reserved.reason in _NEVER or _TOO_MUCH.search(reserved.message)):
            continue
        owner = owner_of_workload(item)
        pods = [pod.ref for pod in facts.pending_gpu_pods if owner in (pod.ref, _controller(pod.controller, ref))]
        yield found(
            Severity.HIGH,
            ref,
            *([owner] if owner else []),
            *pods,
            remedy="flavor" if reserved.reason == "NoMatchingFlavor" else "default",
            identity=str(owner or ref),
            workload=short(owner or ref),
            workload_namespace=ref.namespace,
            workload_name=ref.name,
            queue=of(mapping(item.spec).get("queueName"), "spec.queueName"),
            asked=of([f"{name}={amount}" for name, amount in sorted(asked.items())], "spec.podSets"),
            reason=of(reserved.reason, "status.conditions[type=QuotaReserved]"),
            said=of(reserved.message[:200]),
            waited=seconds(age(facts, item.metadata.creationTimestamp), "metadata.creationTimestamp"),
        )


def _controller(owner: object, ref: ObjectRef) -> ObjectRef | None:
    kind, name = getattr(owner, "kind", None), getattr(owner, "name", None)
    return ObjectRef(kind, ref.namespace, name) if kind and name else None


RULE = Rule(
    id="kueue-never-admits",
    family="training",
    severity=Severity.HIGH,
    seeds=("S11", "S29"),
    needs=("Node", "Workload"),
    check=check,
    doc=__doc__ or "",
)
