"""Exemptions: findings that a team does not want to hear of for the time being.

They are written in the settings (:class:`~rules.policy.Exemption`), or on the object itself::

    metadata:
      annotations:
        gpu-advisor.io/exempt: idle-gpu-node          # ids or globs of rules, separated by commas or blanks
        gpu-advisor.io/exempt-reason: kept warm for the launch
        gpu-advisor.io/exempt-until: "2026-12-31"     # the last day, in UTC; or a moment, 2026-12-31T18:00:00Z

Annotations of a pod's workload (Deployment, Job ...) hold for its pods, and annotations that all pods of a workload
have hold for the workload.

What a finding is about is its first object and others of the same kind: all of them must be exempted. Objects that are
only mentioned (the node that a pod runs on) neither exempt a finding nor keep it from being exempted.

An exemption needs a reason and an end. One that has ended, or lacks one of these, hides nothing and is said.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

import msgspec

from rules.facts import marks
from rules.facts.cluster import ClusterFacts
from rules.facts.objects import ObjectMeta
from rules.facts.workloads import Workloads, workloads_of
from rules.findings import ExemptionTrouble, Finding, ObjectRef
from rules.policy import Exemption, Policy, matching

EXEMPT = marks.EXEMPT_ANNOTATION
REASON = "gpu-advisor.io/exempt-reason"
UNTIL = "gpu-advisor.io/exempt-until"

Problem = Literal["ended", "no-reason", "no-end", "end-unreadable", "no-such-rule"]


class Grant(msgspec.Struct, frozen=True):
    """An exemption as it is written, wherever that is.

    Attributes:
        ends: the first moment at which it holds no more; None where that cannot be told.
        problem: why it does not work, whatever the time is.
    """

    by: str
    rules: tuple[str, ...]
    reason: str
    until: str
    ends: datetime | None
    problem: Problem | None = None

    def problem_at(self, now: datetime) -> Problem | None:
        """Why it does not work at ``now``; None when it does."""
        if self.problem is None and self.ends is not None and now >= self.ends:
            return "ended"
        return self.problem


class Verdict(msgspec.Struct, frozen=True):
    """What exemptions say of a finding: the one that hides it, and those that would if they worked."""

    grant: Grant | None
    broken: tuple[Grant, ...]


class Exemptions:
    """The exemptions of one cluster.

    Args:
        facts: of the cluster; its moment of observation is the "now" of all ends.
        policy: of the team.
        rules: ids of the rules that there are.
    """

    def __init__(self, facts: ClusterFacts, policy: Policy, rules: Iterable[str]) -> None:
        self._facts = facts
        self._rules = tuple(rules)
        self._now = facts.observed_at
        self._configured = [
            (item, _configured(index, item))
            for index, item in enumerate(policy.exemptions)
            if item.cluster is None or matching([item.cluster], [facts.name])
        ]
        self._annotated: dict[ObjectRef, Grant | None] = {}

    def verdict(self, finding: Finding) -> Verdict:
        """What holds for a finding."""
        kind = finding.objects[0].kind if finding.objects else None
        about = [ref for ref in finding.objects if ref.kind == kind]
        fitting = [
            grant
            for item, grant in self._configured
            if matching(item.rules, [finding.rule]) and all(self._selected(item, ref) for ref in about)
            if about or not item.about_objects
        ]
        fitting += self._by_annotation(finding.rule, about)
        working = next((grant for grant in fitting if grant.problem_at(self._now) is None), None)
        return Verdict(working, tuple(grant for grant in fitting if grant.problem_at(self._now) is not None))

    def troubles(self, verdicts: Mapping[str, Verdict]) -> tuple[ExemptionTrouble, ...]:
        """All exemptions that do not work, those of the settings first.

        Args:
            verdicts: by fingerprint of the finding.
        """
        hidden: dict[Grant, list[str]] = {}
        for fingerprint, verdict in verdicts.items():
            for grant in verdict.broken:
                hidden.setdefault(grant, []).append(fingerprint)
        grants = dict.fromkeys((*(grant for _, grant in self._configured), *self._all_annotations()))
        found = ((grant, grant.problem_at(self._now)) for grant in grants)
        return tuple(
            ExemptionTrouble(
                by=grant.by,
                problem=problem,
                rules=grant.rules,
                reason=grant.reason,
                until=grant.until,
                findings=tuple(sorted(hidden.get(grant, ()))),
            )
            for grant, problem in found
            if problem is not None
        )

    def _selected(self, item: Exemption, ref: ObjectRef) -> bool:
        if item.kind is not None and item.kind != ref.kind:
            return False
        if item.namespace is not None and not matching([item.namespace], [ref.namespace]):
            return False
        if item.name is not None and not matching([item.name], [ref.name]):
            return False
        if not item.labels:
            return True
        metadata = self._metadata(ref)
        labels = (metadata.labels if metadata else None) or {}
        return all(labels.get(key) == value for key, value in item.labels.items())

    @cached_property
    def _none_annotated(self) -> bool:
        """Whether no object that was read carries the annotation."""
        facts = self._facts
        written = (
            (node.node.metadata.annotations for node in facts.nodes),
            (item.metadata.annotations for items in facts.others.values() for item in items),
        )
        return not facts.marked(marks.EXEMPT) and not any(
            found and EXEMPT in found for every in written for found in every
        )

    def _by_annotation(self, rule: str, about: Iterable[ObjectRef]) -> list[Grant]:
        """One grant per object, where each has one; working ones go before others."""
        if self._none_annotated:
            return []
        chosen: list[Grant] = []
        for ref in about:
            grants = [grant for grant in self._grants(ref) if matching(grant.rules, [rule])]
            if not grants:
                return []
            chosen.append(min(grants, key=lambda grant: grant.problem_at(self._now) is not None))
        broken = [grant for grant in chosen if grant.problem_at(self._now) is not None]
        return list(dict.fromkeys(broken or chosen[:1]))

    def _grants(self, ref: ObjectRef) -> Iterator[Grant]:
        """Annotations that hold for an object."""
        own = self._grant_of(ref)
        if own is not None:
            yield own
        pod = self._facts.pod(ref.namespace, ref.name) if ref.kind == "Pod" else None
        for owner in self._workloads.owners(pod) if pod is not None else ():
            above = self._grant_of(owner)
            if above is not None:
                yield above
        workload = self._workloads.get(ref)
        if own is None and workload is not None and workload.pods:
            of_pods = [self._grant_of(pod.ref) for pod in workload.pods]
            first = of_pods[0]
            if first is not None and all(grant and _same(grant, first) for grant in of_pods):
                yield first

    @property
    def _workloads(self) -> Workloads:
        return workloads_of(self._facts)

    def _metadata(self, ref: ObjectRef) -> ObjectMeta | None:
        if ref.kind == "Node":
            node = self._facts.node(ref.name)
            return node.node.metadata if node else None
        if ref.kind == "Pod":
            pod = self._facts.pod(ref.namespace, ref.name)
            return pod.pod.metadata if pod else None
        item = self._workloads.object(ref)
        return item.metadata if item else None

    def _grant_of(self, ref: ObjectRef) -> Grant | None:
        if ref not in self._annotated:
            metadata = self._metadata(ref)
            written = metadata.annotations if metadata else None
            self._annotated[ref] = _annotated(ref, written, self._rules) if written and EXEMPT in written else None
        return self._annotated[ref]

    def _all_annotations(self) -> Iterator[Grant]:
        """Of all objects that were read; what a workload's pods repeat is said once."""
        if self._none_annotated:
            return
        refs = [node.ref for node in self._facts.nodes if EXEMPT in (node.node.metadata.annotations or ())]
        repeated: set[object] = set()
        for key, items in self._facts.others.items():
            refs += [
                ObjectRef(item.kind or key, item.metadata.namespace or "", item.metadata.name)
                for item in items
                if EXEMPT in (item.metadata.annotations or ())
            ]
        for pod in self._facts.marked(marks.EXEMPT):
            written = pod.pod.metadata.annotations or {}
            if EXEMPT in written and not pod.terminal:
                mark = (self._workloads.of(pod) or pod.ref, *(written.get(key) for key in (EXEMPT, REASON, UNTIL)))
                if mark not in repeated:
                    repeated.add(mark)
                    refs.append(pod.ref)
        for ref in refs:
            grant = self._grant_of(ref)
            if grant is not None:
                yield grant


