"""Public bug reports, re-made small with invented names: the audit shows the kind of fault that each of them had."""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml

from rules.checks import RULES
from rules.engine import evaluate
from rules.findings import Finding, Report
from rules.policy import Policy
from rules.words import render
from tests.rules.checks.kit import DATA, cluster
from tests.rules.checks.test_rule_files import check_rendering

FILES = {file.stem: file for file in sorted((DATA / "reports").glob("*.yaml"))}
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


class Remade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report.

    Attributes:
        source, also: where it was reported.
        fault: what was wrong, in our own words.
        rules: rule -> names of objects that its finding must hold.
        never: rules that must not speak; say: what the English words of ``rules`` must match.
    """

    title: str
    source: str
    fault: str
    rules: dict[str, list[str]]
    never: list[str]
    say: list[str]
    objects: list[dict[str, Any]]
    also: list[str] = []


REPORTS = {name: msgspec.convert(yaml.safe_load(file.read_text("utf-8")), Remade) for name, file in FILES.items()}
each_report = pytest.mark.parametrize("name", list(FILES))


def audited(name: str) -> Report:
    facts = cluster(*REPORTS[name].objects, observed_at=NOW)
    result = evaluate(facts, Policy(), RULES)
    assert result.failed_rules == ()
    return result


def by_rule(name: str) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for item in audited(name).findings:
        found.setdefault(item.rule, []).append(item)
    return found


@each_report
def test_the_audit_shows_the_fault_of_the_report(name: str) -> None:
    remade, found = REPORTS[name], by_rule(name)
    for rule, names in remade.rules.items():
        assert rule in found, f"{rule} is silent; these speak: {sorted(found)}"
        assert set(names) <= {ref.name for item in found[rule] for ref in item.objects}
    spoken = " ".join(
        f"{words.title} {words.detail} {words.remedy}"
        for rule in remade.rules
        for words in (render(item, "en") for item in found[rule])
    )
    assert [pattern for pattern in remade.say if not re.search(pattern, spoken)] == [], spoken


@each_report
def test_the_audit_does_not_mistake_it_for_another(name: str) -> None:
    assert sorted(set(REPORTS[name].never) & set(by_rule(name))) == []


@each_report
def test_what_is_said_reads_well_in_every_language(name: str) -> None:
    for item in audited(name).findings:
        check_rendering(item)


def test_ten_reports_each_name_their_source_and_rules_that_there_are() -> None:
    assert len(REPORTS) >= 10
    known = {rule.id for rule in RULES}
    for remade in REPORTS.values():
        assert all(url.startswith("https://github.com/") for url in (remade.source, *remade.also))
        assert {*remade.rules, *remade.never} <= known
    assert len({rule for remade in REPORTS.values() for rule in remade.rules}) >= 9, "different kinds of fault"
