"""Rules of a team, and what they say of small clusters."""

from typing import Any

import msgspec

from rules.custom import CustomRule
from rules.custom.rule import compile_rule
from rules.engine import Rule, evaluate
from rules.facts.cluster import ClusterFacts
from rules.findings import Report
from rules.policy import Policy


def spec(when: str, scope: str = "node", **more: Any) -> CustomRule:
    given = {
        "id": "team-rule",
        "scope": scope,
        "when": when,
        "title": "Something is wrong",
        "detail": "It is.",
        "remedy": "Mend it.",
        **more,
    }
    return msgspec.convert(given, CustomRule)


def rule(when: str, scope: str = "node", **more: Any) -> Rule:
    return compile_rule(spec(when, scope, **more))


def asked(facts: ClusterFacts, when: str, scope: str = "node", **more: Any) -> Report:
    return evaluate(facts, Policy(), [rule(when, scope, **more)])


def found(facts: ClusterFacts, when: str, scope: str = "node", **more: Any) -> list[str]:
    """Names of the objects that the rule finds; nothing may have failed or remained undecided."""
    report = asked(facts, when, scope, **more)
    assert (report.failed_rules, report.undecided, report.skipped_rules) == ((), (), ())
    return [item.objects[0].name if item.objects else "" for item in report.findings]
