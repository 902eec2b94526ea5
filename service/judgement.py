"""What an audit means for the findings that were there before it. Pure: no database, no clock.

A finding is closed only when its rule could judge this time. For one that the report does not hold, the stages of
:data:`STAGES` are asked in order and the first that has a word decides:

===================  =========  ======================================================================================
reason               state      when
===================  =========  ======================================================================================
``rule-gone``        withdrawn  this version has no such rule: nobody will ever judge it again
``rule-disabled``    withdrawn  the team switched the rule off; that does not mend the trouble, so it is not "resolved"
``exempted``         withdrawn  the team exempts it for the time being; the trouble is there, so it is not "resolved"
``rule-skipped``     open       kinds that the rule needs were not read
``rule-failed``      open       the rule raised, so that objects after the fault were not looked at
``kind-unreadable``  open       a kind of the finding's own objects could not be read this time
``fact-unknown``     open       facts that the rule needs to judge these objects are unknown this time
``gone``             resolved   the rule judged, and does not say it any more (the object may be gone, too)
===================  =========  ======================================================================================

A failed audit (cluster unreachable, timeout, our own fault) judges nothing and never comes here: everything stays as
it was.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from rules.engine import Rule
from rules.findings import Finding, Report
from rules.policy import Policy
from service.views import FindingState, Reason

Change = Literal["opened", "reopened", "still", "kept", "closed"]


class Standing(msgspec.Struct, frozen=True):
    """A finding as it is on record."""

    state: FindingState
    finding: Finding


class Judged(msgspec.Struct, frozen=True):
    """What becomes of one finding.

    Attributes:
        change: ``opened`` (new), ``reopened`` (was closed), ``still`` (confirmed), ``kept`` (could not be judged, stays
            open), ``closed``.
        reason: why it is kept or closed; None when the report holds it.
        finding: with the numbers of this report, or of the last one that held it.
    """

    change: Change
    state: FindingState
    finding: Finding
    reason: Reason | None = None


class Circumstances(msgspec.Struct, frozen=True):
    """What a stage may look at."""

    report: Report
    rules: Mapping[str, Rule]
    policy: Policy


Stage = Callable[[Finding, Circumstances], tuple[FindingState, Reason] | None]


def rule_gone(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """This version has no such rule."""
    return None if finding.rule in now.rules else ("withdrawn", "rule-gone")


def rule_disabled(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """The team switched the rule off."""
    return ("withdrawn", "rule-disabled") if finding.rule in now.policy.disabled_rules else None


def exempted(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """The report holds it, but among those that the team does not want to hear of."""
    hidden = any(item.finding.fingerprint == finding.fingerprint for item in now.report.exempted)
    return ("withdrawn", "exempted") if hidden else None


def rule_skipped(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """Kinds that the rule needs were not read."""
    skipped = any(item.rule == finding.rule for item in now.report.skipped_rules)
    return ("open", "rule-skipped") if skipped else None


def rule_failed(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """The rule raised half-way."""
    failed = any(item.rule == finding.rule for item in now.report.failed_rules)
    return ("open", "rule-failed") if failed else None


def kind_unreadable(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """A kind that the finding is about could not be read; rules may read kinds that they do not strictly need."""
    unreadable = {item.kind: item.namespaces for item in now.report.unreadable}
    unseen = any(ref.kind in unreadable and ref.namespace not in unreadable[ref.kind] for ref in finding.objects)
    return ("open", "kind-unreadable") if unseen else None


def fact_unknown(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason] | None:
    """The rule could not judge these objects."""
    about = set(finding.objects)
    undecided = any(
        item.rule == finding.rule and (not about or not about.isdisjoint(item.objects)) for item in now.report.undecided
    )
    return ("open", "fact-unknown") if undecided else None


def gone(_finding: Finding, _now: Circumstances) -> tuple[FindingState, Reason] | None:
    """The rule judged and is silent."""
    return ("resolved", "gone")


STAGES: Sequence[Stage] = (
    rule_gone,
    rule_disabled,
    exempted,
    rule_skipped,
    rule_failed,
    kind_unreadable,
    fact_unknown,
    gone,
)


def found_in_reading(
    trouble: Finding | None, known: Mapping[str, Standing], *, rules: Iterable[str]
) -> dict[str, Judged]:
    """What becomes of findings about reading itself (:mod:`service.unreadable`), which no rule judges.

    Args:
        trouble: what there is of it now.
        known: findings on record, by fingerprint.
        rules: ids of those that were looked for; the others stay as they are.
    """
    judged: dict[str, Judged] = {}
    if trouble is not None:
        before = known.get(trouble.fingerprint)
        change: Change = "opened" if before is None else "still" if before.state == "open" else "reopened"
        judged[trouble.fingerprint] = Judged(change, "open", trouble)
    for fingerprint, before in known.items():
        if fingerprint not in judged and before.state == "open" and before.finding.rule in rules:
            judged[fingerprint] = Judged("closed", "resolved", before.finding, "gone")
    return judged


def judge(report: Report, known: Mapping[str, Standing], *, rules: Iterable[Rule], policy: Policy) -> dict[str, Judged]:
    """What becomes of every finding, by fingerprint.

    Args:
        report: of a complete audit.
        known: findings on record, by fingerprint: all that are open, and those closed ones that the report holds again.
    """
    now = Circumstances(report, {rule.id: rule for rule in rules}, policy)
    judged: dict[str, Judged] = {}
    for finding in report.findings:
        before = known.get(finding.fingerprint)
        change: Change = "opened" if before is None else "still" if before.state == "open" else "reopened"
        judged.setdefault(finding.fingerprint, Judged(change, "open", finding))
    for fingerprint, before in known.items():
        if fingerprint in judged or before.state != "open":
            continue
        state, reason = _first_word(before.finding, now)
        judged[fingerprint] = Judged("kept" if state == "open" else "closed", state, before.finding, reason)
    return judged


def _first_word(finding: Finding, now: Circumstances) -> tuple[FindingState, Reason]:
    return next(word for stage in STAGES if (word := stage(finding, now)) is not None)
