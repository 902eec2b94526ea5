"""Rules and their evaluation: facts in, a report out.

Root causes, not echoes. One trouble shows in many places: a driver that is missing on a node is also ten pods that
wait. A rule that sees such a shadow yields a :class:`Symptom`: its finding, and the deeper troubles that would explain
it wholly, each as an object and the rules that may speak about it. When all rules have run, :func:`settle` asks for
each symptom whether one of those rules did speak about that object. If so the symptom is no finding of its own: its
objects (or the pods that wait, which a note names as well) join the root's, and the root is at least as severe as what
it causes elsewhere. If not (the root is no trouble, its rule is switched off or could not judge), the symptom stands as
a finding like any other. A root may itself be a symptom of something deeper.

The team's word. What happens to what the rules say on its way to the report is the list :data:`STAGES`, and each of
them leaves a named trace in the report: rules that are ``disabled`` are not asked (``disabled_rules``), a changed
severity keeps the usual one beside it (``usual_severity``), and an ``exempted`` finding goes to ``exempted`` with its
reason. An exempted root goes on explaining its symptoms: whoever knows the cause knows the effects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from rules.errors import InternalFault
from rules.exemptions import Exemptions, Verdict
from rules.facts.cluster import ClusterFacts
from rules.facts.pause import collector_paused
from rules.findings import (
    Evidence,
    Exempted,
    FailedRule,
    Finding,
    Note,
    ObjectRef,
    OwnWords,
    Report,
    Severity,
    SkippedRule,
    Undecided,
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


Yielded = Finding | Symptom | ObjectRef | Undecided | FailedRule
"""What a check yields: findings, symptoms, and before it looks at an object the reference to it. One that goes on after
objects it cannot judge says of them why: facts are unknown, or it failed there."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        id: kebab-case, says what is wrong; never reused.
        family: ``drivers``, ``compatibility``, ``sharing``, ``scheduling``, ``network``, ``storage``, ``spot``,
            ``billing``, ``training``, ``inference`` or ``health``; rules of the team's own are in ``custom`` or in one
            that the team names.
        severity: the usual severity; a finding may carry another one.
        seeds: ids of the source statements it encodes (S1 to S29).
        needs: kinds without which it cannot judge; when one was not read, the rule is skipped and the report says so.
        alone: a kind whose objects it judges each by itself, without any other kind where that is unknown. Where only
            some namespaces are read, it judges what is there of it although ``needs`` were not read: nothing that is
            not seen could make its word wrong.
        check: yields findings and symptoms. It looks at one object at a time and yields its reference first, so that a
            fault names it. The engine fills in ``rule`` and ``fingerprint`` of what it yields.
        doc: What, Why, Fix, Source: the module's docstring.
        words: of a rule of the team's own; None where a file of words lies beside the check.
    """

    id: str
    family: str
    severity: Severity
    seeds: tuple[str, ...]
    needs: tuple[str, ...]
    check: Callable[[ClusterFacts, Policy], Iterable[Yielded]]
    doc: str
    words: OwnWords | None = None
    alone: str | None = None


class Said(msgspec.Struct, frozen=True):
    """What rules have said, on its way to the report."""

    items: tuple[Finding | Symptom, ...]
    exempted: tuple[Exempted, ...] = ()


class Circumstances(msgspec.Struct, frozen=True):
    """What a stage may look at; ``verdicts`` are those of the exemptions, by fingerprint."""

    policy: Policy
    verdicts: Mapping[str, Verdict]

    def verdict(self, item: Finding | Symptom) -> Verdict:
        """What exemptions say of a finding, or of that of a symptom."""
        return self.verdicts[_finding(item).fingerprint]


Stage = Callable[[Said, Circumstances], Said]


def severity_changed(said: Said, now: Circumstances) -> Said:
    """The severity that the team wants for a rule, also where a symptom would make it heavier."""
    return msgspec.structs.replace(said, items=tuple(_with_severity(item, now.policy) for item in said.items))


def exempted_symptoms(said: Said, now: Circumstances) -> Said:
    """A symptom of an exempted object is none of its root either."""
    return _without_exempted(said, now, Symptom)


def echoes_joined(said: Said, _now: Circumstances) -> Said:
    """Symptoms join the findings that explain them."""
    return msgspec.structs.replace(said, items=tuple(settle(said.items)))


def exempted_findings(said: Said, now: Circumstances) -> Said:
    """Findings that the team does not want to hear of leave the list, with the reason."""
    return _without_exempted(said, now, Finding)


def broken_exemptions_told(said: Said, now: Circumstances) -> Said:
    """A finding that would be exempted, had the exemption not ended, says so."""
    return msgspec.structs.replace(said, items=tuple(_with_note(item, now) for item in said.items))


STAGES: Sequence[Stage] = (
    severity_changed,
    exempted_symptoms,
    echoes_joined,
    severity_changed,
    exempted_findings,
    broken_exemptions_told,
)


def evaluate(facts: ClusterFacts, policy: Policy, rules: Sequence[Rule]) -> Report:
    """Run ``rules`` over ``facts``.

    A rule that raises does not stop the others: it becomes a :class:`~rules.findings.FailedRule` that names the object
    it was looking at (a rule yields an :class:`~rules.findings.ObjectRef` before it looks at an object). Its findings
    up to then are kept. A rule whose ``needs`` were not read is skipped, never taken as "nothing found". What rules
    say passes through :data:`STAGES`. Findings are sorted so that equal facts give an equal report, byte for byte.
    """
    # What rules gather stays until the end, and the facts make the heap large: a third of the time went into looking
    # for garbage in it.
    with collector_paused():
        return _evaluate(facts, policy, rules)


def _evaluate(facts: ClusterFacts, policy: Policy, rules: Sequence[Rule]) -> Report:
    items: list[Finding | Symptom] = []
    aside: list[FailedRule | Undecided] = []
    skipped: list[SkippedRule] = []
    disabled: list[str] = []
    for rule in rules:
        if rule.id in policy.disabled_rules:
            disabled.append(rule.id)
            continue
        missing = tuple(kind for kind in rule.needs if not facts.knows(kind))
        if missing and not _sees_some(rule, facts):
            skipped.append(SkippedRule(rule.id, missing))
            continue
        looking_at: list[ObjectRef] = []
        try:
            items.extend(_said(rule, facts, policy, looking_at, aside))
        except Exception as error:
            where = looking_at[-1] if looking_at else None
            aside.append(FailedRule(rule.id, where, f"{type(error).__name__}: {error}"))
    exemptions = Exemptions(facts, policy, [rule.id for rule in rules])
    verdicts = {finding.fingerprint: exemptions.verdict(finding) for finding in map(_finding, items)}
    said, now = Said(tuple(items)), Circumstances(policy, verdicts)
    for stage in STAGES:
        said = stage(said, now)
    return Report(
        cluster=facts.name,
        observed_at=facts.observed_at,
        findings=tuple(sorted(map(_finding, said.items), key=_weight)),
        unreadable=facts.unreadable,
        failed_rules=tuple(item for item in aside if isinstance(item, FailedRule)),
        skipped_rules=tuple(skipped),
        undecided=tuple(item for item in aside if isinstance(item, Undecided)),
        exempted=tuple(sorted(said.exempted, key=lambda item: _weight(item.finding))),
        exemption_troubles=exemptions.troubles(verdicts),
        disabled_rules=tuple(disabled),
    )


def _sees_some(rule: Rule, facts: ClusterFacts) -> bool:
    """Whether objects of the kind that the rule judges each by itself are read in some namespaces."""
    return rule.alone is not None and any(
        item.kind == rule.alone and item.reason == "outside" for item in facts.unreadable
    )


def _finding(item: Finding | Symptom) -> Finding:
    return item.finding if isinstance(item, Symptom) else item


def _weight(finding: Finding) -> tuple[int, str, tuple[ObjectRef, ...], str]:
    return -finding.severity.rank, finding.rule, finding.objects, finding.fingerprint


def _with_severity(item: Finding | Symptom, policy: Policy) -> Finding | Symptom:
    finding = _finding(item)
    wanted = policy.severity.get(finding.rule)
    if wanted is None or wanted == finding.severity:
        return item
    usual = finding.usual_severity or finding.severity
    changed = msgspec.structs.replace(finding, severity=wanted, usual_severity=usual)
    return msgspec.structs.replace(item, finding=changed) if isinstance(item, Symptom) else changed


def _without_exempted(said: Said, now: Circumstances, kind: type[Finding | Symptom]) -> Said:
    items: list[Finding | Symptom] = []
    exempted = list(said.exempted)
    for item in said.items:
        grant = now.verdict(item).grant
        if grant is None or not isinstance(item, kind):
            items.append(item)
        else:
            exempted.append(Exempted(_finding(item), grant.reason, grant.until, grant.by))
    return Said(tuple(items), tuple(exempted))


def _with_note(item: Finding | Symptom, now: Circumstances) -> Finding | Symptom:
    broken = now.verdict(item).broken
    if not isinstance(item, Finding) or not broken:
        return item
    first = broken[0]
    if first.problem is None:
        values = (Evidence("exemption_until", first.until, "date"), Evidence("exemption_reason", first.reason))
        note = Note("exemption_ended", values)
    else:
        note = Note("exemption_broken", (Evidence("exemption_problem", first.problem),))
    return msgspec.structs.replace(item, notes=(*item.notes, note))


def settle(said: Iterable[Finding | Symptom]) -> list[Finding]:
    """Findings that stand: those of rules and symptoms that nothing explains; the rest is merged into its root."""
    return _Settlement(said).result()


class _Settlement:
    """Every finding and symptom by what it says about which object, and where each came to rest."""

    def __init__(self, said: Iterable[Finding | Symptom]) -> None:
        self._standing: list[_Standing] = []
        self._rests: dict[_Mark, _Standing] = {}
        self._symptoms: list[Symptom] = []
        self._open: dict[_Mark, Symptom] = {}
        for item in said:
            if isinstance(item, Symptom):
                self._symptoms.append(item)
                for mark in _marks(item.finding):
                    self._open.setdefault(mark, item)
            else:
                self._stand(item)
        self._asked: set[int] = set()

    def result(self) -> list[Finding]:
        for symptom in self._symptoms:
            self._rest(symptom)
        return [item.finish() for item in self._standing]

    def _rest(self, symptom: Symptom) -> None:
        """Merge a symptom into what explains it, or let it stand. Of a ring of symptoms one stands."""
        if id(symptom) in self._asked:
            return
        self._asked.add(id(symptom))
        root = next(filter(None, map(self._found, _wanted(symptom))), None)
        if root is None:
            self._stand(symptom.finding)
            return
        root.explains.append(symptom)
        for mark in _marks(symptom.finding):
            self._rests.setdefault(mark, root)

    def _found(self, mark: "_Mark") -> "_Standing | None":
        if mark not in self._rests and mark in self._open:
            self._rest(self._open[mark])
        return self._rests.get(mark)

    def _stand(self, finding: Finding) -> None:
        standing = _Standing(finding)
        self._standing.append(standing)
        for mark in _marks(finding):
            self._rests.setdefault(mark, standing)


_Mark = tuple[str, ObjectRef]
"""That a rule speaks about an object."""


def _marks(finding: Finding) -> Iterator[_Mark]:
    return ((finding.rule, ref) for ref in finding.objects)


def _wanted(symptom: Symptom) -> Iterator[_Mark]:
    return ((rule, root.object) for root in symptom.roots for rule in root.rules if rule != symptom.finding.rule)


class _Standing:
    """A finding that stands, and the symptoms that it explains."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.explains: list[Symptom] = []

    def finish(self) -> Finding:
        known = {*self.finding.objects}
        # What a finding itself names it has weighed; only news from elsewhere can make it heavier.
        news = [item for item in self.explains if not {*_shows(item)} <= known]
        if not news:
            return self.finding
        waiting = {ref for item in news for ref in item.waiting} - known
        note = Note("waiting", (Evidence("waiting", name_list(waiting)),))
        severities = (self.finding.severity, *(item.finding.severity for item in news))
        return msgspec.structs.replace(
            self.finding,
            severity=max(severities, key=lambda item: item.rank),
            objects=tuple(dict.fromkeys((*self.finding.objects, *(ref for item in news for ref in _shows(item))))),
            notes=(*self.finding.notes, note) if waiting else self.finding.notes,
        )


def _shows(symptom: Symptom) -> tuple[ObjectRef, ...]:
    return symptom.waiting or symptom.finding.objects


def _said(
    rule: Rule,
    facts: ClusterFacts,
    policy: Policy,
    looking_at: list[ObjectRef],
    aside: list[FailedRule | Undecided],
) -> Iterator[Finding | Symptom]:
    seen: set[str] = set()
    for item in rule.check(facts, policy):
        if isinstance(item, ObjectRef):
            looking_at[:] = [item]
            continue
        if isinstance(item, FailedRule | Undecided):
            aside.append(msgspec.structs.replace(item, rule=rule.id))
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
