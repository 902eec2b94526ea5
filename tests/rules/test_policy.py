"""The team's word on findings: switched off, another severity, exempted. Nothing disappears without a trace."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest

from rules.engine import Root, Rule, Symptom, Yielded, evaluate
from rules.exemptions import EXEMPT, REASON, UNTIL
from rules.facts.cluster import ClusterFacts, build
from rules.facts.objects import Node, OtherObject, Pod
from rules.facts.prices import PriceBook
from rules.findings import Evidence, Finding, ObjectRef, Report, Severity
from rules.policy import Exemption, Policy

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
KEPT = {EXEMPT: "idle", REASON: "kept warm", UNTIL: "2026-12-31"}
NODE_A, NODE_B = ObjectRef("Node", "", "a"), ObjectRef("Node", "", "b")
POD = ObjectRef("Pod", "ml", "train-1")
OTHER_POD = ObjectRef("Pod", "ml", "train-2")
SHOP_POD = ObjectRef("Pod", "shop", "web")
JOB = ObjectRef("Job", "ml", "train")


def node(name: str, annotations: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None) -> Node:
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations, "labels": labels}}, Node)


def pod(ref: ObjectRef, annotations: Mapping[str, str] | None = None, owner: str = "Job/train") -> Pod:
    kind, _, name = owner.partition("/")
    owners = [{"kind": kind, "name": name, "controller": True}] if owner else []
    metadata = {
        "name": ref.name,
        "namespace": ref.namespace,
        "annotations": annotations,
        "ownerReferences": owners,
        "labels": {"pod-template-hash": "abc", "app": ref.name},
    }
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}, Pod)


def other(kind: str, name: str, annotations: Mapping[str, str] | None = None, owner: str = "") -> OtherObject:
    owner_kind, _, owner_name = owner.partition("/")
    owners = [{"kind": owner_kind, "name": owner_name, "controller": True}] if owner else None
    metadata = {"name": name, "namespace": "ml", "annotations": annotations, "ownerReferences": owners}
    return msgspec.convert({"kind": kind, "metadata": metadata}, OtherObject)


def facts(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    others: Mapping[str, Iterable[OtherObject]] | None = None,
    now: datetime = NOW,
) -> ClusterFacts:
    return build(
        "prod",
        now,
        nodes=nodes or [node("a", labels={"pool": "warm"}), node("b")],
        pods=pods or [pod(POD), pod(OTHER_POD), pod(SHOP_POD, owner="")],
        others=others,
        read_kinds={"Node", "Pod"},
        prices=PriceBook(),
    )


def finding(*objects: ObjectRef, severity: Severity = Severity.MEDIUM, identity: str = "") -> Finding:
    return Finding(rule="", severity=severity, objects=objects, evidence=(Evidence("hours", 1),), identity=identity)


def rule(rule_id: str, *items: Yielded) -> Rule:
    return Rule(
        id=rule_id,
        family="health",
        severity=Severity.MEDIUM,
        seeds=(),
        needs=("Node",),
        check=lambda _facts, _policy: items,
        doc="",
    )


def exemption(**fields: Any) -> Exemption:
    return msgspec.convert({"rules": ["idle"], "reason": "kept warm", "until": date(2026, 12, 31), **fields}, Exemption)


def report(
    *exemptions: Exemption,
    rules: Sequence[Rule] | None = None,
    about: Iterable[ObjectRef] = (NODE_A,),
    cluster: ClusterFacts | None = None,
    **policy: Any,
) -> Report:
    chosen = rules or [rule("idle", finding(*about))]
    return evaluate(cluster or facts(), Policy(exemptions=exemptions, **policy), chosen)


def test_a_rule_that_is_switched_off_is_named() -> None:
    said = report(disabled_rules=frozenset({"idle", "no-such"}))
    assert (said.findings, said.disabled_rules) == ((), ("idle",))


def test_the_severity_that_the_team_wants_is_taken_and_the_usual_one_kept() -> None:
    [changed] = report(severity={"idle": Severity.INFO}).findings
    assert (changed.severity, changed.usual_severity) == (Severity.INFO, Severity.MEDIUM)
    [same] = report(severity={"idle": Severity.MEDIUM, "other": Severity.HIGH}).findings
    assert (same.severity, same.usual_severity) == (Severity.MEDIUM, None)
    assert same.fingerprint == changed.fingerprint


def test_the_severity_that_the_team_wants_stays_where_a_symptom_would_make_it_heavier() -> None:
    rules = [
        rule("driver", finding(NODE_A, severity=Severity.LOW)),
        rule("pending", Symptom(finding(POD, severity=Severity.HIGH), (Root(NODE_A, ("driver",)),), (POD,))),
    ]
    [usual] = report(rules=rules).findings
    assert usual.severity == Severity.HIGH
    [fixed] = report(rules=rules, severity={"driver": Severity.LOW}).findings
    assert (fixed.severity, fixed.usual_severity) == (Severity.LOW, Severity.HIGH)
    [lighter] = report(rules=rules, severity={"pending": Severity.INFO}).findings
    assert lighter.severity == Severity.LOW


@pytest.mark.parametrize(
    ("selector", "about", "hidden"),
    [
        ({}, (NODE_A,), True),
        ({"rules": ["id*"]}, (NODE_A,), True),
        ({"rules": ["other", "i?le"]}, (NODE_A,), True),
        ({"rules": ["other"]}, (NODE_A,), False),
        ({"rules": ["*"], "kind": "Node"}, (NODE_A,), True),
        ({"kind": "Node"}, (NODE_A,), True),
        ({"kind": "Pod"}, (NODE_A,), False),
        ({"name": "a"}, (NODE_A,), True),
        ({"name": "[ab]"}, (NODE_A,), True),
        ({"name": "b"}, (NODE_A,), False),
        ({"namespace": "ml"}, (POD,), True),
        ({"namespace": "m*"}, (POD, OTHER_POD), True),
        ({"namespace": "shop"}, (POD,), False),
        ({"namespace": "ml"}, (NODE_A,), False),
        ({"labels": {"pool": "warm"}}, (NODE_A,), True),
        ({"labels": {"pool": "warm", "more": "x"}}, (NODE_A,), False),
        ({"labels": {"pool": "warm"}}, (NODE_B,), False),
        ({"labels": {"app": "train-1"}}, (POD,), True),
        ({"cluster": "pr*"}, (NODE_A,), True),
        ({"cluster": "test"}, (NODE_A,), False),
        # what it is about: the first object and others of its kind; what is only mentioned does not count
        ({"name": "a"}, (NODE_A, NODE_B), False),
        ({"name": "?"}, (NODE_A, NODE_B), True),
        ({"name": "a"}, (NODE_A, POD), True),
        ({"kind": "Node"}, (POD, NODE_A), False),
        ({"namespace": "ml"}, (POD, SHOP_POD), False),
        # about the cluster as a whole
        ({}, (), True),
        ({"kind": "Node"}, (), False),
    ],
)
def test_an_exemption_hides_what_its_selector_fits(
    selector: Mapping[str, Any], about: tuple[ObjectRef, ...], hidden: bool
) -> None:
    said = report(exemption(**selector), about=about)
    assert len(said.findings) == (not hidden)
    assert len(said.exempted) == hidden
    if hidden:
        [gone] = said.exempted
        assert (gone.reason, gone.until, gone.by) == ("kept warm", "2026-12-31", "policy.exemptions[0]")
        assert gone.finding.objects == about
    assert said.exemption_troubles == ()


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (datetime(2026, 11, 29, 23, tzinfo=UTC), True),
        (datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 12, 1, 0, 0, tzinfo=UTC), False),
        (datetime(2027, 6, 1, tzinfo=UTC), False),
    ],
)
def test_an_exemption_holds_through_its_last_day_and_is_said_afterwards(now: datetime, holds: bool) -> None:
    said = report(exemption(until=date(2026, 11, 30)), cluster=facts(now=now))
    if holds:
        assert (said.findings, said.exemption_troubles) == ((), ())
        return
    [back] = said.findings
    [note] = back.notes
    assert (note.key, [value.value for value in note.values]) == ("exemption_ended", ["2026-11-30", "kept warm"])
    [trouble] = said.exemption_troubles
    assert (trouble.by, trouble.problem, trouble.findings) == ("policy.exemptions[0]", "ended", (back.fingerprint,))


def test_an_ended_exemption_is_said_also_where_it_would_hide_nothing() -> None:
    ended = exemption(rules=["other"], until=date(2026, 1, 1))
    [trouble] = report(ended).exemption_troubles
    assert (trouble.problem, trouble.findings) == ("ended", ())
    assert report(msgspec.structs.replace(ended, cluster="elsewhere")).exemption_troubles == ()


def test_one_working_exemption_is_enough() -> None:
    ended = exemption(until=date(2026, 1, 1))
    said = report(ended, exemption(reason="still needed"))
    assert (said.findings, said.exempted[0].reason) == ((), "still needed")
    assert [trouble.by for trouble in said.exemption_troubles] == ["policy.exemptions[0]"]


def test_an_exempted_root_goes_on_explaining_its_symptoms() -> None:
    rules = [
        rule("idle", finding(NODE_A)),
        rule("pending", Symptom(finding(POD), (Root(NODE_A, ("idle",)),), (POD,))),
    ]
    said = report(exemption(), rules=rules)
    assert said.findings == ()
    assert said.exempted[0].finding.objects == (NODE_A, POD)


def test_an_exempted_symptom_is_none_of_its_root() -> None:
    rules = [
        rule("driver", finding(NODE_A, severity=Severity.LOW)),
        rule("pending", Symptom(finding(POD, severity=Severity.HIGH), (Root(NODE_A, ("driver",)),), (POD,))),
    ]
    said = report(exemption(rules=["pending"], namespace="ml"), rules=rules)
    [root] = said.findings
    assert (root.objects, root.severity) == ((NODE_A,), Severity.LOW)
    assert [(item.finding.rule, item.finding.objects) for item in said.exempted] == [("pending", (POD,))]


@pytest.mark.parametrize(
    ("annotations", "hidden", "problem"),
    [
        (KEPT, True, None),
        ({**KEPT, EXEMPT: "other, idle"}, True, None),
        ({**KEPT, EXEMPT: "other idle"}, True, None),
        ({**KEPT, EXEMPT: "id*"}, True, None),
        ({**KEPT, EXEMPT: "*"}, True, None),
        ({**KEPT, UNTIL: "2026-11-30"}, True, None),
        ({**KEPT, UNTIL: "2026-11-30T09:00:01Z"}, True, None),
        ({**KEPT, UNTIL: "2026-11-30T11:00:00+01:00"}, True, None),
        ({**KEPT, UNTIL: "2026-11-30T09:00:00Z"}, False, "ended"),
        ({**KEPT, UNTIL: "2026-11-29"}, False, "ended"),
        ({**KEPT, UNTIL: "9999-12-31"}, True, None),
        ({**KEPT, UNTIL: "next week"}, False, "end-unreadable"),
        ({**KEPT, UNTIL: "2026-13-01"}, False, "end-unreadable"),
        ({**KEPT, UNTIL: "2026-12-31T10:00:00"}, False, "end-unreadable"),
        ({**KEPT, UNTIL: ""}, False, "no-end"),
        ({**KEPT, REASON: " "}, False, "no-reason"),
        ({EXEMPT: "idle"}, False, "no-reason"),
        ({**KEPT, EXEMPT: "idel"}, False, "no-such-rule"),
        ({**KEPT, EXEMPT: ""}, False, "no-such-rule"),
        ({**KEPT, EXEMPT: "other"}, False, None),
        ({REASON: "x", UNTIL: "2026-12-31"}, False, None),
    ],
)
def test_an_annotation_exempts_its_object(annotations: Mapping[str, str], hidden: bool, problem: str | None) -> None:
    rules = [rule("idle", finding(NODE_A)), rule("other")]
    said = report(rules=rules, cluster=facts([node("a", annotations), node("b")]))
    assert (len(said.findings), len(said.exempted)) == (not hidden, hidden)
    assert [trouble.problem for trouble in said.exemption_troubles] == ([problem] if problem else [])
    if hidden:
        assert (said.exempted[0].by, said.exempted[0].reason) == ("annotations of Node/a", "kept warm")
    if problem in ("no-reason", "no-end", "end-unreadable"):
        assert said.findings[0].notes[0].key == "exemption_broken"


def test_an_annotation_of_the_workload_exempts_its_pods() -> None:
    jobs = {"Job": [other("Job", "train", KEPT)]}
    assert report(about=(POD, OTHER_POD), cluster=facts(others=jobs)).exempted[0].by == "annotations of Job/ml/train"
    # a Job of a CronJob, a ReplicaSet of a Deployment
    scheduled = {
        "Job": [other("Job", "train", owner="CronJob/nightly")],
        "CronJob": [other("CronJob", "nightly", KEPT)],
    }
    assert report(about=(POD,), cluster=facts(others=scheduled)).exempted
    deployed = facts(
        pods=[pod(POD, owner="ReplicaSet/web-abc")], others={"Deployment": [other("Deployment", "web", KEPT)]}
    )
    assert report(about=(POD,), cluster=deployed).exempted
    assert report(about=(SHOP_POD,), cluster=facts(others=jobs)).findings


def test_an_annotation_that_all_pods_of_a_workload_have_exempts_the_workload() -> None:
    every = facts(pods=[pod(POD, KEPT), pod(OTHER_POD, KEPT)])
    assert report(about=(JOB,), cluster=every).exempted
    one_only = facts(pods=[pod(POD, KEPT), pod(OTHER_POD)])
    assert report(about=(JOB,), cluster=one_only).findings
    assert report(about=(POD, OTHER_POD), cluster=one_only).findings
    assert report(about=(POD,), cluster=one_only).exempted


def test_what_the_pods_of_a_workload_repeat_is_said_once() -> None:
    broken = {EXEMPT: "idle"}
    pods = [pod(POD, broken), pod(OTHER_POD, broken), pod(SHOP_POD, broken, owner="")]
    said = report(about=(POD,), cluster=facts(pods=pods))
    assert [trouble.by for trouble in said.exemption_troubles] == [
        "annotations of Pod/ml/train-1",
        "annotations of Pod/shop/web",
    ]


def test_an_annotation_of_a_workload_that_does_not_work_is_said() -> None:
    said = report(cluster=facts(others={"Job": [other("Job", "train", {EXEMPT: "idle"})]}))
    assert [(item.by, item.problem) for item in said.exemption_troubles] == [
        ("annotations of Job/ml/train", "no-reason")
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rules": ["*"]}, "exempt everything"),
        ({"rules": ["idle", "**"]}, "exempt everything"),
        ({"rules": []}, "length >= 1"),
        ({"reason": " "}, "matching regex"),
        ({"until": "soon"}, "Invalid RFC3339"),
        ({"untill": "2026-12-31"}, "unknown field"),
    ],
)
def test_an_exemption_that_is_too_wide_or_lacks_its_reason_is_refused(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=expected.replace("*", r"\*")):
        exemption(**fields)
    for missing in ("reason", "until", "rules"):
        given = {"rules": ["idle"], "reason": "x", "until": date(2026, 12, 31)}
        del given[missing]
        with pytest.raises(msgspec.ValidationError, match=missing):
            msgspec.convert(given, Exemption)


def test_a_report_with_everything_in_it_survives_the_database() -> None:
    said = report(exemption(), exemption(until=date(2026, 1, 1)), severity={"idle": Severity.LOW})
    assert msgspec.convert(msgspec.to_builtins(said), Report) == said
