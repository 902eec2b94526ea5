"""A GPU operator says that it is not ready, or that its configuration is ignored.

What:
    The state of a ClusterPolicy, NVIDIADriver, GPUCluster (NVIDIA) or DeviceConfig (AMD) is not "ready" for more than
    30 minutes, by its conditions; or it is "ignored", because a second ClusterPolicy exists.

Why:
    Some part of the GPU software is missing on some node. Medium: what is broken by it has findings of its own, which
    name the node. A policy that is ignored is medium too: what it says does not happen.

Fix:
    Look at the part that the message names.

Source:
    NVIDIA/gpu-operator config/crd/bases, internal/conditions; ROCm/gpu-operator internal/conditions.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, note, of, seconds
from rules.checks._operator import OperatorState, operator_states
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_LONG_SECONDS = 1800
_FINE = ("ready", "disabled")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per object of an operator that is not ready."""
    for item in operator_states(facts):
        yield item.ref
        lasts = age(facts, item.since)
        if item.since is None:
            lasts = age(facts, item.item.metadata.creationTimestamp) if item.state == "ignored" else None
        if item.state in _FINE or lasts is None or lasts < _LONG_SECONDS:
            continue
        ignored = item.state == "ignored"
        yield found(
            Severity.MEDIUM,
            item.ref,
            remedy="ignored" if ignored else "default",
            notes=_notes(item),
            object=str(item.ref),
            state=of(item.state, "status.state, status.conditions"),
            lasts=seconds(lasts, "status.conditions[].lastTransitionTime"),
            resource=f"{item.ref.kind.lower()}.{'amd.com' if item.ref.kind == 'DeviceConfig' else 'nvidia.com'}",
            object_name=item.ref.name,
            namespace_option=f" -n {item.ref.namespace}" if item.ref.namespace else "",
        )


def _notes(item: OperatorState) -> Iterator[Note]:
    if item.message:
        yield note("says", said=item.message[:200])


RULE = Rule(
    id="clusterpolicy-not-ready",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S2",),
    needs=("Node",),
    check=check,
    doc=__doc__ or "",
)
