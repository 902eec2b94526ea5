"""Expressions: what they may say, and that a wrong one says where it is wrong and what would be right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.custom.errors import ExpressionInvalid
from rules.custom.expression import Expression
from rules.custom.functions import FUNCTIONS, MACROS, older_than
from rules.custom.shapes import SHAPES, VARIABLES
from rules.custom.syntax import MAX_DEPTH, MAX_LENGTH
from rules.custom.types import spelled

WRONG = [
    # (scope, expression, place, words of the message)
    ("node", "node.lables.team == 'x'", "column 6", "no fact 'lables'; did you mean 'labels'? facts of a node: age_"),
    ("node", "nod.name == 'x'", "column 1", "no 'nod' here; did you mean 'node'? names of scope node: cluster, node"),
    ("node", "zzz", "column 1", "there is no 'zzz' here; names of scope node: cluster, node"),
    ("pod", "workload.name == ''", "column 1", "names of scope pod: cluster, node, pod"),
    ("node", "node.gpu.cuont > 1", "column 10", "did you mean 'count'?"),
    ("node", "node.gpu.present &&\n  node.ready &&\n  node.drver == ''", "line 3, column 8", "did you mean 'driver'?"),
    ("node", "node.pods.exists(p, p.gpu.request > 1)", "column 27", "did you mean 'requested'?"),
    ("node", "node.driver.older_than('5')", "column 13", "no function 'older_than'; did you mean 'olderThan'?"),
    ("node", "lower(node.name) == 'a'", "column 1", "there is no function 'lower'"),
    ("node", "olderThan(node.driver, '5')", "column 1", "olderThan is written x.olderThan(...)"),
    ("node", "node.gpu.count.string() == ''", "column 16", "string is written string(x)"),
    ("node", "cluster.nodes.size() > 3", "column 9", "cluster.nodes is there in scope cluster only"),
    ("node", "node.driver == null", "column 16", "no fact is ever null"),
    ("node", "node.name == 3", "column 11", "a string is never equal to an int"),
    ("node", "node.gpu == node.gpu", "column 6", "this is a whole node.gpu; name one of its facts"),
    ("node", "node.name > 3", "column 11", "have no order"),
    ("node", "node.ready && node.name", "column 20", "must be true or false; this is a string"),
    ("node", "!node.name", "column 1", "cannot stand before a string"),
    ("node", "node.gpu.count * 1.5 > 3.0", "column 16", "write double(...) around the int"),
    ("node", "node.name in 'abc'", "column 14", "for texts there is contains()"),
    ("node", "3 in node.images", "column 11", "no fact 'images'"),
    ("pod", "3 in pod.images", "column 3", "an int is never in a list of string"),
    ("pod", "3 in pod.labels", "column 1", "keys are strings"),
    ("pod", "pod.images['a'] == ''", "column 12", "a place in a list is a whole number"),
    ("node", "node['name'] == ''", "column 1", "named with a dot"),
    ("node", "node.name.first == ''", "column 11", "a string has no part 'first'"),
    ("node", "has(node)", "column 1", "has(...) takes one fact"),
    ("node", "node.pods.exists(p.name == 'a')", "column 11", "list.exists(item, ...)"),
    ("node", "node.pods.all(node, true)", "column 15", "already names something"),
    ("node", "node.name.exists(c, true)", "column 11", "goes over lists and maps, not over a string"),
    ("node", "node.pods.filter(p, p.name).size() > 0", "column 23", "condition of filter must be true or false"),
    ("node", "node.ready ? 1 : 'a'", "column 18", "both sides of : must be of one type"),
    ("node", "node.labels.get('team', 3) == ''", "column 13", "get takes"),
    ("node", "node.name.startsWith(3)", "column 11", "startsWith takes (string, string), not (string, int)"),
    ("node", "[1, 'a'].size() > 0", "column 5", "a list of int cannot hold a string"),
    ("node", "node.name.matches('(((')", "column 19", "not a valid regex"),
    ("node", "node.name.matches(node.pool)", "column 24", "the pattern must be written out"),
    ("node", "node.name.matches('(a{200}){200}')", "column 19", "the pattern is too large"),
    ("node", "node.driver.olderThan('newest')", "column 23", "'newest' is not a version"),
    ("node", "node.created < timestamp('yesterday')", "column 26", "timestamp"),
    ("node", "node.created - node.created > duration('1d')", "column 40", "duration"),
    ("node", "node.name = 'a'", "column 11", "compare with =="),
    ("node", "node.ready & node.cordoned", "column 12", "and is &&"),
    ("node", "node.name == 'a", "column 14", "no closing quote"),
    ("node", "node.gpu.count >", "column 17", "the expression ends too early"),
    ("node", "(node.ready", "column 12", "the expression ends too early"),
    ("node", "node.ready)", "column 11", "')' was not expected here"),
    ("node", "node.ready node.cordoned", "column 12", "'node' was not expected here"),
    ("node", "", "column 1", "the expression is empty"),
    ("node", "  // nothing but a comment", "column 1", "the expression is empty"),
    ("node", "node.name == b'a'", "column 14", "bytes are not supported"),
    ("node", "node.Type{a: 1} == 1", "column 10", "message literals are not supported"),
    ("node", "99999999999999999999 > node.gpu.count", "column 1", "invalid int literal"),
    ("node", "if == 1", "column 1", "there is no 'if' here"),
    ("node", "(" * 30 + "true" + ")" * 30, f"column {MAX_DEPTH + 1}", "levels deep"),
    ("node", "!" * 40 + "true", f"column {MAX_DEPTH + 1}", "signs in a row"),
    ("node", "true" + " && true" * 300, f"column {MAX_LENGTH + 1}", f"{MAX_LENGTH} are the most"),
    (
        "cluster",
        "cluster.nodes.all(a, a.pods.all(b, b.images.all(c, c.matches('x') || b.images.all(d, d == c))))",
        "column 79",
        "more than 3 macros in each other",
    ),
]


@pytest.mark.parametrize(("scope", "text", "place", "words"), WRONG, ids=[text[:40] for _, text, _, _ in WRONG])
def test_a_wrong_expression_says_where_it_is_wrong_and_what_would_be_right(
    scope: str, text: str, place: str, words: str
) -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        Expression(text, scope)
    assert words in str(caught.value)
    assert caught.value.place == place


def test_the_excerpt_points_at_the_mistake() -> None:
    with pytest.raises(ExpressionInvalid) as caught:
        Expression("node.ready &&\n\tnode.lables.team == 'x'", "node")
    line, mark = caught.value.excerpt.split("\n")
    assert line[mark.index("^") :].startswith("lables")
    long = "node.ready" + " && node.ready" * 20 + " && node.lables"
    with pytest.raises(ExpressionInvalid) as caught:
        Expression(long, "node")
    line, mark = caught.value.excerpt.split("\n")
    assert len(line) <= 104
    assert line[mark.index("^") :] == "lables"


_OPERATORS = ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in")
_WORDS = [
    *("node", "pod", "cluster", "workload", "x", "p", "has", "in", "true", "null", "if", "size", "for"),
    *FUNCTIONS,
    *MACROS,
    *{fact for shape in SHAPES for fact in shape.facts},
    *(".", ",", "(", ")", "[", "]", "{", "}", "?", ":", "!", "=", "&", "|"),
    *_OPERATORS,
    *("1", "1.5", "1u", "0x1f", "1e9", "99999999999999999999", '"a"', "'b'", 'r"\\d"', '"""x"""', '"\\n"', "b'a'"),
    *(" ", "\n", "// c\n", "`", "\\", '"', "'", "#", "@", "é", "\x00", "😀"),
]


@given(st.lists(st.sampled_from(_WORDS), max_size=25).map("".join), st.sampled_from(sorted(VARIABLES)))
def test_no_expression_raises_anything_but_the_typed_error(text: str, scope: str) -> None:
    _loads_or_is_refused(text, scope)


@given(st.lists(st.sampled_from(_WORDS), max_size=25).map(" ".join), st.sampled_from(sorted(VARIABLES)))
def test_no_row_of_words_raises_anything_but_the_typed_error(text: str, scope: str) -> None:
    _loads_or_is_refused(text, scope)


@given(st.text(max_size=60))
def test_no_text_raises_anything_but_the_typed_error(text: str) -> None:
    _loads_or_is_refused(text, "node")


@given(
    st.sampled_from(["(", "[", "{", "!", "-", "a.", "a(", "a[", "1?", "1?1:", "[1].map(x,", "{'a':", "1+", '"', "//"])
)
def test_no_depth_raises_anything_but_the_typed_error(start: str) -> None:
    for times in (10, 300, 5000):
        _loads_or_is_refused(start * times, "node")


def _loads_or_is_refused(text: str, scope: str) -> None:
    refusal: ExpressionInvalid | None = None
    try:
        Expression(text, scope)
    except ExpressionInvalid as error:
        refusal = error
    if refusal is not None:
        assert refusal.problem
        assert refusal.line >= 1
        assert refusal.column >= 1
        assert "\n" in refusal.excerpt


_FACTS = st.sampled_from(
    [
        *("node.name", "node.ready", "node.gpu.count", "node.price_usd_hour", "node.labels", "node.age_seconds"),
        *("node.pods", "node.created", "node.gpu.present", "cluster.gpu_count", "1", "2.5", '"a"', "true", "[1, 2]"),
    ]
)
_EXPRESSIONS = st.recursive(
    _FACTS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(_OPERATORS), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        inner.map(lambda part: f"!{part}"),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"{part}.size()"),
        inner.map(lambda part: f"string({part})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}.exists(x, {parts[1]})"),
    ),
    max_leaves=6,
)


@given(_EXPRESSIONS)
def test_what_passes_the_check_is_never_refused_by_the_engine_for_its_types(text: str) -> None:
    from rules.custom.expression import EvaluationFailed, FactUnknown, context_of
    from tests.rules.custom.test_facts import FULL, variables_of

    try:
        expression = Expression(text, "node")
    except ExpressionInvalid:
        return
    context = context_of(variables_of(expression, FULL))
    try:
        expression.value(context)
    except FactUnknown:
        pytest.fail("everything is known of this node")
    except EvaluationFailed as error:
        said = str(error).lower()
        if not any(word in said for word in ("division by zero", "overflow", "remainder", "modulus")):
            pytest.fail(f"{text}: {error}")


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [
        ("550.54", "550.54.14", True),
        ("550.54.14", "550.54", False),
        ("550.54", "550.54.0", False),
        ("99", "535.1", True),
        ("v1.30.2", "1.31", True),
        ("1.30.2-gke.100", "1.30.2", False),
        ("535.104.05", "535.104.5", False),
        ("", "1", None),
        ("latest", "1", None),
        (3, "1", None),
    ],
)
def test_versions_are_compared_number_by_number(one: object, other: object, older: bool | None) -> None:
    assert older_than(one, other) is older


def test_every_function_of_the_table_is_one_that_the_engine_has() -> None:
    import cel

    from rules.custom.functions import OWN

    samples = {
        "string": '"1"',
        "int": "3",
        "uint": "3u",
        "double": "1.5",
        "list of any": "[1]",
        "list of int": "[1]",
        "list of double": "[1.5]",
        "map of any": '{"a": 1}',
        "any": "1",
        "timestamp": 'timestamp("2026-12-01T00:00:00Z")',
        "duration": 'duration("1h")',
    }
    words = {"timestamp": '"2026-12-01T00:00:00Z"', "duration": '"36h"'}
    for name, function in FUNCTIONS.items():
        for takes, gives in function.overloads:
            arguments = [words.get(name, samples[spelled(item)]) for item in takes]
            if function.style != "method":
                cel.evaluate(f"{name}({', '.join(arguments)})", cel.Context({}, dict(OWN)))
            if function.style != "call":
                value = cel.evaluate(f"{arguments[0]}.{name}({', '.join(arguments[1:])})", cel.Context({}, dict(OWN)))
                kind = {"bool": bool, "int": int, "double": float, "string": str}.get(spelled(gives))
                assert kind is None or isinstance(value, kind)
