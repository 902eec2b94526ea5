"""Facts and rules of a large cluster, measured without a network: ``python -m tests.benchmarks.evaluate``.

Prints CPU seconds for facts and for all rules, for both again after pods have changed (a watched cluster), each beside
the time that decoding the same pods takes, and the heaviest rules. Nothing fails on a time.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from rules.checks import RULES
from rules.engine import Rule, Yielded, evaluate
from rules.facts.cluster import ClusterFacts, FactsBuilder
from rules.facts.decode import decode_page
from rules.facts.kinds import kind_key
from rules.facts.objects import Pod
from rules.facts.prices import bundled
from rules.findings import Report
from rules.policy import Policy
from tests.benchmarks import big_cluster

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
Result = TypeVar("Result")


class Objects(msgspec.Struct, frozen=True):
    """Decoded objects of a cluster, by kind key."""

    by_kind: Mapping[str, tuple[Any, ...]]
    decode_seconds: float

    def parts(self, pods: tuple[Pod, ...] | None = None) -> dict[str, Any]:
        """Arguments of :meth:`~rules.facts.cluster.FactsBuilder.build`, with other pods if given."""
        others = {kind: items for kind, items in self.by_kind.items() if kind not in ("Node", "Pod", "Event")}
        return {
            "nodes": self.by_kind["Node"],
            "pods": self.by_kind["Pod"] if pods is None else pods,
            "events": self.by_kind.get("Event", ()),
            "others": others,
            "read_kinds": self.by_kind.keys(),
        }


class Figures(msgspec.Struct, frozen=True):
    """CPU seconds.

    Attributes:
        facts, rules: of the whole cluster; facts_again, rules_again: after pods have changed.
        by_rule: of the first time.
        report, report_again: what the rules said.
    """

    decode: float
    facts: float
    rules: float
    facts_again: float
    rules_again: float
    by_rule: Mapping[str, float]
    report: Report
    report_again: Report

    def lines(self, heaviest: int = 10) -> Iterator[str]:
        """The figures for people."""
        parts = ("facts", "rules", "facts_again", "rules_again")
        for part in parts:
            seconds: float = getattr(self, part)
            yield f"{part:12} {seconds * 1000:7.0f} ms, {seconds / self.decode:5.2f} of decoding"
        for rule, seconds in sorted(self.by_rule.items(), key=lambda item: -item[1])[:heaviest]:
            yield f"  {rule:34} {seconds * 1000:7.1f} ms, {seconds / self.rules:5.2f} of all rules"


def read(nodes: int, pods: int) -> Objects:
    """The objects of the big cluster, decoded as those of a live one."""
    found: dict[str, tuple[Any, ...]] = {}
    seconds = 0.0
    for kind, version in big_cluster.API_VERSIONS.items():
        key = kind_key(version, kind)
        items: list[Any] = []
        for page in big_cluster.list_pages(kind, nodes, pods):
            taken, page_seconds = _clocked(lambda page=page, key=key: decode_page(page, key))  # type: ignore[misc]
            items.extend(taken.items)
            seconds += page_seconds
        found[key] = tuple(items)
    return Objects(found, seconds)


def measure(objects: Objects, changes: int) -> Figures:
    """Facts and rules, once for the whole cluster and once after ``changes`` pods have changed."""
    gc.collect()
    gc.freeze()
    try:
        builder = FactsBuilder("big", bundled())
        by_rule: dict[str, float] = {}
        facts, facts_seconds = _clocked(lambda: builder.build(NOW, **objects.parts()))
        report, rule_seconds = _clocked(lambda: evaluate(facts, Policy(), [_timed(rule, by_rule) for rule in RULES]))
        later, moved = NOW + timedelta(minutes=1), changed(objects.by_kind["Pod"], changes)
        second, again_seconds = _clocked(lambda: builder.build(later, **objects.parts(moved)))
        report_again, rules_again_seconds = _clocked(lambda: evaluate(second, Policy(), RULES))
    finally:
        gc.unfreeze()
    return Figures(
        decode=objects.decode_seconds,
        facts=facts_seconds,
        rules=rule_seconds,
        facts_again=again_seconds,
        rules_again=rules_again_seconds,
        by_rule=by_rule,
        report=report,
        report_again=report_again,
    )


def changed(pods: tuple[Pod, ...], count: int) -> tuple[Pod, ...]:
    """The pods, of which ``count`` all over the cluster are new objects."""
    found = list(pods)
    for place in range(0, len(found), max(1, len(found) // max(1, count))):
        metadata = msgspec.structs.replace(found[place].metadata, resourceVersion=str(10**9 + place))
        found[place] = msgspec.structs.replace(found[place], metadata=metadata)
    return tuple(found)


def _timed(rule: Rule, by_rule: dict[str, float]) -> Rule:
    def check(facts: ClusterFacts, policy: Policy) -> Iterator[Yielded]:
        said, by_rule[rule.id] = _clocked(lambda: list(rule.check(facts, policy)))
        yield from said

    return msgspec.structs.replace(rule, check=check)


def _clocked(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def main() -> None:
    """Measure at the size of the goals, or another."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=big_cluster.NODES)
    parser.add_argument("--pods", type=int, default=big_cluster.PODS)
    parser.add_argument("--changes", type=int, default=1_000)
    given = parser.parse_args()
    for line in measure(read(given.nodes, given.pods), given.changes).lines():
        print(line)


if __name__ == "__main__":
    main()
