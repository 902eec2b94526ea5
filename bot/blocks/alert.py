"""An alert as a Slack message: open, and edited to resolved."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from bot.blocks.markup import pack, pieces, plain
from bot.blocks.message import Block, Message, code, code_block, context, fields, header, message, section
from bot.port import AlertView
from bot.text import fit
from bot.words import words
from rules.findings import Evidence, Finding, ObjectRef, Severity
from rules.language import Language
from rules.words import (
    EvidenceRow,
    WordsInvalid,
    evidence_rows,
    format_duration,
    format_money,
    format_value,
    render,
    shared_words,
)
from rules.words import Words as FindingWords

EMOJI = {
    Severity.INFO: "⚪",
    Severity.LOW: "🔵",
    Severity.MEDIUM: "🟡",
    Severity.HIGH: "🟠",
    Severity.CRITICAL: "🔴",
}
RESOLVED = "✅"

DETAIL = 2500
REMEDY = 2500
COMMANDS = 2000
VALUE = 300
"""Most characters of a field's value; ten of them and their labels stay below 4,000."""
FIELD_COUNT = 10

_FIRST = ("gpus", "idle_since", "gpu", "driver", "driver_version", "cuda", "image")
"""Evidence that people look for first, where a finding has it."""
_SHOWN_OTHERWISE = frozenset({"usd_hour", "usd_so_far", "price_basis", "price_date"})
_COMMAND = re.compile(r"`([a-z][a-z0-9.-]* [^`]+)`")
_FRAGMENT = re.compile(r"kubectl (edit|describe|get|logs|delete) \S+$")
"""A command without its object, named in passing."""

Field = tuple[str, str]


def alert_message(alert: AlertView, language: Language) -> Message:
    """The message of an alert in its present state.

    The first line says how grave it is, in an emoji and a word, and what is wrong; fields hold the numbers; then the
    detail, what to do, and the commands of it as a block to copy. A resolved alert says how long it lasted and what it
    had cost when it was last seen. Limits hold whatever the finding contains: see :mod:`bot.blocks.message`.
    """
    said = _render(alert.finding, language)
    if alert.state == "resolved":
        return _resolved(alert, said, language)
    return _open(alert, said, language)


def _open(alert: AlertView, said: FindingWords, language: Language) -> Message:
    finding = alert.finding
    severity = finding.severity
    headline = f"{EMOJI[severity]} {words().severity[severity.value].in_(language)} · {said.title}"
    columns = list(_fields(alert, language))
    blocks: list[Block] = [header(headline), fields(columns)]
    detail = _detail(said)
    blocks += [section(text) for text in detail]
    remedy = _remedy(said, language)
    blocks += [section(text) for text in remedy]
    blocks += [section(text) for text in _commands(said)]
    blocks.append(context(_footer(alert, language)))
    text = "\n".join([_headline_text(headline, alert.cluster), _field_lines(columns), *detail, *remedy])
    return message(text, blocks)


def _resolved(alert: AlertView, said: FindingWords, language: Language) -> Message:
    w = words()
    headline = f"{RESOLVED} {w.resolved.in_(language)} · {said.title}"
    columns = list(_resolved_fields(alert, language))
    line = w.resolved_line.in_(language)
    blocks = [header(headline), fields(columns), context(line, _footer(alert, language))]
    return message("\n".join([_headline_text(headline, alert.cluster), _field_lines(columns), line]), blocks)


def _fields(alert: AlertView, language: Language) -> Iterator[Field]:
    """At most ten: where, what, money, since when, and as much evidence as there is room for."""
    label, finding = words().fields, alert.finding
    before = [(label["cluster"].in_(language), code(alert.cluster, VALUE)), *_objects(finding, language)]
    after: list[Field] = []
    if finding.cost:
        after = [
            (
                label["cost_hour"].in_(language),
                f"{_money(finding.cost.usd_hour, language)}\n{_price_origin(finding, language)}",
            ),
            (label["cost_so_far"].in_(language), _money(finding.cost.usd_so_far, language)),
        ]
    after.append((label["opened"].in_(language), moment(alert.opened_at, language)))
    yield from before
    yield from _evidence(finding, language)[: FIELD_COUNT - len(before) - len(after)]
    yield from after


def _resolved_fields(alert: AlertView, language: Language) -> Iterator[Field]:
    label, finding = words().fields, alert.finding
    yield label["cluster"].in_(language), code(alert.cluster, VALUE)
    yield from _objects(finding, language)
    yield label["opened"].in_(language), moment(alert.opened_at, language)
    if alert.resolved_at is not None:
        yield label["resolved"].in_(language), moment(alert.resolved_at, language)
        lasted = max(0.0, alert.resolved_at - alert.opened_at)
        yield label["duration"].in_(language), fit(format_duration(lasted, language), VALUE)
    if finding.cost:
        spent = f"{_money(finding.cost.usd_so_far, language)}\n{_price_origin(finding, language)}"
        yield label["cost_last"].in_(language), spent


