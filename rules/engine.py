"""Rules and their evaluation: facts in, a report out.

Root causes, not echoes. One trouble shows in many places: a driver that is missing on a node is also ten pods that
wait. A rule that sees such a shadow yields a :class:`Symptom`: its finding, and the deeper troubles that would explain
it wholly, each as an object and the rules that may speak about it. When all rules have run, :func:`settle` asks for
each symptom whether one of those rules did speak about that object. If so the symptom is no finding of its own: its
objects join the root's, pods that wait because of it are named there in a note, and the root is at least as severe as
what it causes. If not (the root is no trouble, its rule is switched off or could not judge), the symptom stands as a
finding like any other. A root may itself be a symptom of something deeper.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from rules.errors import InternalFault
from rules.facts.cluster import ClusterFacts
from rules.findings import (
    Evidence,
    FailedRule,
    Finding,
    Note,
    ObjectRef,
    Report,
    Severity,
    SkippedRule,
    fingerprint,
    name_list,
)
from rules.policy import Policy


class Root(msgspec.Struct, frozen=True):
    """A deeper trouble that may explain a symptom: a finding about ``object`` by one of ``rules`` (their ids)."""

    object: ObjectRef
    rules: tuple[str, ...]


class Symptom(msgspec.Struct, frozen=True):
    """A finding that is worth telling only while nothing deeper explains it.

    Attributes:
        finding: what to say when nothing does.
        roots: what would explain it, the likeliest first. Name only what explains it wholly: a pod that would still
            wait after the repair is a trouble of its own.
        waiting: pods that wait for a node because of it; the root's finding names them in its note ``waiting``.
    """

    finding: Finding
    roots: tuple[Root, ...]
    waiting: tuple[ObjectRef, ...] = ()


Yielded = Finding | Symptom | ObjectRef
"""What a check yields: findings, symptoms, and before it looks at an object the reference to it."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        id: kebab-case, says what is wrong; never reused.
        family: ``drivers``, ``compatibility``, ``sharing``, ``scheduling``, ``network``, ``storage``, ``spot``,
            ``billing``, ``training``, ``inference`` or ``health``.
        severity: the usual severity; a finding may carry another one.
        seeds: ids of the source statements it encodes (S1 to S29).
        needs: kinds without which it cannot judge; when one was not read, the rule is skipped and the report says so.
        check: yields findings and symptoms. It looks at one object at a time and yields its reference first, so that a
            fault names it. The engine fills in ``rule`` and ``fingerprint`` of what it yields.
        doc: What, Why, Fix, Source: the module's docstring.
    """

    id: str
    family: str
    severity: Severity
    seeds: tuple[str, ...]
    needs: tuple[str, ...]
    check: Callable[[ClusterFacts, Policy], Iterable[Yielded]]
    doc: str


def evaluate(facts: ClusterFacts, policy: Policy, rules: Sequence[Rule]) -> Report:
    """Run ``rules`` over ``facts``.

    A rule that raises does not stop the others: it becomes a :class:`~rules.findings.FailedRule` that names the object
    it was looking at (a rule yields an :class:`~rules.findings.ObjectRef` before it looks at an object). Its findings
    up to then are kept. A rule whose ``needs`` were not read is skipped, never taken as "nothing found". Symptoms that
    a deeper finding explains are merged into it. Findings are sorted so that equal facts give an equal report, byte for
    byte.
    """
    said: list[Finding | Symptom] = []
    failed: list[FailedRule] = []
    skipped: list[SkippedRule] = []
    for rule in rules:
        if rule.id in policy.disabled_rules:
            continue
        missing = tuple(kind for kind in rule.needs if not facts.knows(kind))
        if missing:
            skipped.append(SkippedRule(rule.id, missing))
            continue
        looking_at: list[ObjectRef] = []
        try:
            said.extend(_said(rule, facts, policy, looking_at))
        except Exception as error:
            where = looking_at[-1] if looking_at else None
            failed.append(FailedRule(rule.id, where, f"{type(error).__name__}: {error}"))
    findings = settle(said)
    findings.sort(key=lambda finding: (-finding.severity.rank, finding.rule, finding.objects, finding.fingerprint))
    return Report(
        cluster=facts.name,
        observed_at=facts.observed_at,
        findings=tuple(findings),
        unreadable=facts.unreadable,
        failed_rules=tuple(failed),
        skipped_rules=tuple(skipped),
    )


def settle(said: Iterable[Finding | Symptom]) -> list[Finding]:
    """Findings that stand: those of rules and symptoms that nothing explains; the rest is merged into its root."""
    standing: list[_Standing] = []
    symptoms: list[Symptom] = []
    for item in said:
        if isinstance(item, Symptom):
            symptoms.append(item)
        else:
            standing.append(_Standing(item))
    while symptoms:
        merged = [item for item in symptoms if _merge(item, standing)]
        # Where nothing more can be merged, one symptom that no other explains stands; of a ring the first.
        freed = [] if merged else [_free(symptoms)]
        standing.extend(_Standing(item.finding) for item in freed)
        settled = {id(item) for item in (*merged, *freed)}
        symptoms = [item for item in symptoms if id(item) not in settled]
    return [item.finish() for item in standing]


class _Standing:
    """A finding that stands, and the symptoms that it explains."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.explains: list[Symptom] = []

    def finish(self) -> Finding:
        if not self.explains:
            return self.finding
        effects = [item.finding for item in self.explains]
        waiting = {ref for item in self.explains for ref in item.waiting} - {*self.finding.objects}
        more = (ref for effect in effects for ref in effect.objects)
        note = Note("waiting", (Evidence("waiting", name_list(waiting)),))
        return msgspec.structs.replace(
            self.finding,
            severity=max((item.severity for item in (self.finding, *effects)), key=lambda item: item.rank),
            objects=tuple(dict.fromkeys((*self.finding.objects, *more))),
            notes=(*self.finding.notes, note) if waiting else self.finding.notes,
        )


def _merge(symptom: Symptom, standing: Sequence[_Standing]) -> bool:
    for root in symptom.roots:
        for item in standing:
            behind = (item.finding, *(effect.finding for effect in item.explains))
            if any(_explains(finding, root, symptom) for finding in behind):
                item.explains.append(symptom)
                return True
    return False


def _explains(finding: Finding, root: Root, symptom: Symptom) -> bool:
    return finding.rule in root.rules and finding.rule != symptom.finding.rule and root.object in finding.objects


def _free(symptoms: Sequence[Symptom]) -> Symptom:
    for item in symptoms:
        if not any(_explains(other.finding, root, item) for other in symptoms for root in item.roots):
            return item
    return symptoms[0]


def _said(rule: Rule, facts: ClusterFacts, policy: Policy, looking_at: list[ObjectRef]) -> Iterator[Finding | Symptom]:
    seen: set[str] = set()
    for item in rule.check(facts, policy):
        if isinstance(item, ObjectRef):
            looking_at[:] = [item]
            continue
        finding = item.finding if isinstance(item, Symptom) else item
        mark = fingerprint(facts.name, rule.id, finding.objects, finding.identity)
        if mark in seen:
            raise InternalFault(
                f"two findings for one trouble: {finding.identity or ', '.join(map(str, finding.objects))}"
            )
        seen.add(mark)
        finding = msgspec.structs.replace(finding, rule=rule.id, fingerprint=mark)
        yield msgspec.structs.replace(item, finding=finding) if isinstance(item, Symptom) else finding
