"""From a rule of the team's own to one that the engine evaluates."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from rules.custom.check import near, plain
from rules.custom.checked import Read
from rules.custom.errors import CustomRuleInvalid, ExpressionInvalid
from rules.custom.expression import EvaluationFailed, Expression, FactUnknown, context_of
from rules.custom.shapes import CLUSTER, NODE, POD, SCOPES, WORKLOAD, Scene, view
from rules.custom.spec import CustomRule, Value, Written, text_of
from rules.custom.types import ANY, BOOL, DURATION, TIMESTAMP, Scalar, Shape, spelled
from rules.engine import Rule, Yielded
from rules.facts.cluster import ClusterFacts
from rules.findings import Evidence, FailedRule, Finding, ObjectRef, OwnWords, Undecided, Unit, name_list
from rules.language import LANGUAGES, Text
from rules.policy import Policy
from rules.words import NAME_BUDGET, TITLE_BUDGET, placeholders, without_placeholders

MAX_VALUES = 20
MAX_FINDINGS = 500
"""Of one rule in one audit: a rule that is true of more than that is about the cluster, not about its objects."""
MAX_STEPS = 5_000_000
"""Of one rule in one audit; a step takes about a microsecond (see :class:`rules.custom.checked.Loop`)."""
LONGEST_TEXT = 300
LONGEST_LIST = 20
_BUDGETS = {"detail": 1000, "remedy": 4000}
_OBJECT_VALUES: Mapping[str, tuple[str, ...]] = {
    "node": ("node",),
    "pod": ("pod", "namespace"),
    "workload": ("workload", "namespace"),
    "cluster": (),
}
_LABELS = {
    "node": Text("Node", "Nodo", "Nodo"),
    "pod": Text("Pod", "Pod", "Pod"),
    "workload": Text("Workload", "Carga de trabajo", "Carico di lavoro"),
    "namespace": Text("Namespace", "Namespace", "Namespace"),
    "cluster": Text("Cluster", "Clúster", "Cluster"),
}


def compile_rule(spec: CustomRule, taken: Iterable[str] = ()) -> Rule:
    """The rule that ``spec`` describes.

    Args:
        taken: ids that other rules have.

    Raises:
        CustomRuleInvalid: what is wrong, where in the rule, and what would be right.
    """
    if spec.id in set(taken):
        raise CustomRuleInvalid(spec.id, ("id",), f"there is already a rule {spec.id!r}; take another id")
    if len(spec.values) > MAX_VALUES:
        raise CustomRuleInvalid(spec.id, ("values",), f"{len(spec.values)} values; {MAX_VALUES} are the most")
    when = _expression(spec, ("when",), spec.when)
    if when.checked.type not in (BOOL, ANY):
        what = spelled(when.checked.type)
        raise CustomRuleInvalid(spec.id, ("when",), f"a condition must be true or false; this is of type {what}")
    values = {name: _value(spec, name, written) for name, written in spec.values.items()}
    reads = _shown(when, {*values, *_OBJECT_VALUES[spec.scope], "cluster"})
    words = _words(spec, reads, values)
    asked = _Question(spec, when, reads, values, words)
    return Rule(
        id=spec.id,
        family=spec.family,
        severity=spec.severity,
        seeds=(),
        needs=asked.needs,
        check=asked.check,
        doc=_doc(spec),
        words=words,
    )


def compile_rules(specs: Iterable[CustomRule], taken: Iterable[str] = ()) -> tuple[Rule, ...]:
    """All of them; see :func:`compile_rule`."""
    used = set(taken)
    rules: list[Rule] = []
    for spec in specs:
        rules.append(compile_rule(spec, used))
        used.add(spec.id)
    return tuple(rules)


def _expression(spec: CustomRule, path: tuple[str | int, ...], text: str) -> Expression:
    try:
        return Expression(text, spec.scope)
    except ExpressionInvalid as error:
        raise CustomRuleInvalid(spec.id, path, str(error), error) from error


class _Shown:
    """A value to show: its expression and unit."""

    def __init__(self, expression: Expression, unit: Unit) -> None:
        self.expression = expression
        self.unit = unit


def _value(spec: CustomRule, name: str, written: str | Value) -> _Shown:
    if name in _OBJECT_VALUES[spec.scope] or name == "cluster":
        raise CustomRuleInvalid(spec.id, ("values", name), f"{name!r} is there already; take another name")
    path: tuple[str | int, ...] = ("values", name) if isinstance(written, str) else ("values", name, "value")
    text = written if isinstance(written, str) else written.value
    expression = _expression(spec, path, text)
    type_ = expression.checked.type
    if not plain(type_):
        hint = ""
        if isinstance(type_, Shape):
            hint = f"; name one of its facts: {', '.join(type_.facts)}"
        raise CustomRuleInvalid(
            spec.id, path, f"people can be shown a text, a number or a list, not a {spelled(type_)}{hint}"
        )
    if isinstance(written, Value) and written.unit is not None:
        return _Shown(expression, written.unit)
    same = [read for read in expression.checked.reads if read.path == text.strip()]
    unit: Any = (
        same[0].unit if same else {DURATION: "s", TIMESTAMP: "date"}.get(type_, "") if isinstance(type_, Scalar) else ""
    )
    return _Shown(expression, unit)


def _shown(when: Expression, taken: set[str]) -> dict[str, Read]:
    """Single facts that the condition names, by the name of their evidence: what a finding rests on."""
    found: dict[str, Read] = {}
    for read in when.checked.reads:
        name = "_".join(read.path.split(".")[1:])
        if read.direct and isinstance(read.type, Scalar) and name not in taken and name not in ("name", "namespace"):
            found.setdefault(name, read)
    return found


def _words(spec: CustomRule, reads: Mapping[str, Read], values: Mapping[str, _Shown]) -> OwnWords:
    labels = {name: _LABELS[name] for name in (*_OBJECT_VALUES[spec.scope], "cluster")}
    labels |= {name: Text(read.path, read.path, read.path) for name, read in reads.items()}
    for name in values:
        written = spec.values[name]
        label = written.label if isinstance(written, Value) and written.label is not None else name.replace("_", " ")
        labels[name] = _text(spec, ("values", name, "label"), label, labels, NAME_BUDGET)
    return OwnWords(
        name=_text(spec, ("name",), spec.name or spec.readable_id[:NAME_BUDGET], {}, NAME_BUDGET),
        title=_text(spec, ("title",), spec.title, labels, TITLE_BUDGET),
        detail=_text(spec, ("detail",), spec.detail, labels, _BUDGETS["detail"]),
        evidence=labels,
        remedies={"default": _text(spec, ("remedy",), spec.remedy, labels, _BUDGETS["remedy"])},
    )


def _text(
    spec: CustomRule, path: tuple[str | int, ...], written: Written, known: Mapping[str, object], budget: int
) -> Text:
    text = text_of(written)
    for language in LANGUAGES:
        said = text.in_(language)
        if not said.strip():
            raise CustomRuleInvalid(spec.id, path, f"the text in {language} is empty")
        if len(without_placeholders(said)) > budget:
            raise CustomRuleInvalid(spec.id, path, f"the text in {language} is longer than {budget} characters")
        if "\n" in said.strip() and budget <= TITLE_BUDGET:
            raise CustomRuleInvalid(spec.id, path, "this must be a single line")
        for name in placeholders(said):
            if name not in known:
                hint = near(name, known, "values of this rule")
                raise CustomRuleInvalid(
                    spec.id, path, f"there is no value {name!r} to put in place of {{{name}}}; {hint}"
                )
    return Text(text.en.strip(), text.es.strip(), text.it.strip())


def _doc(spec: CustomRule) -> str:
    about = {
        "What": f"{text_of(spec.detail).en.strip()}\n\nAsked about {SCOPES[spec.scope]}:\n\n{spec.when.strip()}",
        "Why": spec.why or "A rule of your own.",
        "Fix": text_of(spec.remedy).en.strip(),
        "Source": spec.source or "your settings",
    }
    parts = [text_of(spec.title).en.strip()]
    for heading, text in about.items():
        indented = "\n".join(f"    {line}" if line.strip() else "" for line in text.strip().splitlines())
        parts.append(f"{heading}:\n{indented}")
    return "\n\n".join(parts) + "\n"


class _Question:
    """A compiled rule: what the engine calls."""

    def __init__(
        self,
        spec: CustomRule,
        when: Expression,
        reads: Mapping[str, Read],
        values: Mapping[str, _Shown],
        words: OwnWords,
    ) -> None:
        self._spec = spec
        self._when = when
        self._reads = reads
        self._values = values
        self._words = words
        every = [when, *(item.expression for item in values.values())]
        self._variables = frozenset().union(*(item.checked.variables for item in every))
        self._checked = [item.checked for item in every]
        wanted: dict[str, frozenset[str]] = {}
        for item in every:
            for shape, facts in item.checked.wanted.items():
                wanted[shape] = wanted.get(shape, frozenset()) | facts
        self._wanted = wanted
        own = {"node": "Node", "pod": "Pod", "workload": "Pod"}.get(spec.scope)
        needs = frozenset([own] if own else []).union(*(item.checked.needs for item in every))
        self.needs = tuple(sorted(needs))

    def check(self, facts: ClusterFacts, _policy: Policy) -> Iterator[Yielded]:
        """Ask about every object of the scope.

        One finding per object for which the condition is true. Objects for which it hangs on unknown facts are said
        once per fact; those for which it cannot be evaluated once for all, with the first of them and why.
        """
        run = _Run(facts, self._wanted, "cluster" in self._variables)
        found = 0
        steps = 0.0
        unknown: dict[tuple[str, ...], list[ObjectRef]] = {}
        failed: list[tuple[ObjectRef | None, str]] = []
        for ref, thing in run.things(self._spec.scope):
            if ref is not None:
                yield ref
            lengths = run.lengths(self._spec.scope, thing)
            steps += sum(item.steps(lengths) for item in self._checked)
            if steps > MAX_STEPS:
                failed.insert(0, (ref, _TOO_MUCH_WORK))
                break
            try:
                finding = self._ask(run, ref, thing, failed)
            except FactUnknown as error:
                if self._concerns(thing, error):
                    unknown.setdefault(error.paths, []).extend([ref] if ref else [])
                continue
            except EvaluationFailed as error:
                failed.append((ref, str(error)))
                continue
            if finding is None:
                continue
            found += 1
            if found > MAX_FINDINGS:
                failed.insert(0, (ref, _TOO_MANY_FINDINGS))
                break
            yield finding
        for paths, refs in unknown.items():
            yield Undecided(self._spec.id, tuple(refs), paths)
        if failed:
            yield _failure(self._spec.id, failed)

    def _concerns(self, thing: Any, error: FactUnknown) -> bool:
        """False for a pod that has no node where the rule asks about its node: there is nothing to know."""
        return not (self._spec.scope == "pod" and error.paths == ("node",) and thing.node_name is None)

    def _ask(
        self, run: "_Run", ref: ObjectRef | None, thing: Any, failed: list[tuple[ObjectRef | None, str]]
    ) -> Finding | None:
        variables = run.variables(self._spec.scope, thing)
        context = context_of(variables)
        answer = self._when.value(context)
        if not isinstance(answer, bool):
            raise EvaluationFailed(f"the condition gave {answer!r} in place of true or false")
        if not answer:
            return None
        evidence = [*run.names(self._spec.scope, ref)]
        evidence += [
            Evidence(name, *_presentable(_at(variables, read.path), read.unit or ""), source=read.path)
            for name, read in self._reads.items()
        ]
        for name, shown in self._values.items():
            value: Any = None
            try:
                value = shown.expression.value(context)
            except FactUnknown:
                pass
            except EvaluationFailed as error:
                failed.append((ref, f"`values.{name}`: {error}"))
            evidence.append(Evidence(name, *_presentable(value, shown.unit), source=shown.expression.text.strip()))
        return Finding(
            rule=self._spec.id,
            severity=self._spec.severity,
            objects=(ref,) if ref else (),
            evidence=tuple(evidence),
            words=self._words,
        )


_TOO_MUCH_WORK = (
    "the rule was stopped here: its macros go over too many items in this cluster. exists() and all() are cheaper than "
    "filter() and map(); a rule about each node or pod is cheaper than one that goes through all of them"
)
_TOO_MANY_FINDINGS = (
    f"the rule was stopped here: it is true of more than {MAX_FINDINGS} objects. Narrow it, or ask about workloads or "
    "the cluster in place of pods or nodes"
)


def _failure(rule: str, failed: list[tuple[ObjectRef | None, str]]) -> FailedRule:
    ref, error = failed[0]
    others = {item for item, _ in failed} - {ref, None}
    more = f" (and {len(others)} more: {', '.join(name_list(item for item in others if item))})" if others else ""
    return FailedRule(rule, ref, f"{error}{more}")


class _Run:
    """One evaluation of one rule over one cluster."""

    def __init__(self, facts: ClusterFacts, wanted: Mapping[str, frozenset[str]], about_cluster: bool) -> None:
        self._scene = Scene(facts)
        self._facts = facts
        self._wanted = wanted
        self._cluster = view(self._scene, CLUSTER, None, wanted) if about_cluster else {}
        self._nodes: dict[str, dict[str, Any] | None] = {}
        pods = sum(not pod.terminal for pod in facts.pods)
        self._lengths = {
            "cluster.nodes": len(facts.nodes),
            "cluster.pods": pods,
            "cluster.workloads": len(self._scene.workloads) if "workloads" in wanted.get("cluster", ()) else 0,
            "node.pods": max((len(node.pods) for node in facts.nodes), default=0),
            "workload.pods": pods,
        }

    def things(self, scope: str) -> Iterable[tuple[ObjectRef | None, Any]]:
        match scope:
            case "node":
                return ((node.ref, node) for node in self._facts.nodes)
            case "pod":
                return ((pod.ref, pod) for pod in self._facts.pods if not pod.terminal)
            case "workload":
                return ((item.ref, item) for item in self._scene.workloads)
        return [(None, None)]

    def lengths(self, scope: str, thing: Any) -> Mapping[str, int]:
        """How long the lists are that an expression about ``thing`` may go over."""
        if scope in ("node", "workload"):
            return {**self._lengths, f"{scope}.pods": len(thing.pods)}
        return self._lengths

    def names(self, scope: str, ref: ObjectRef | None) -> Iterator[Evidence]:
        if ref is not None:
            text = f"{ref.kind}/{ref.name}" if scope == "workload" else ref.name
            yield Evidence(scope, text)
            if scope != "node":
                yield Evidence("namespace", ref.namespace)
        yield Evidence("cluster", self._facts.name)

    def variables(self, scope: str, thing: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"cluster": self._cluster}
        match scope:
            case "node":
                found["node"] = view(self._scene, NODE, thing, self._wanted)
            case "workload":
                found["workload"] = view(self._scene, WORKLOAD, thing, self._wanted)
            case "pod":
                found["pod"] = view(self._scene, POD, thing, self._wanted)
                node = self._node(thing.node_name) if thing.node_name else None
                if node is not None:
                    found["node"] = node
        return found

    def _node(self, name: str) -> dict[str, Any] | None:
        if name not in self._nodes:
            node = self._facts.node(name)
            self._nodes[name] = None if node is None else view(self._scene, NODE, node, self._wanted)
        return self._nodes[name]


def _at(variables: Mapping[str, Any], path: str) -> Any:
    value: Any = variables
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _presentable(value: Any, unit: Any) -> tuple[str | int | float | bool | list[str] | None, Any]:
    """A value of the engine as evidence, with its unit."""
    match value:
        case bool():
            return value, unit
        case int():
            return (value, unit) if abs(value) < 2**63 else (str(value), "")  # JSON ends there
        case float():
            return (value, unit) if isfinite(value) else (None, unit)
        case str():
            return (value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"), unit
        case datetime():
            return value.isoformat().replace("+00:00", "Z"), "date"
        case timedelta():
            return int(value.total_seconds()), "s"
        case list():
            texts = [str(_presentable(item, "")[0]) for item in value]
            rest = [f"+{len(texts) - LONGEST_LIST}"] if len(texts) > LONGEST_LIST else []
            return [*texts[:LONGEST_LIST], *rest], ""
        case _:
            return None, unit