def _objects(finding: Finding, language: Language) -> Iterator[Field]:
    """The main object by its kind, and the names of the others."""
    if not finding.objects:
        return
    main, *others = finding.objects
    shared = shared_words().evidence.get(main.kind.lower())
    yield (shared.in_(language) if shared else main.kind), code(_name(main), VALUE)
    if others:
        shown = ", ".join(code(_name(ref), 60) for ref in others[:4])
        rest = len(others) - 4
        more = " " + words().more.in_(language).format(count=rest) if rest > 0 else ""
        yield words().fields["objects"].in_(language), shown + more


def _name(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def _evidence(finding: Finding, language: Language) -> list[Field]:
    """Known evidence that nothing else in the message shows, in the order people look for it."""
    try:
        labels = {item.name: row for item, row in zip(finding.evidence, evidence_rows(finding, language), strict=True)}
    except WordsInvalid:
        labels = {}
    shown = {text for ref in finding.objects for text in (ref.name, ref.namespace, _name(ref))}
    known = [
        item
        for item in finding.evidence
        if item.name not in _SHOWN_OTHERWISE and item.value not in (None, "", []) and not _repeats(item, shown)
    ]
    known.sort(key=lambda item: _FIRST.index(item.name) if item.name in _FIRST else len(_FIRST))
    return [
        (
            labels[item.name].label if item.name in labels else item.name.replace("_", " "),
            _value(item, language, labels),
        )
        for item in known
    ]


def _repeats(item: Evidence, shown: set[str]) -> bool:
    values = item.value if isinstance(item.value, list) else [item.value]
    return all(isinstance(value, str) and value in shown for value in values)


def _value(item: Evidence, language: Language, labels: Mapping[str, EvidenceRow]) -> str:
    if item.unit == "date" and isinstance(item.value, str):
        try:
            when = datetime.fromisoformat(item.value)
        except ValueError:
            return fit(item.value, VALUE)
        if len(item.value) > len("2026-11-30"):
            return moment((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), language)
    text = labels[item.name].text if item.name in labels else format_value(item.value, item.unit, language)
    return fit(" ".join(text.split()), VALUE)


def _money(usd: float | None, language: Language) -> str:
    return fit(format_value(None, "USD", language) if usd is None else format_money(usd, language), VALUE)


def _price_origin(finding: Finding, language: Language) -> str:
    """What kind of price it is and how old."""
    if finding.cost is None:
        return ""
    basis = shared_words().values["price_basis"][finding.cost.basis].in_(language)
    as_of = finding.cost.as_of
    age = (
        words().price_as_of.in_(language).format(date=format_value(as_of, "date", language))
        if as_of
        else words().price_age_unknown.in_(language)
    )
    return "_" + fit(f"{basis}, {age}", VALUE) + "_"


def _detail(said: FindingWords) -> list[str]:
    parts = list(pieces(fit_lines(said.summary)))
    parts += [piece._replace(tight=True) for note in said.notes for piece in pieces(f"- {' '.join(note.split())}")]
    return pack(parts, DETAIL)[0]


def fit_lines(text: str) -> str:
    """``text`` with its single line breaks kept as paragraphs: detail texts mean them."""
    return "\n\n".join(line for line in text.split("\n") if line.strip())


def _remedy(said: FindingWords, language: Language) -> list[str]:
    if not said.remedy.strip():
        return []
    title = f"*{words().remedy.in_(language)}*"
    texts, _ = pack(list(pieces(said.remedy)), REMEDY)
    if texts:
        texts[0] = f"{title}\n{texts[0]}"
    return texts


def _commands(said: FindingWords) -> list[str]:
    """The commands of the remedy as one block to copy; none where the remedy has a block of its own."""
    found = [] if "```" in said.remedy else list(dict.fromkeys(_COMMAND.findall(said.remedy)))
    commands = [command for command in found if not _FRAGMENT.match(command)]
    return [code_block("\n".join(commands), COMMANDS)] if commands else []


def _footer(alert: AlertView, language: Language) -> str:
    rule = code(alert.finding.rule, 100)
    return words().rule_line.in_(language).format(rule=rule, time=moment(alert.updated_at, language))


def _headline_text(headline: str, cluster: str) -> str:
    return f"*{fit(plain(headline), 200)}* ({fit(cluster, 100)})"


def _field_lines(columns: list[Field]) -> str:
    return "\n".join(f"• {fit(label, 60)}: {value.replace(chr(10), ', ')}" for label, value in columns[1:])


def _render(finding: Finding, language: Language) -> FindingWords:
    """The words of the finding; its bare facts where its rule is gone, since an alert must never fall silent."""
    try:
        return render(finding, language)
    except WordsInvalid:
        about = ", ".join(str(ref) for ref in finding.objects)
        facts = "; ".join(f"{item.name}: {format_value(item.value, item.unit, language)}" for item in finding.evidence)
        return FindingWords(title=f"{finding.rule}: {about}", detail=facts, remedy="", summary=facts, notes=())


def moment(unix: float, language: Language) -> str:
    """A point in time that every reader sees in their own time zone."""
    seconds = int(unix)
    fallback = format_value(datetime.fromtimestamp(seconds, UTC).isoformat(), "date", language)
    return f"<!date^{seconds}^{{date_short_pretty}} {{time}}|{fit(fallback, 60)}>"
