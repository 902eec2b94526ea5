"""What leaves the house as JSON, over REST and on the command line alike.

Words are rendered here, once, for one language; nothing in this module knows HTTP.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from rules import words
from rules.advice import readiness as multi_node
from rules.engine import Rule
from rules.findings import (
    Cost,
    Evidence,
    Exempted,
    ExemptionTrouble,
    FailedRule,
    Finding,
    ObjectRef,
    OwnWords,
    Report,
    Severity,
    SkippedRule,
    Undecided,
    Unreadable,
)
from rules.language import Language, Text
from service.errors import RuleUnknown


class FindingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble, in the words of one language.

    Attributes:
        rule: id of the rule that found it; ``GET /v1/rules/{rule}`` explains it.
        severity: info, low, medium, high or critical.
        usual_severity: what the rule itself says, where the settings want another severity; null elsewhere.
        title, detail, remedy: for people; Markdown.
        objects: the Kubernetes objects it is about, the main one first.
        evidence: the named values it rests on; a value of null is unknown.
        cost: money, null when no price is known.
        fingerprint: the same trouble keeps it from audit to audit.
    """

    rule: str
    severity: Severity
    usual_severity: Severity | None
    title: str
    detail: str
    remedy: str
    objects: tuple[ObjectRef, ...]
    evidence: tuple[Evidence, ...]
    cost: Cost | None
    fingerprint: str


class ExemptedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that the team does not want to hear of for the time being.

    Attributes:
        reason, until: as the team wrote them; it holds through that day, in UTC.
        by: where it is written.
    """

    finding: FindingDocument
    reason: str
    until: str
    by: str


class ReportDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one audit. What could not be read or judged is listed, never passed over as "nothing found".

    Attributes:
        undecided: objects about which a rule could say neither yes nor no, and the facts that are unknown.
        exempted: findings that the team does not want to hear of for the time being.
        exemption_troubles: exemptions that do not work: they have ended, or lack a reason or an end.
        disabled_rules: rules that are switched off.
    """

    cluster: str
    observed_at: datetime
    findings: tuple[FindingDocument, ...]
    unreadable: tuple[Unreadable, ...]
    failed_rules: tuple[FailedRule, ...]
    skipped_rules: tuple[SkippedRule, ...]
    undecided: tuple[Undecided, ...]
    exempted: tuple[ExemptedDocument, ...]
    exemption_troubles: tuple[ExemptionTrouble, ...]
    disabled_rules: tuple[str, ...]


class RuleDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, in short.

    Attributes:
        name: what it finds, in the language asked for.
        seeds: ids of the source statements it encodes.
        needs: kinds of objects that must be readable before it can judge.
    """

    id: str
    family: str
    severity: Severity
    name: str
    seeds: tuple[str, ...]
    needs: tuple[str, ...]


class RuleDetailDocument(RuleDocument, frozen=True, kw_only=True):
    """One rule in full.

    Attributes:
        doc: What, Why, Fix and Source, in English.
        words: its name, title and detail in every language; ``{names}`` in them are filled from the evidence.
        remedies: what to do, by the key that a finding carries, in every language.
        evidence: what each named value is called, in every language.
    """

    doc: str
    words: dict[str, Text]
    remedies: dict[str, Text]
    evidence: dict[str, Text]


class RequirementDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that training over several nodes needs.

    Attributes:
        topic: interconnect, gang_scheduling, training_operator or shared_storage.
        state: met, not_met or unknown; unknown is never taken for "no".
        name: of the topic, for people.
        reasons: why it is in that state, for people; Markdown.
        next_step: what to do next, null where nothing is to be done.
        objects: the Kubernetes objects that show it.
        missing: kinds that were not read and would tell.
        evidence: the named values that the reasons rest on.
    """

    topic: multi_node.Topic
    state: multi_node.State
    name: str
    reasons: tuple[str, ...]
    next_step: str | None
    objects: tuple[ObjectRef, ...]
    missing: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class ReadinessDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a cluster is ready for training over several nodes.

    Attributes:
        state: met when all requirements are, not_met when one is not, else unknown.
    """

    cluster: str
    observed_at: datetime
    state: multi_node.State
    requirements: tuple[RequirementDocument, ...]


class ErrorDocument(msgspec.Struct, frozen=True):
    """Why something did not work: a stable name for machines and a sentence for people."""

    code: str
    detail: str


class AskRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question as people type it, or an error message that they paste.

    Attributes:
        text: at most 20,000 characters, and not blank.
        language: the reader's own, used where the text is too short to tell its language.
        conversation: any name for the thread that the question belongs to (at most 200 characters); a follow-up such
            as "and on GKE?" is then read in the light of the question before. Only a digest of it is kept.
    """

    text: Annotated[str, msgspec.Meta(max_length=20_000, pattern=r"\S")]
    language: Language | None = None
    conversation: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class FeedbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether an answer helped.

    Attributes:
        comment: what was missing or wrong, at most 2,000 characters; names of people and secrets are not kept.
    """

    helped: bool
    comment: Annotated[str, msgspec.Meta(max_length=2000)] | None = None


def finding_document(finding: Finding, language: Language) -> FindingDocument:
    """``finding`` in the words of ``language``."""
    rendered = words.render(finding, language)
    return FindingDocument(
        rule=finding.rule,
        severity=finding.severity,
        usual_severity=finding.usual_severity,
        title=rendered.title,
        detail=rendered.detail,
        remedy=rendered.remedy,
        objects=finding.objects,
        evidence=finding.evidence,
        cost=finding.cost,
        fingerprint=finding.fingerprint,
    )


def report_document(report: Report, language: Language) -> ReportDocument:
    """``report`` in the words of ``language``, findings heaviest first."""
    return ReportDocument(
        cluster=report.cluster,
        observed_at=report.observed_at,
        findings=tuple(finding_document(finding, language) for finding in report.findings),
        unreadable=report.unreadable,
        failed_rules=report.failed_rules,
        skipped_rules=report.skipped_rules,
        undecided=report.undecided,
        exempted=tuple(_exempted_document(item, language) for item in report.exempted),
        exemption_troubles=report.exemption_troubles,
        disabled_rules=report.disabled_rules,
    )


def _exempted_document(item: Exempted, language: Language) -> ExemptedDocument:
    return ExemptedDocument(
        finding=finding_document(item.finding, language), reason=item.reason, until=item.until, by=item.by
    )


def readiness_document(report: multi_node.Readiness, language: Language) -> ReadinessDocument:
    """``report`` in the words of ``language``."""
    return ReadinessDocument(
        cluster=report.cluster,
        observed_at=report.observed_at,
        state=report.state,
        requirements=tuple(_requirement(item, language) for item in report.requirements),
    )


def _requirement(item: multi_node.Requirement, language: Language) -> RequirementDocument:
    said = multi_node.say(item, language)
    return RequirementDocument(
        topic=item.topic,
        state=item.state,
        name=said.name,
        reasons=said.reasons,
        next_step=said.step,
        objects=item.objects,
        missing=item.missing,
        evidence=tuple(value for reason in item.reasons for value in reason.values),
    )


def rule_named(rules: Sequence[Rule], rule_id: str) -> Rule:
    """The rule with that id.

    Raises:
        RuleUnknown: names the rules that there are.
    """
    for rule in rules:
        if rule.id == rule_id:
            return rule
    raise RuleUnknown(rule_id, [rule.id for rule in rules])


def _words_of(rule: Rule) -> OwnWords:
    return rule.words or words.rule_words(rule.id)


def rule_document(rule: Rule, language: Language) -> RuleDocument:
    """``rule`` in short, in the words of ``language``."""
    return RuleDocument(
        id=rule.id,
        family=rule.family,
        severity=rule.severity,
        name=_words_of(rule).name.in_(language),
        seeds=rule.seeds,
        needs=rule.needs,
    )


def rule_detail_document(rule: Rule, language: Language) -> RuleDetailDocument:
    """``rule`` in full."""
    about = _words_of(rule)
    return RuleDetailDocument(
        **msgspec.structs.asdict(rule_document(rule, language)),
        doc=rule.doc,
        words={"name": about.name, "title": about.title, "detail": about.detail},
        remedies=about.remedies,
        evidence=about.evidence,
    )


def heaviest(findings: Iterable[Finding]) -> Severity | None:
    """The greatest severity among ``findings``; None when there are none."""
    return max((finding.severity for finding in findings), key=lambda severity: severity.rank, default=None)
