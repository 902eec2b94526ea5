"""Rules of a team: what they find, what they cannot know, and what is wrong with a rule."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.checks import RULES
from rules.custom import CustomRule, CustomRuleInvalid
from rules.custom.rule import MAX_FINDINGS, compile_rule, compile_rules
from rules.engine import evaluate
from rules.findings import ObjectRef, Severity, SkippedRule, Undecided
from rules.language import LANGUAGES, Language
from rules.policy import Policy
from rules.words import evidence_rows, render
from tests.rules.custom.make import asked, found, rule, spec
from tests.rules.custom.test_facts import FULL, NODE_OBJECT, cluster_of, pod_object
from tests.rules.facts.make import cluster, container, node, other, pod

DRIVER = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/cuda.driver.major": "550",
    "nvidia.com/cuda.driver.minor": "54",
}
KNOWN, UNKNOWN = node("known", DRIVER), node("unknown")
TWO = cluster([KNOWN, UNKNOWN])


@pytest.mark.parametrize(
    ("when", "finds", "undecided"),
    [
        ('node.driver == "550.54"', ["known"], ["unknown"]),
        ('node.driver != "550.54"', [], ["unknown"]),
        ('!(node.driver == "550.54")', [], ["unknown"]),
        ('node.driver.startsWith("5")', ["known"], ["unknown"]),
        ('node.driver in ["550.54"]', ["known"], ["unknown"]),
        ("node.driver.size() > 0", ["known"], ["unknown"]),
        ('node.driver.olderThan("560")', ["known"], ["unknown"]),
        # a side that decides is enough, wherever it stands
        ('node.driver == "1" || node.name == "unknown"', ["unknown"], []),
        ('node.name == "unknown" || node.driver == "1"', ["unknown"], []),
        ('node.driver == "550.54" && node.name == "known"', ["known"], []),
        ('node.name == "known" && node.driver == "550.54"', ["known"], []),
        ('node.driver == "550.54" || node.name == "x"', ["known"], ["unknown"]),
        ('node.name != "x" && node.driver == "550.54"', ["known"], ["unknown"]),
        ('node.name == "known" ? node.driver == "550.54" : true', ["known", "unknown"], []),
        # whether a fact is known can be asked
        ("!has(node.driver)", ["unknown"], []),
        ('has(node.driver) && node.driver == "550.54"', ["known"], []),
        ('(has(node.driver) ? node.driver : "none") == "none"', ["unknown"], []),
    ],
)
def test_unknown_is_neither_true_nor_false(when: str, finds: list[str], undecided: list[str]) -> None:
    report = asked(TWO, when)
    assert sorted(item.objects[0].name for item in report.findings) == finds
    assert report.failed_rules == ()
    expected = (Undecided("team-rule", tuple(ObjectRef("Node", "", name) for name in undecided), ("node.driver",)),)
    assert report.undecided == (expected if undecided else ())


def test_what_is_unknown_is_said_once_per_fact() -> None:
    report = asked(TWO, 'node.driver == "550.54" && node.spot')
    assert [(item.unknown, [ref.name for ref in item.objects]) for item in report.undecided] == [
        (("node.spot",), ["known", "unknown"]),
    ]
    report = asked(TWO, 'node.driver == "550.54" ? node.spot : true')
    assert [(item.unknown, [ref.name for ref in item.objects]) for item in report.undecided] == [
        (("node.spot",), ["known"]),
        (("node.driver",), ["unknown"]),
    ]


def test_an_unknown_item_of_a_list_makes_the_whole_unknown_unless_another_one_decides() -> None:
    assert asked(TWO, "cluster.nodes.all(n, n.driver != 'x')", "cluster").undecided[0].unknown == ("node.driver",)
    assert found(TWO, "cluster.nodes.exists(n, n.driver == '550.54')", "cluster") == [""]
    assert found(TWO, "cluster.nodes.all(n, n.driver == 'x')", "cluster") == []


def test_a_pod_without_a_node_is_not_asked_about_its_node() -> None:
    pods = [pod("runs", on="known"), pod("waits", on=None, phase="Pending"), pod("lost", on="gone")]
    facts = cluster([KNOWN], pods)
    report = asked(facts, "node.driver == '550.54'", "pod")
    assert [item.objects[0].name for item in report.findings] == ["runs"]
    assert [(item.unknown, [ref.name for ref in item.objects]) for item in report.undecided] == [(("node",), ["lost"])]
    assert sorted(found(cluster([KNOWN], pods[:2]), "pod.node == '' || node.driver == '550.54'", "pod")) == [
        "runs",
        "waits",
    ]


def test_finished_pods_are_left_out() -> None:
    facts = cluster([KNOWN], [pod("runs", on="known"), pod("done", on="known", phase="Succeeded")])
    assert found(facts, "true", "pod") == ["runs"]


@pytest.mark.parametrize(
    ("when", "scope", "needs"),
    [
        ("node.ready", "node", ("Node",)),
        ("node.gpu.free > 0", "node", ("Node", "Pod")),
        ("node.pods.size() > 0", "node", ("Node", "Pod")),
        ("cluster.gpu_count > 0", "node", ("Node",)),
        ("pod.gpu.holds", "pod", ("Pod",)),
        ("node.ready", "pod", ("Node", "Pod")),
        ("cluster.gpu_count > 0", "pod", ("Node", "Pod")),
        ("workload.replicas > 0", "workload", ("Pod",)),
        ("cluster.name == 'x'", "cluster", ()),
        ("cluster.pods.size() > 0", "cluster", ("Pod",)),
    ],
)
def test_a_rule_needs_the_kinds_that_its_facts_come_from(when: str, scope: str, needs: tuple[str, ...]) -> None:
    assert rule(when, scope).needs == needs


def test_values_count_for_what_a_rule_needs() -> None:
    assert rule("node.ready", values={"free": "node.gpu.free"}).needs == ("Node", "Pod")


def test_without_these_kinds_the_rule_is_skipped() -> None:
    facts = cluster_of(NODE_OBJECT, read=("Node",))
    assert asked(facts, "node.gpu.free > 0").skipped_rules == (SkippedRule("team-rule", ("Pod",)),)


def test_a_rule_that_fails_on_an_object_names_it_and_goes_on() -> None:
    nodes = [node("a", {"team": "x"}), node("b"), node("c", {"team": "x"}), node("d")]
    report = asked(cluster(nodes), 'node.labels["team"] == "x"')
    assert [item.objects[0].name for item in report.findings] == ["a", "c"]
    [failed] = report.failed_rules
    assert (failed.rule, failed.object) == ("team-rule", ObjectRef("Node", "", "b"))
    assert failed.error == (
        """there is no key 'team'; ask for it first ("team" in ...), or use .get("team", "") (and 1 more: d)"""
    )


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("1 / node.gpu.count > 0", "division by zero"),
        ("node.taints[3].key == ''", "index out of bounds"),
        ("9223372036854775807 + node.gpu.count + 1 > 0", "overflow"),
        ("node.name.olderThan('1.0')", "gave None in place of true or false"),
        ("int(node.name) > 0", "int"),
    ],
)
def test_what_cannot_be_worked_out_is_a_fault_of_the_rule_never_silence(when: str, says: str) -> None:
    report = asked(cluster([node("abc")]), when)
    assert report.findings == ()
    [failed] = report.failed_rules
    assert failed.object == ObjectRef("Node", "", "abc")
    assert says in failed.error.lower() or says in failed.error


def test_numbers_beyond_the_engine_do_not_take_the_audit_down() -> None:
    huge = other("Deployment", "serve", namespace="ml", spec={"replicas": 10**30})
    report = asked(cluster(others={"Deployment": [huge]}), "workload.replicas > 1", "workload")
    assert report.findings[0].value("replicas") == str(10**30)
    assert msgspec.json.encode(report)


def test_a_value_that_is_unknown_is_shown_as_unknown_and_one_that_fails_is_said() -> None:
    report = asked(cluster([node("a")]), "true", values={"driver": "node.driver", "team": "node.labels['team']"})
    [finding] = report.findings
    assert (finding.value("driver"), finding.value("team")) == (None, None)
    assert report.undecided == ()
    assert "`values.team`: there is no key 'team'" in report.failed_rules[0].error


def test_a_rule_that_is_true_of_everything_is_stopped_and_says_so() -> None:
    report = asked(cluster(pods=[pod(f"p{number}") for number in range(MAX_FINDINGS + 5)]), "true", "pod")
    assert len(report.findings) == MAX_FINDINGS
    assert "more than 500 objects" in report.failed_rules[0].error


def test_a_rule_that_would_take_too_long_is_stopped_and_says_so() -> None:
    facts = cluster([node(f"n{number}") for number in range(4000)])
    report = asked(facts, "cluster.nodes.filter(n, n.gpu.present).size() > 3", "cluster")
    assert "too many items" in report.failed_rules[0].error
    assert found(facts, "cluster.nodes.exists(n, n.name == 'n3999')", "cluster") == [""]
    squared = asked(facts, "cluster.nodes.exists(a, cluster.nodes.exists(b, a.name + b.name == 'x'))", "cluster")
    assert "too many items" in squared.failed_rules[0].error


def test_a_finding_shows_what_it_rests_on() -> None:
    report = asked(
        FULL,
        "node.gpu.count >= 8 && node.age_seconds > 3600 && node.labels.team == 'vision'",
        values={
            "price": "node.price_usd_hour",
            "since": "node.created",
            "half": {"value": "node.gpu.count / 2", "unit": "GPU", "label": {"en": "Half of it", "es": "La mitad"}},
            "pods": "node.pods.map(p, p.name)",
            "spare": "node.age_seconds / 2",
            "lived": "cluster.observed_at - node.created",
        },
    )
    [finding] = report.findings
    rows = [(item.name, item.value, item.unit, item.source) for item in finding.evidence]
    price = FULL.nodes[0].price
    assert price is not None
    assert rows == [
        ("node", "gpu-1", "", None),
        ("cluster", "prod", "", None),
        ("gpu_count", 8, "", "node.gpu.count"),
        ("age_seconds", 172800, "s", "node.age_seconds"),
        ("price", price.usd_hour, "USD/h", "node.price_usd_hour"),
        ("since", "2026-11-28T09:00:00Z", "date", "node.created"),
        ("half", 4, "GPU", "node.gpu.count / 2"),
        ("pods", ["train-1"], "", "node.pods.map(p, p.name)"),
        ("spare", 86400, "", "node.age_seconds / 2"),
        ("lived", 172800, "s", "cluster.observed_at - node.created"),
    ]
    labels = {row.text: row.label for row in evidence_rows(finding, "es")}
    assert (labels["4 GPU"], labels["8"]) == ("La mitad", "node.gpu.count")
    assert evidence_rows(finding, "it")[6].label == "Half of it"


@pytest.mark.parametrize(
    ("language", "title"), [("en", "Node gpu-1 has 8"), ("es", "El nodo gpu-1 tiene 8"), ("it", "Node gpu-1 has 8")]
)
def test_words_are_shown_in_english_where_the_team_has_no_others(language: Language, title: str) -> None:
    report = asked(
        FULL,
        "node.gpu.count > 1",
        title={"en": "Node {node} has {gpu_count}", "es": "El nodo {node} tiene {gpu_count}"},
        detail="In cluster {cluster}.",
    )
    said = render(report.findings[0], language)
    assert (said.title, said.summary, said.remedy) == (title, "In cluster prod.", "Mend it.")


def test_long_names_never_break_the_line_of_the_title() -> None:
    facts = cluster([node("n" * 250)])
    for language in LANGUAGES:
        assert len(render(asked(facts, "true", title="Node {node} is here").findings[0], language).title) <= 80


def test_the_same_trouble_keeps_its_fingerprint_when_numbers_and_words_change() -> None:
    one = asked(FULL, "node.gpu.count > 1").findings[0]
    other = asked(FULL, "node.gpu.count > 2", title="Other words", severity="high", values={"x": "1"}).findings[0]
    assert one.fingerprint == other.fingerprint
    assert (one.severity, other.severity) == (Severity.MEDIUM, Severity.HIGH)
    assert asked(FULL, "true", id="other-rule").findings[0].fingerprint != one.fingerprint


def test_a_workload_keeps_its_fingerprint_while_its_pods_come_and_go() -> None:
    marks = {
        asked(cluster_of(pods=(pod_object(name),)), "workload.pods.size() > 0", "workload").findings[0].fingerprint
        for name in ("train-1", "train-2")
    }
    assert len(marks) == 1


def test_a_rule_explains_itself() -> None:
    compiled = rule("node.ready", why="Because we pay.", source="https://wiki.example/gpu", family="billing")
    assert (compiled.family, compiled.severity, compiled.seeds) == ("billing", Severity.MEDIUM, ())
    for words in ("What:", "node.ready", "Why:", "Because we pay.", "Fix:", "Mend it.", "https://wiki.example/gpu"):
        assert words in compiled.doc
    assert compiled.words is not None
    assert compiled.words.name.es == "Team rule"


@pytest.mark.parametrize(
    ("fields", "path", "says"),
    [
        ({"when": "node.lables"}, "when", "column 6: there is no fact 'lables'; did you mean 'labels'?"),
        ({"when": "node.name"}, "when", "must be true or false; this is of type string"),
        ({"when": "node"}, "when", "must be true or false"),
        ({"values": {"x": "node.drivr"}}, "values.x", "did you mean 'driver'?"),
        ({"values": {"x": {"value": "node.drivr"}}}, "values.x.value", "did you mean 'driver'?"),
        ({"values": {"x": "node.gpu"}}, "values.x", "name one of its facts: present, count"),
        ({"values": {"x": "node.labels"}}, "values.x", "a text, a number or a list, not a map of string"),
        ({"values": {"x": "node.pods"}}, "values.x", "not a list of pod"),
        ({"values": {"x": "null"}}, "values.x", "not a null"),
        ({"values": {"node": "1"}}, "values.node", "'node' is there already"),
        ({"values": {"cluster": "1"}}, "values.cluster", "'cluster' is there already"),
        ({"values": {f"x{number}": "1" for number in range(30)}}, "values", "20 are the most"),
        ({"title": "Node {nod}"}, "title", "no value 'nod' to put in place of {nod}; did you mean 'node'?"),
        ({"detail": {"en": "x", "it": "{prezzo}"}}, "detail", "no value 'prezzo'"),
        ({"remedy": "{pod}"}, "remedy", "values of this rule: cluster, gpu_count, node"),
        ({"title": "x" * 81}, "title", "longer than 80 characters"),
        ({"title": " "}, "title", "is empty"),
        ({"title": "a\nb"}, "title", "single line"),
        ({"name": "x" * 61}, "name", "longer than 60 characters"),
        ({"detail": "x" * 1001}, "detail", "longer than 1000 characters"),
        ({"id": "idle-gpu-node"}, "id", "there is already a rule 'idle-gpu-node'; take another id"),
    ],
)
def test_a_rule_that_cannot_be_used_says_what_and_where(fields: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(CustomRuleInvalid) as caught:
        compile_rule(spec(**{"when": "node.gpu.count > 1", **fields}), [item.id for item in RULES])
    assert ".".join(map(str, caught.value.path)) == path
    assert says in str(caught.value)
    assert caught.value.rule in str(caught.value)


def test_braces_of_commands_are_left_alone() -> None:
    command = """`kubectl get node {node} -o jsonpath='{.metadata.labels}' -p '{"spec":{}}'`"""
    said = render(asked(FULL, "true", remedy=command).findings[0], "en")
    assert said.remedy == command.replace("{node}", "gpu-1")


@pytest.mark.parametrize("id_", ["", "A", "with_underscore", "-a", "a-", "a b", "x" * 61, "é", "a\n"])
def test_ids_are_in_kebab_case(id_: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        spec("true", id=id_)


def test_two_rules_cannot_have_one_id() -> None:
    with pytest.raises(CustomRuleInvalid, match="already a rule"):
        compile_rules([spec("true"), spec("false")])
    assert [item.id for item in compile_rules([spec("true"), spec("true", id="other")])] == ["team-rule", "other"]


def test_the_policy_holds_for_rules_of_the_team_as_well() -> None:
    policy = msgspec.convert(
        {
            "severity": {"team-rule": "critical"},
            "exemptions": [{"rules": ["team-*"], "name": "b", "reason": "x", "until": "2026-12-31"}],
        },
        Policy,
    )
    facts = cluster([node("a"), node("b")])
    report = evaluate(facts, policy, [rule("true"), rule("true", id="other-rule")])
    assert [(item.rule, item.severity, item.objects[0].name) for item in report.findings] == [
        ("team-rule", "critical", "a"),
        ("other-rule", "medium", "a"),
        ("other-rule", "medium", "b"),
    ]
    assert [(item.finding.rule, item.finding.objects[0].name) for item in report.exempted] == [("team-rule", "b")]
    off = evaluate(facts, Policy(disabled_rules=frozenset({"team-rule"})), [rule("true")])
    assert (off.findings, off.disabled_rules) == ((), ("team-rule",))


_TEXTS = st.text(max_size=20) | st.sampled_from(["{node}", "{gpu_count:a|b}", "{", "x {x} y", "{node:#|#}", "\n"])


@given(
    st.fixed_dictionaries(
        {
            "id": st.from_regex(r"\A[a-z]{1,5}\Z"),
            "scope": st.sampled_from(["node", "pod", "workload", "cluster"]),
            "when": st.sampled_from(["true", "cluster.name == 'x'", "node.ready", "1 / 0 > 1"]) | st.text(max_size=10),
            "title": _TEXTS,
            "detail": _TEXTS,
            "remedy": _TEXTS,
            "values": st.dictionaries(
                st.sampled_from(["x", "node", "price"]),
                st.sampled_from(["1", "cluster.name", "node.driver", "[1.0/0.0]", "duration('1h')", "x"]),
            ),
        }
    )
)
def test_no_rule_raises_anything_but_the_typed_error_nor_takes_an_audit_down(given: dict[str, Any]) -> None:
    written = msgspec.convert(given, CustomRule)
    try:
        compiled = compile_rule(written)
    except CustomRuleInvalid:
        return
    report = evaluate(cluster([KNOWN], [pod("p", container({"nvidia.com/gpu": "1"}))]), Policy(), [compiled])
    assert not any("Internal" in item.error for item in report.failed_rules)
    for finding in report.findings:
        for language in LANGUAGES:
            render(finding, language)
            evidence_rows(finding, language)
    assert msgspec.json.encode(report)


def test_one_rule_may_judge_several_clusters_at_once() -> None:
    compiled = rule("node.driver == '550.54' && node.pods.size() == 0")

    def judged(number: int) -> list[str]:
        facts = cluster([node(f"n{number}-{index}", DRIVER) for index in range(50)])
        report = evaluate(facts, Policy(), [compiled])
        assert report.failed_rules == ()
        return [item.objects[0].name for item in report.findings]

    with ThreadPoolExecutor(8) as pool:
        for number, names in enumerate(pool.map(judged, range(64))):
            assert len(names) == 50
            assert all(name.startswith(f"n{number}-") for name in names)
