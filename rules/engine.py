"""Rules and their evaluation: facts in, a report out."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from rules.errors import InternalFault
from rules.facts.cluster import ClusterFacts
from rules.findings import FailedRule, Finding, ObjectRef, Report, Severity, SkippedRule, fingerprint
from rules.policy import Policy


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    Attributes:
        id: kebab-case, says what is wrong; never reused.
        family: ``drivers``, ``compatibility``, ``sharing``, ``scheduling``, ``network``, ``storage``, ``spot``,
            ``billing``, ``training``, ``inference`` or ``health``.
        severity: the usual severity; a finding may carry another one.
        seeds: ids of the source statements it encodes (S1 to S29).
        needs: kinds without which it cannot judge; when one was not read, the rule is skipped and the report says so.
        check: yields findings. It looks at one object at a time and yields its reference first, so that a fault names
            it. The engine fills in ``rule`` and ``fingerprint`` of what it yields.
        doc: What, Why, Fix, Source: the module's docstring.
    """

    id: str
    family: str
    severity: Severity
    seeds: tuple[str, ...]
    needs: tuple[str, ...]
    check: Callable[[ClusterFacts, Policy], Iterable[Finding | ObjectRef]]
    doc: str


def evaluate(facts: ClusterFacts, policy: Policy, rules: Sequence[Rule]) -> Report:
    """Run ``rules`` over ``facts``.

    A rule that raises does not stop the others: it becomes a :class:`~rules.findings.FailedRule` that names the object
    it was looking at (a rule yields an :class:`~rules.findings.ObjectRef` before it looks at an object). Its findings
    up to then are kept. A rule whose ``needs`` were not read is skipped, never taken as "nothing found". Findings are
    sorted so that equal facts give an equal report, byte for byte.
    """
    findings: list[Finding] = []
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
            findings.extend(_findings(rule, facts, policy, looking_at))
        except Exception as error:
            where = looking_at[-1] if looking_at else None
            failed.append(FailedRule(rule.id, where, f"{type(error).__name__}: {error}"))
    findings.sort(key=lambda finding: (-finding.severity.rank, finding.rule, finding.objects, finding.fingerprint))
    return Report(
        cluster=facts.name,
        observed_at=facts.observed_at,
        findings=tuple(findings),
        unreadable=facts.unreadable,
        failed_rules=tuple(failed),
        skipped_rules=tuple(skipped),
    )


def _findings(rule: Rule, facts: ClusterFacts, policy: Policy, looking_at: list[ObjectRef]) -> Iterator[Finding]:
    seen: set[str] = set()
    for item in rule.check(facts, policy):
        if isinstance(item, ObjectRef):
            looking_at[:] = [item]
            continue
        mark = fingerprint(facts.name, rule.id, item.objects, item.identity)
        if mark in seen:
            raise InternalFault(f"two findings for one trouble: {item.identity or ', '.join(map(str, item.objects))}")
        seen.add(mark)
        yield msgspec.structs.replace(item, rule=rule.id, fingerprint=mark)
