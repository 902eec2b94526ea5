"""An audit's report as text for people. Pure: returns lines."""

from collections import Counter
from collections.abc import Iterator

from rules import words
from rules.facts.objectset import TAKE_SNAPSHOT
from rules.findings import Cost, Finding, Report, Severity, name_list
from rules.language import Language
from service.cli import labels
from service.cli.output import Style
from service.cli.text import plain, wrapped

_INDENT = "  "
_OBJECTS_SHOWN = 8


def report_lines(report: Report, language: Language, style: Style, columns: int) -> Iterator[str]:
    """The report, heaviest finding first, then what could not be read or judged.

    Args:
        report: of one audit.
        language: of the words; numbers, money and dates follow it.
        style: colours, or none.
        columns: width of a line; commands and manifests are never wrapped.
    """
    when = words.format_value(report.observed_at.isoformat(), "date", language)
    label = labels.CLUSTER.in_(language)
    yield f"{style.bold(f'{label} {report.cluster}')} · {labels.OBSERVED.in_(language)} {when}"
    yield from _summary(report, language)
    for finding in report.findings:
        yield ""
        yield from _finding_lines(finding, language, style, columns)
    yield from _wishes(report, language, style, columns)
    yield from _gaps(report, language, style, columns)


def _summary(report: Report, language: Language) -> Iterator[str]:
    findings = report.findings
    if not findings:
        yield labels.NO_FINDINGS.in_(language)
        return
    number = labels.ONE_FINDING if len(findings) == 1 else labels.FINDINGS
    counts = Counter(finding.severity for finding in findings)
    heavy_first = sorted(counts, key=lambda severity: -severity.rank)
    split = ", ".join(
        f"{counts[severity]} {labels.SEVERITY[severity].in_(language).lower()}" for severity in heavy_first
    )
    yield f"{number.in_(language).format(n=len(findings))}: {split}"
    total = _total(report, language)
    if total:
        yield total


def _total(report: Report, language: Language) -> str | None:
    """What the findings with a price cost together; a node that two findings are about counts once."""
    priced: dict[str, Cost] = {}
    unpriced: set[str] = set()
    for finding in report.findings:
        key = str(finding.objects[0]) if finding.objects else finding.fingerprint
        if finding.cost is None:
            if finding.rule == "idle-gpu-node":
                unpriced.add(key)
        elif key not in priced or finding.cost.usd_hour > priced[key].usd_hour:
            priced[key] = finding.cost
    if not priced:
        return None
    hour = words.format_value(round(sum(cost.usd_hour for cost in priced.values()), 2), "USD/h", language)
    known = [cost.usd_so_far for cost in priced.values() if cost.usd_so_far is not None]
    so_far = words.format_value(round(sum(known), 2) if known else None, "USD", language)
    text = labels.IDLE_COST.in_(language).format(hour=hour, so_far=so_far)
    left = len(unpriced - priced.keys())
    return f"{text}; {labels.UNPRICED.in_(language).format(n=left)}" if left else text


def _finding_lines(finding: Finding, language: Language, style: Style, columns: int) -> Iterator[str]:
    said = words.render(finding, language)
    tag = labels.SEVERITY[finding.severity].in_(language)
    yield f"{style.severity(finding.severity, f'{tag:<8}')} {style.bold(plain(said.title))}"
    rule = f"{finding.rule} · {finding.fingerprint}"
    if finding.usual_severity is not None:
        usual = labels.SEVERITY[finding.usual_severity].in_(language).lower()
        rule += f" · {labels.USUALLY.in_(language).format(severity=usual)}"
    yield from wrapped(said.detail, columns, _INDENT)
    rows: list[tuple[str, list[str]]] = []
    if finding.objects:
        shown = [str(ref) for ref in finding.objects[:_OBJECTS_SHOWN]]
        left = len(finding.objects) - _OBJECTS_SHOWN
        rows.append((labels.OBJECTS.in_(language), [*shown, f"+{left}"] if left > 0 else shown))
    if finding.cost is not None and words.format_money(finding.cost.usd_hour, language) not in said.detail:
        rows.append((labels.COST.in_(language), [cost_text(finding.cost, language)]))
    rows.append((labels.RULE.in_(language), [style.faint(rule)]))
    margin = max(len(label) for label, _ in rows) + 2
    for label, values in rows:
        for index, value in enumerate(values):
            yield f"{_INDENT}{label if index == 0 else '':<{margin}}{value}"
    yield f"{_INDENT}{style.bold(labels.REMEDY.in_(language))}"
    yield from wrapped(said.remedy, columns, _INDENT * 2)