def _same(one: Grant, other: Grant) -> bool:
    return msgspec.structs.replace(one, by="") == msgspec.structs.replace(other, by="")


def _configured(index: int, item: Exemption) -> Grant:
    ends = datetime(item.until.year, item.until.month, item.until.day, tzinfo=UTC)
    return Grant(
        f"policy.exemptions[{index}]", item.rules, item.reason.strip(), item.until.isoformat(), _next_day(ends)
    )


def _annotated(ref: ObjectRef, written: Mapping[str, str], rules: Iterable[str]) -> Grant:
    named = tuple(word for word in re.split(r"[,\s]+", written.get(EXEMPT, "")) if word)
    reason, until = written.get(REASON, "").strip(), written.get(UNTIL, "").strip()
    ends = _end(until)
    problem: Problem | None = None
    if not matching(named, rules):
        problem = "no-such-rule"
    elif not reason:
        problem = "no-reason"
    elif not until:
        problem = "no-end"
    elif ends is None:
        problem = "end-unreadable"
    return Grant(f"annotations of {ref}", named, reason, until, ends, problem)


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{5,20}(?:[Zz]|[+-][0-9]{2}:[0-9]{2})")


def _end(text: str) -> datetime | None:
    """The first moment after a day (2026-12-31) or from a moment on (2026-12-31T18:00:00Z); None for anything else."""
    try:
        if _DAY.fullmatch(text):
            return _next_day(datetime.fromisoformat(text).replace(tzinfo=UTC))
        return datetime.fromisoformat(text.upper()).astimezone(UTC) if _MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _next_day(day: datetime) -> datetime:
    try:
        return day + timedelta(days=1)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
