"""Answers to errors: the likely cause, what the clusters show of it, how to check and how to fix."""

from collections.abc import Iterator, Sequence

from rules import words
from rules.answers import Source
from rules.compat import symptoms
from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence, Finding
from rules.knowledge.causes import Cause, causes
from rules.language import Language
from rules.questions.causes import traces
from rules.questions.composers import Asked, Known, Piece
from rules.questions.text import fold
from rules.questions.words import say

MOST_FINDINGS = 3
"""Findings told per cluster; the rest is counted."""
MESSAGE = 80
"""Characters of a pasted message that are quoted."""


def compose(asked: Asked) -> Piece | None:
    """The cause of the part; None for a cause that is not written."""
    cause = causes().get(asked.part.label)
    if cause is None:
        return None
    language = asked.language
    name = cause.name.in_(language)
    lead = say("error.likely", language, name=name, means=cause.means.in_(language))
    quoted = _quoted(asked)
    if quoted:
        lead += " " + say("error.message", language, message=quoted)
    own = list(_in_clusters(cause, asked))
    blocks = [lead, *(block for block, _ in own)]
    blocks += [
        f"**{say(heading, language)}**\n" + "\n".join(f"- {step}" for step in steps.of(language))
        for heading, steps in (("heading.check", cause.check), ("heading.fix", cause.fix))
    ]
    return Piece(
        title=say("error.title", language, name=name),
        blocks=tuple(blocks),
        verdict="depends",
        evidence=tuple(item for _, evidence in own for item in evidence),
        sources=tuple(_sources(asked)),
        fields={"cause": asked.part.label},
    )


def _quoted(asked: Asked) -> str | None:
    """The error message of the text that shows the cause, as typed."""
    folded = fold(asked.text)
    for trace in traces(folded):
        if trace.exact and trace.cause == asked.part.label:
            typed = asked.text if len(asked.text) == len(folded) else folded
            shown = typed[trace.start : trace.start + len(trace.words)].replace("`", "'").strip()
            return shown if len(shown) <= MESSAGE else shown[: MESSAGE - 1].rstrip() + "…"
    return None


def _sources(asked: Asked) -> Iterator[Source]:
    """Where the meaning of pasted messages comes from."""
    seen: set[str] = set()
    for symptom in symptoms.find(asked.text):
        for url in (symptom.source, *symptom.other_sources):
            if url.startswith("https://") and url not in seen:
                seen.add(url)
                yield Source(label=symptom.pattern, url=url, as_of=symptom.as_of)


def _in_clusters(cause: Cause, asked: Asked) -> Iterator[tuple[str, tuple[Evidence, ...]]]:
    """What each cluster that the question is about shows: its findings of this cause, or that there are none."""
    if not cause.rules:
        return
    pod = asked.part.entities.get("pod")
    for facts in asked.known.clusters:
        found, blind = _findings(cause, facts, asked.known)
        if pod is not None:
            found = [finding for finding in found if _is_about(finding, str(pod))] or found
        when = words.format_value(facts.observed_at.isoformat(), "date", asked.language)
        if found:
            yield _told(found, facts, when, asked.language), tuple(found[0].evidence)
        elif blind:
            kinds = words.format_list(sorted(blind), asked.language)
            yield say("error.own_blind", asked.language, cluster=facts.name, when=when, kinds=kinds), ()
        else:
            yield say("error.own_none", asked.language, cluster=facts.name, when=when), ()


def _findings(cause: Cause, facts: ClusterFacts, known: Known) -> tuple[list[Finding], set[str]]:
    """The findings of the cause's rules, and the kinds for want of which one of them could not judge."""
    report = known.report(facts)
    found = [finding for finding in report.findings if finding.rule in cause.rules]
    blind = {kind for skipped in report.skipped_rules if skipped.rule in cause.rules for kind in skipped.missing}
    return found, blind


def _is_about(finding: Finding, pod: str) -> bool:
    return any(ref.kind == "Pod" and (ref.name == pod or ref.name.startswith(f"{pod}-")) for ref in finding.objects)


def _told(found: Sequence[Finding], facts: ClusterFacts, when: str, language: Language) -> str:
    lines = [say("error.own", language, cluster=facts.name, when=when)]
    for finding in found[:MOST_FINDINGS]:
        shown = words.render(finding, language)
        lines.append(f"- **{shown.title}** {shown.summary}")
    if len(found) > MOST_FINDINGS:
        lines.append("- " + say("error.more", language, count=len(found) - MOST_FINDINGS))
    return "\n".join(lines)
