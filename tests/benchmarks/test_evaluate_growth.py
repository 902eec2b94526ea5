"""Rules grow with the cluster, not with its square: counted in calls of functions, not in time."""

import cProfile
from collections.abc import Mapping

from rules.checks import RULES
from rules.facts.cluster import build
from rules.facts.prices import bundled
from rules.policy import Policy
from tests.benchmarks import evaluate as benchmark

NODES, PODS = 100, 2_000
ALLOWED = 2.6
"""Times as many calls as before at twice the size; linear is 2, what is sorted a little more."""
FEW = 3_000
"""Calls that count for nothing: what is done once, whatever the size."""


def calls_by_rule(nodes: int, pods: int) -> Mapping[str, int]:
    """Calls of functions that each rule makes, those in C included; what rules share counts for the first one."""
    objects = benchmark.read(nodes, pods)
    counts: dict[str, int] = {}
    for _ in range(2):  # the first time fills caches that outlive the facts
        facts = build("big", benchmark.NOW, prices=bundled(), **objects.parts())
        for rule in RULES:
            if any(not facts.knows(kind) for kind in rule.needs):
                continue
            profile = cProfile.Profile()
            profile.enable()
            for _ in rule.check(facts, Policy()):
                pass
            profile.disable()
            counts[rule.id] = sum(entry.callcount for entry in profile.getstats())
    return counts


def test_a_cluster_twice_as_large_takes_twice_the_work() -> None:
    small, large = calls_by_rule(NODES, PODS), calls_by_rule(2 * NODES, 2 * PODS)
    steep = {
        rule: (small[rule], calls)
        for rule, calls in large.items()
        if calls > FEW and calls > ALLOWED * small[rule] + FEW
    }
    assert steep == {}
    assert sum(large.values()) < ALLOWED * sum(small.values())
