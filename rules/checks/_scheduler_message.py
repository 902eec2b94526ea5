"""Reading the scheduler's own words: ``0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) ...``.

The grammar is that of Kubernetes v1.36.2 pkg/scheduler/framework/types.go (FitError.Error) and its plugins, with the
older wordings of taints (before 1.36 the key was printed, before 1.24 with "that the pod didn't tolerate"); for
cluster-autoscaler that of 1.36.1 processors/status/eventing_scale_up_processor.go; for Volcano's gangs
https://github.com/kubedl-io/kubedl/issues/180.
"""

import re
from enum import StrEnum

import msgspec

_HEAD = re.compile(r"^0/(\d+) nodes are available:\s*(.*)$", re.DOTALL)
_POSTFILTER = re.compile(r"\s*(?:no new claims to deallocate|still not schedulable|not found|preemption:)")
_COUNTED = re.compile(r"(?:^|, )(\d+) (?=[A-Za-z(])")
_GANG = re.compile(r"(\d+)/(\d+) tasks in gang unschedulable.*?(\d+) minAvailable", re.DOTALL)
_CLAIM_MISSING = re.compile(r'persistentvolumeclaim "([^"]+)" not found')


class Cause(StrEnum):
    """What a reason of the scheduler is about."""

    INSUFFICIENT = "insufficient"
    TAINT = "taint"
    SELECTOR = "selector"
    CORDONED = "cordoned"
    VOLUME = "volume"
    CLAIM_MISSING = "claim_missing"
    DRA = "dra"
    POD_RULES = "pod_rules"
    PORTS = "ports"
    GANG = "gang"
    GROUP_FULL = "group_full"
    OTHER = "other"


class Reason(msgspec.Struct, frozen=True):
    """One reason: how many nodes (or node groups, for the autoscaler) it names, and the text.

    Attributes:
        subject: the resource of ``Insufficient``, the missing claim, or the taint key where it is printed.
    """

    cause: Cause
    count: int | None
    text: str
    subject: str | None = None


class Gang(msgspec.Struct, frozen=True):
    """A gang that waits: members wanted at once and members that exist."""

    wanted: int
    existing: int


def read(message: str) -> tuple[Reason, ...]:
    """Reasons in a FailedScheduling message or PodScheduled condition, in the order of the text."""
    missing = _CLAIM_MISSING.search(message)
    if missing:
        return (Reason(Cause.CLAIM_MISSING, None, missing[0], missing[1]),)
    head = _HEAD.match(message)
    if not head:
        return ()
    return _reasons(_POSTFILTER.split(head[2], maxsplit=1)[0].rstrip(". "))


def read_refusal(message: str) -> tuple[Reason, ...]:
    """Reasons in a NotTriggerScaleUp message of cluster-autoscaler; each count is a number of node groups."""
    _, found, rest = message.partition(": ")
    return _reasons(rest.strip()) if found else ()


def read_gang(message: str) -> Gang | None:
    """Volcano's sentence about a gang, where it is one."""
    match = _GANG.search(message)
    return Gang(wanted=int(match[3]), existing=int(match[2])) if match else None


def _reasons(text: str) -> tuple[Reason, ...]:
    starts = list(_COUNTED.finditer(text))
    reasons = []
    for index, start in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        reasons.append(_classify(int(start[1]), text[start.end() : end].strip(" .,")))
    return tuple(reasons)


_PATTERNS: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (Cause.INSUFFICIENT, re.compile(r"^Insufficient (\S+)")),
    (Cause.INSUFFICIENT, re.compile(r"^Too many (pods)")),
    (Cause.TAINT, re.compile(r"(?:untolerated|had) taints? \{([^:}]+)|untolerated taint")),
    (Cause.CORDONED, re.compile(r"were unschedulable")),
    (Cause.VOLUME, re.compile(r"volume|PersistentVolume")),
    (Cause.DRA, re.compile(r"cannot allocate all claims|resourceclaim", re.IGNORECASE)),
    (Cause.POD_RULES, re.compile(r"pod affinity|anti-affinity|topology spread")),
    (Cause.SELECTOR, re.compile(r"node affinity|node selector|affinity/selector")),
    (Cause.PORTS, re.compile(r"free ports")),
    (Cause.GROUP_FULL, re.compile(r"max node group size reached|max cluster")),
)


def _classify(count: int, text: str) -> Reason:
    for cause, pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            subject = next((group for group in match.groups() if group), None)
            return Reason(cause, count, text, subject)
    return Reason(Cause.OTHER, count, text)
