"""What evaluating rules promises, whatever the rules say."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from rules.engine import Root, Rule, Symptom, Yielded, evaluate
from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence, FailedRule, Finding, ObjectRef, Severity, SkippedRule, Unreadable
from rules.policy import Policy

NODE_A = ObjectRef("Node", "", "a")
NODE_B = ObjectRef("Node", "", "b")
Check = Callable[[ClusterFacts, Policy], Iterable[Yielded]]


def facts(name: str = "prod", read: Iterable[str] = ("Node", "Pod")) -> ClusterFacts:
    return ClusterFacts(
        name=name,
        observed_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
        nodes=(),
        pods=(),
        events=(),
        others={},
        read_kinds=frozenset(read),
        unreadable=(Unreadable("Event", "forbidden", "events is forbidden"),),
    )


def rule(rule_id: str, check: Check, needs: tuple[str, ...] = ("Node",)) -> Rule:
    return Rule(
        id=rule_id, family="health", severity=Severity.LOW, seeds=("S1",), needs=needs, check=check, doc="What: a test."
    )


def finding(*objects: ObjectRef, severity: Severity = Severity.LOW, identity: str = "", hours: int = 1) -> Finding:
    return Finding(rule="", severity=severity, objects=objects, evidence=(Evidence("hours", hours),), identity=identity)


def says(*items: Yielded) -> Check:
    return lambda _facts, _policy: items


def breaks_at(ref: ObjectRef, *before: Finding | ObjectRef) -> Check:
    def check(_facts: ClusterFacts, _policy: Policy) -> Iterable[Finding | ObjectRef]:
        yield from before
        yield ref
        raise KeyError("spec.template")

    return check


def test_a_rule_that_raises_is_reported_with_its_object_and_the_others_go_on() -> None:
    rules = [
        rule("breaks", breaks_at(NODE_B, NODE_A, finding(NODE_A))),
        rule("works", says(NODE_B, finding(NODE_B))),
    ]
    report = evaluate(facts(), Policy(), rules)
    assert report.failed_rules == (FailedRule("breaks", NODE_B, "KeyError: 'spec.template'"),)
    assert [(item.rule, item.objects) for item in report.findings] == [("breaks", (NODE_A,)), ("works", (NODE_B,))]


def test_a_rule_that_raises_before_it_looks_at_anything_is_reported_without_an_object() -> None:
    def check(_facts: ClusterFacts, _policy: Policy) -> Iterable[Finding | ObjectRef]:
        raise RuntimeError("no data")

    assert evaluate(facts(), Policy(), [rule("breaks", check)]).failed_rules == (
        FailedRule("breaks", None, "RuntimeError: no data"),
    )


def test_a_rule_whose_kinds_were_not_read_is_skipped_not_silent() -> None:
    report = evaluate(facts(read=("Node",)), Policy(), [rule("pods", says(finding(NODE_A)), needs=("Node", "Pod"))])
    assert report.skipped_rules == (SkippedRule("pods", ("Pod",)),)
    assert report.findings == ()


def test_what_could_not_be_read_is_in_the_report() -> None:
    assert [item.kind for item in evaluate(facts(), Policy(), []).unreadable] == ["Event"]


def test_a_disabled_rule_is_neither_run_nor_reported() -> None:
    report = evaluate(facts(), Policy(disabled_rules=frozenset({"off"})), [rule("off", breaks_at(NODE_A))])
    assert not report.failed_rules
    assert not report.findings
    assert not report.skipped_rules


def test_the_same_trouble_with_other_numbers_keeps_its_fingerprint() -> None:
    first = evaluate(facts(), Policy(), [rule("idle", says(finding(NODE_A, hours=1)))]).findings[0]
    later = evaluate(
        facts(), Policy(), [rule("idle", says(finding(NODE_A, hours=99, severity=Severity.HIGH)))]
    ).findings[0]
    assert first.fingerprint == later.fingerprint
    assert first.value("hours") != later.value("hours")


def test_rule_objects_and_cluster_each_make_another_fingerprint() -> None:
    marks = {
        evaluate(facts(cluster), Policy(), [rule(rule_id, says(finding(node)))]).findings[0].fingerprint
        for cluster in ("prod", "test")
        for rule_id in ("idle", "sick")
        for node in (NODE_A, NODE_B)
    }
    assert len(marks) == 8


def test_an_identity_keeps_the_fingerprint_while_objects_come_and_go() -> None:
    first, later = (
        evaluate(facts(), Policy(), [rule("stuck", says(finding(node, identity="Job/ml/train")))]).findings[0]
        for node in (NODE_A, NODE_B)
    )
    assert first.objects != later.objects
    assert first.fingerprint == later.fingerprint


def test_two_findings_for_one_trouble_are_a_fault_of_the_rule() -> None:
    report = evaluate(facts(), Policy(), [rule("twice", says(NODE_A, finding(NODE_A), finding(NODE_A)))])
    assert len(report.findings) == 1
    assert report.failed_rules[0].object == NODE_A


def test_the_heaviest_findings_come_first_and_equal_facts_give_equal_bytes() -> None:
    heavy = finding(NODE_B, severity=Severity.CRITICAL)
    light = finding(NODE_A)
    one = evaluate(facts(), Policy(), [rule("a", says(light)), rule("b", says(heavy))])
    other = evaluate(facts(), Policy(), [rule("b", says(heavy)), rule("a", says(light))])
    assert [item.severity for item in one.findings] == [Severity.CRITICAL, Severity.LOW]
    assert msgspec.json.encode(one) == msgspec.json.encode(other)


POD = ObjectRef("Pod", "ml", "train")
OTHER_POD = ObjectRef("Pod", "ml", "serve")


def waits(pod: ObjectRef, *rules: str, severity: Severity = Severity.LOW) -> Symptom:
    return Symptom(finding(pod, severity=severity), (Root(NODE_A, rules or ("driver",)),), (pod,))


def stands(*rules: Rule, policy: Policy | None = None) -> list[tuple[str, tuple[ObjectRef, ...]]]:
    return [(item.rule, item.objects) for item in evaluate(facts(), policy or Policy(), rules).findings]


def test_a_symptom_joins_the_finding_that_explains_it() -> None:
    rules = [
        rule("driver", says(finding(NODE_A, severity=Severity.MEDIUM))),
        rule("pending", says(waits(POD, severity=Severity.HIGH), waits(OTHER_POD))),
    ]
    [found] = evaluate(facts(), Policy(), rules).findings
    assert (found.rule, found.severity, found.objects) == ("driver", Severity.HIGH, (NODE_A, POD, OTHER_POD))
    [note] = found.notes
    assert (note.key, note.values[0].value) == ("waiting", ["ml/serve", "ml/train"])


def test_what_a_finding_explains_does_not_change_what_it_is() -> None:
    alone = evaluate(facts(), Policy(), [rule("driver", says(finding(NODE_A)))]).findings[0]
    rules = [rule("pending", says(waits(POD))), rule("driver", says(finding(NODE_A)))]
    assert evaluate(facts(), Policy(), rules).findings[0].fingerprint == alone.fingerprint


def test_a_symptom_that_nothing_explains_is_a_finding() -> None:
    about_other = rule("driver", says(finding(NODE_B)))
    pending = rule("pending", says(waits(POD)))
    assert stands(about_other, pending) == [("driver", (NODE_B,)), ("pending", (POD,))]
    of_other_rule = rule("idle", says(finding(NODE_A)))
    assert stands(of_other_rule, pending) == [("idle", (NODE_A,)), ("pending", (POD,))]
    explained = rule("driver", says(finding(NODE_A)))
    assert stands(explained, pending, policy=Policy(disabled_rules=frozenset({"driver"}))) == [("pending", (POD,))]


def test_symptoms_may_hang_on_symptoms() -> None:
    pending = rule("pending", says(waits(POD, "plugin")))
    plugin = rule("plugin", says(Symptom(finding(NODE_A), (Root(NODE_A, ("driver",)),))))
    driver = rule("driver", says(finding(NODE_A)))
    assert stands(pending, plugin, driver) == [("driver", (NODE_A, POD))]
    assert stands(pending, plugin) == [("plugin", (NODE_A, POD))]


def test_of_a_ring_of_symptoms_one_stands() -> None:
    first = rule("a", says(Symptom(finding(NODE_A), (Root(NODE_A, ("b",)),))))
    second = rule("b", says(Symptom(finding(NODE_A, NODE_B), (Root(NODE_A, ("a",)),))))
    assert stands(first, second) == [("b", (NODE_A, NODE_B))]


def test_a_rule_that_judges_objects_alone_speaks_where_some_namespaces_are_read_and_no_other_does() -> None:
    seen = msgspec.structs.replace(facts(read=()), unreadable=(Unreadable("Pod", "outside", "team-a only"),))
    forbidden = msgspec.structs.replace(seen, unreadable=(Unreadable("Pod", "forbidden", "no right"),))
    pod = ObjectRef("Pod", "team-a", "a")
    alone = msgspec.structs.replace(rule("alone", says(pod, finding(pod)), needs=("Node", "Pod")), alone="Pod")
    other = rule("other", says(pod, finding(pod)), needs=("Node", "Pod"))
    report = evaluate(seen, Policy(), [alone, other])
    assert [item.rule for item in report.findings] == ["alone"]
    assert report.skipped_rules == (SkippedRule("other", ("Node", "Pod")),)
    assert evaluate(forbidden, Policy(), [alone, other]).findings == ()
