"""The benchmark of facts and rules runs, at a small size; it prints figures (pytest -s) and nothing fails on time."""

from rules.checks import RULES
from rules.engine import evaluate
from rules.facts.cluster import build
from rules.facts.prices import bundled
from rules.policy import Policy
from tests.benchmarks import evaluate as benchmark


def test_facts_and_rules_are_measured_and_say_the_same_after_a_change() -> None:
    objects = benchmark.read(nodes=100, pods=1_500)

    figures = benchmark.measure(objects, changes=50)

    for line in figures.lines():
        print(line)
    assert figures.report.findings
    assert not figures.report.failed_rules
    skipped = {item.rule for item in figures.report.skipped_rules}
    assert figures.by_rule.keys() == {rule.id for rule in RULES} - skipped
    later = figures.report_again.observed_at
    moved = benchmark.changed(objects.by_kind["Pod"], 50)
    anew = build("big", later, prices=bundled(), **objects.parts(moved))
    assert figures.report_again == evaluate(anew, Policy(), RULES)