def cost_text(cost: Cost, language: Language) -> str:
    """Money of a finding in one line, with where the price comes from."""
    parts = [words.format_value(cost.usd_hour, "USD/h", language)]
    if cost.usd_so_far is not None:
        money = words.format_value(cost.usd_so_far, "USD", language)
        parts.append(labels.SO_FAR.in_(language).format(money=money))
    basis = labels.BASIS[cost.basis].in_(language)
    if cost.as_of:
        basis += f", {words.format_value(cost.as_of, 'date', language)}"
    return f"{', '.join(parts)} ({basis})"


def _wishes(report: Report, language: Language, style: Style, columns: int) -> Iterator[str]:
    """What the team does not want to hear of, and where that wish does not work."""
    if report.exempted:
        yield ""
        yield style.bold(labels.EXEMPTED.in_(language))
        for item in report.exempted:
            title = plain(words.render(item.finding, language).title)
            until = words.format_value(item.until, "date", language)
            why = labels.EXEMPTED_UNTIL.in_(language).format(until=until, reason=item.reason, by=item.by)
            yield from wrapped(f"{title} ({item.finding.rule}), {why}", columns, _INDENT)
    if report.exemption_troubles:
        yield ""
        yield style.bold(labels.EXEMPTION_TROUBLES.in_(language))
        for trouble in report.exemption_troubles:
            until = words.format_value(trouble.until, "date", language)
            problem = labels.EXEMPTION_PROBLEM[trouble.problem].in_(language).format(until=until)
            reason = f" ({trouble.reason})" if trouble.reason else ""
            yield from wrapped(f"{trouble.by}: {', '.join(trouble.rules)}: {problem}{reason}", columns, _INDENT)
    if report.disabled_rules:
        yield ""
        yield from wrapped(f"{labels.DISABLED.in_(language)}: {', '.join(report.disabled_rules)}", columns, "")


def _gaps(report: Report, language: Language, style: Style, columns: int) -> Iterator[str]:
    if report.unreadable:
        yield ""
        yield style.bold(labels.UNREADABLE.in_(language))
        missing = [item.kind for item in report.unreadable if item.reason == "not-in-snapshot"]
        if missing:
            reason = labels.REASON["not-in-snapshot"].in_(language)
            yield from wrapped(f"{reason}: {', '.join(missing)}. {labels.TAKE.in_(language)}", columns, _INDENT)
            yield f"{_INDENT}{_INDENT}{TAKE_SNAPSHOT}"
        for item in report.unreadable:
            if item.reason != "not-in-snapshot":
                reason = labels.REASON[item.reason].in_(language)
                yield from wrapped(f"{item.kind}: {reason}. {item.detail}", columns, _INDENT)
    if report.skipped_rules:
        yield ""
        yield style.bold(labels.SKIPPED.in_(language))
        by_missing: dict[tuple[str, ...], list[str]] = {}
        for skipped in report.skipped_rules:
            by_missing.setdefault(skipped.missing, []).append(skipped.rule)
        for kinds, rules in by_missing.items():
            yield from wrapped(f"{', '.join(kinds)}: {', '.join(rules)}", columns, _INDENT)
    if report.undecided:
        yield ""
        yield style.bold(labels.UNDECIDED.in_(language))
        for undecided in report.undecided:
            objects = ", ".join(name_list(undecided.objects)) or report.cluster
            facts = " / ".join(undecided.unknown)
            what = labels.UNKNOWN_FACT.in_(language).format(facts=facts, objects=objects)
            yield from wrapped(f"{undecided.rule}: {what}", columns, _INDENT)
    if report.failed_rules:
        yield ""
        yield style.severity(Severity.HIGH, labels.FAILED.in_(language))
        for failed in report.failed_rules:
            where = f" ({failed.object})" if failed.object else ""
            yield from wrapped(f"{failed.rule}{where}: {failed.error}", columns, _INDENT)
