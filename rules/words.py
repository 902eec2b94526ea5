"""Words of the rules in English, Spanish and Italian: loading, checking and rendering.

Each rule has a file of words beside its check (``rules/checks/<snake_id>.yaml``); words that all rules share are in
``rules/checks/_shared.yaml``. A file is read when its rule is first rendered, and kept. The grammar of a sentence:

``{idle}``
    the evidence of that name, formatted for the language (``3 days``, ``3 días``, ``3 giorni``); unknown values read
    "unknown", "desconocido", "sconosciuto".
``{pods:# pod waits|# pods wait}``
    singular or plural by the number (or by the length of a list); ``#`` is the number itself.

Braces around anything else, for example JSON in a command, are left alone.
"""

import importlib.resources
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, TypeVar

import msgspec

from rules.errors import InternalFault
from rules.findings import Evidence, Finding, OwnWords, Unit
from rules.language import LANGUAGES, Language, Text

TITLE_BUDGET = 80
DETAIL_BUDGET = 300
NAME_BUDGET = 60
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}|]*)\|([^{}|]*))?\}")

_Kind = TypeVar("_Kind")
Plain = str | int | float | bool | list[str] | None


class WordsInvalid(InternalFault):
    """A file of words is missing or breaks its rules: a missing language, an unknown placeholder, a text too long."""

    code = "words-invalid"


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small cluster that shows a rule at work.

    Attributes:
        why: what is right or wrong with it, one English sentence for the documentation.
        observed_at: the "now" of the example.
        objects: Kubernetes objects as ``kubectl get -o yaml`` prints them, cut to what matters.
        remedy: the remedy that is expected (only where the rule must speak).
    """

    why: str
    observed_at: datetime
    objects: list[dict[str, Any]]
    remedy: str | None = None


class Examples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One cluster in which the rule finds its trouble and one in which it must stay silent."""

    fails: Example
    passes: Example


class SharedWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Labels of evidence, sentences and words for values that rules have in common."""

    evidence: dict[str, Text] = {}
    notes: dict[str, Text] = {}
    values: dict[str, dict[str, Text]] = {}


class RuleWords(OwnWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a rule that has a file of them.

    Attributes:
        examples: run as tests and shown in the documentation.
    """

    examples: Examples


class Words(msgspec.Struct, frozen=True):
    """A finding in one language.

    Attributes:
        title: one line, at most 80 characters.
        detail: all that there is to say: the summary, then one line per note.
        remedy: what to do.
        summary: the first paragraph of the detail.
        notes: its further sentences.
    """

    title: str
    detail: str
    remedy: str
    summary: str
    notes: tuple[str, ...]


class EvidenceRow(msgspec.Struct, frozen=True):
    """One value of a finding as people see it: what it is, how much, and where it was read."""

    label: str
    text: str
    source: str | None


def rule_words(rule_id: str) -> RuleWords:
    """The words of a rule, checked. Raises :class:`WordsInvalid`."""
    return _rule_words(rule_id)


def render(finding: Finding, language: Language) -> Words:
    """A finding in ``language``. Raises :class:`WordsInvalid` when its rule has no words."""
    words = finding.words or rule_words(finding.rule)
    shared = shared_words()
    own = {item.name: item for item in finding.evidence}

    def say(text: Text, extra: Mapping[str, Evidence] | None = None, *, widest: int | None = None) -> str:
        values = {**own, **(extra or {})}
        return _fill(text.in_(language), values, words, language, widest)

    title = say(words.title)
    if len(title) > TITLE_BUDGET:
        title = _fit(words.title, own, words, language)
    summary = say(words.detail)
    if len(summary) > DETAIL_BUDGET:
        summary = _condense(words.detail, own, words, language)
    notes = tuple(
        say(_pick(words.notes, shared.notes, item.key, finding.rule), {value.name: value for value in item.values})
        for item in finding.notes
    )
    if finding.remedy not in words.remedies:
        raise WordsInvalid(f"{finding.rule}: no remedy is called {finding.remedy}")
    of_notes = {value.name: value for item in finding.notes for value in item.values}
    remedy = say(words.remedies[finding.remedy], {**of_notes, **own}).strip()
    return Words(title, "\n".join([summary, *notes]), remedy, summary, notes)


def evidence_rows(finding: Finding, language: Language) -> tuple[EvidenceRow, ...]:
    """The evidence of a finding, labelled and formatted for ``language``."""
    words = finding.words or rule_words(finding.rule)
    shared = shared_words().evidence
    rows = []
    for item in finding.evidence:
        label = words.evidence.get(item.name) or shared.get(item.name)
        text = _word(item, words, language)
        rows.append(EvidenceRow(label.in_(language) if label else item.name, text, item.source))
    return tuple(rows)


def format_value(value: Plain, unit: Unit, language: Language) -> str:
    """A value as people of ``language`` read it; None is "unknown"."""
    if value is None:
        return shared_words().values["_words"]["unknown"].in_(language)
    if isinstance(value, bool):
        return shared_words().values["_words"]["yes" if value else "no"].in_(language)
    if isinstance(value, list):
        return format_list(value, language)
    if isinstance(value, str):
        return _format_date(value, language) if unit == "date" else value
    return _format_number(value, unit, language)


def _format_number(value: float, unit: Unit, language: Language) -> str:
    match unit:
        case "s":
            return format_duration(value, language)
        case "USD":
            return format_money(value, language)
        case "USD/h":
            per_hour = {"en": " per hour", "es": " por hora", "it": " all'ora"}[language]
            return format_money(value, language) + per_hour
        case "GPU":
            plural = "GPUs" if language == "en" and value != 1 else "GPU"
            return f"{_decimal(value, language)} {plural}"
        case "GiB" | "MiB":
            return f"{_decimal(value, language)} {unit}"
        case _:
            return _decimal(value, language)


def format_money(usd: float, language: Language) -> str:
    """US dollars: three decimals under 10 cents, none from 1,000 on, else two."""
    from babel import Locale
    from babel.numbers import format_currency

    pattern = Locale.parse(language).currency_formats["standard"].pattern
    size = abs(usd)
    digits = "0.000" if 0 < size < 0.1 else "0" if size >= 1000 else "0.00"
    return format_currency(
        usd, "USD", format=pattern.replace("0.00", digits), locale=language, currency_digits=False
    ).replace("\xa0", " ")


def format_duration(seconds: float, language: Language) -> str:
    """A duration in its largest unit that counts at least 2, rounded down: ``26 hours``, ``45 days``."""
    from babel.units import format_unit

    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return format_unit(int(seconds // size), f"duration-{unit}", length="long", locale=language)
    return format_unit(int(seconds), "duration-second", length="long", locale=language)


def format_list(items: list[str], language: Language) -> str:
    """``a, b and c``; an empty list is a dash. A last entry such as ``+3`` stays at the end of the row."""
    if not items:
        return "–"
    if len(items) == 1:
        return items[0]
    *head, last = items
    if last.startswith("+"):
        return ", ".join(head) + f" {last}"
    return ", ".join(head) + f" {_and(last, language)} {last}"


def _and(following: str, language: Language) -> str:
    """Spanish "y" turns into "e" before an i sound, Italian "e" into "ed" before an e."""
    start = following.lower()
    if language == "es":
        return "e" if re.match(r"h?i(?![ae])", start) else "y"
    if language == "it":
        return "ed" if start.startswith("e") else "e"
    return "and"


def _decimal(value: float, language: Language) -> str:
    from babel.numbers import format_decimal

    return format_decimal(value, locale=language)


def _format_date(value: str, language: Language) -> str:
    from babel.dates import format_date

    try:
        if len(value) <= len("2026-11-30"):
            return format_date(date.fromisoformat(value), "medium", locale=language)
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"{format_date(moment.date(), 'medium', locale=language)} {moment:%H:%M} UTC"


def _word(item: Evidence, words: OwnWords, language: Language) -> str:
    """An evidence value: from the closed set of its name where it has one, else formatted by unit."""
    known = {**shared_words().values.get(item.name, {}), **words.values.get(item.name, {})}
    if isinstance(item.value, str) and item.value in known:
        return known[item.value].in_(language)
    if isinstance(item.value, list) and known:
        return format_list([known[each].in_(language) if each in known else each for each in item.value], language)
    return format_value(item.value, item.unit, language)


def _fill(
    template: str, values: Mapping[str, Evidence], words: OwnWords, language: Language, widest: int | None
) -> str:
    def one(match: re.Match[str]) -> str:
        name, singular, plural = match.groups()
        item = values.get(name, Evidence(name, None))
        if singular is None:
            text = _word(item, words, language)
            return _squeeze(text, widest) if widest is not None and isinstance(item.value, str | list) else text
        amount = _count(item.value) if isinstance(item.value, list) else item.value
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            return str(plural).replace("#", format_value(None, "", language))
        return str(singular if amount == 1 else plural).replace("#", _decimal(amount, language))

    return _PLACEHOLDER.sub(one, template)


def _count(items: list[str]) -> int:
    """How many a list names; a last entry ``+3`` stands for three more."""
    rest = items[-1] if items else ""
    return len(items) - 1 + int(rest[1:]) if re.fullmatch(r"\+\d+", rest) else len(items)


def _fit(title: Text, values: Mapping[str, Evidence], words: OwnWords, language: Language) -> str:
    """The title with long names shortened in their middle until it keeps its budget."""
    template = title.in_(language)
    text = ""
    for widest in range(60, 7, -1):
        text = _fill(template, values, words, language, widest)
        if len(text) <= TITLE_BUDGET:
            return text
    return _squeeze(text, TITLE_BUDGET)


def _condense(detail: Text, values: Mapping[str, Evidence], words: OwnWords, language: Language) -> str:
    """The detail with its lists cut to fewer names, and then its long words shortened, until it keeps its budget."""
    template = detail.in_(language)
    text = ""
    for most, widest in ((4, None), (3, None), (2, None), (1, None), (1, 90), (1, 60), (1, 40), (1, 24)):
        fewer = {name: _first_of(item, most) for name, item in values.items()}
        text = _fill(template, fewer, words, language, widest)
        if len(text) <= DETAIL_BUDGET:
            break
    return text


def _first_of(item: Evidence, most: int) -> Evidence:
    if not isinstance(item.value, list) or len(item.value) <= most:
        return item
    return Evidence(item.name, [*item.value[:most], f"+{_count(item.value) - most}"], item.unit, item.source)


def _squeeze(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _pick(own: Mapping[str, Text], shared: Mapping[str, Text], key: str, rule_id: str) -> Text:
    text = own.get(key) or shared.get(key)
    if text is None:
        raise WordsInvalid(f"{rule_id}: no note is called {key}")
    return text


@cache
def shared_words() -> SharedWords:
    """Words that all rules share. Raises :class:`WordsInvalid`."""
    words = _load("_shared", SharedWords)
    _check_placeholders("_shared", words.notes.items(), words.evidence)
    return words


@cache
def _rule_words(rule_id: str) -> RuleWords:
    words = _load(rule_id.replace("-", "_"), RuleWords)
    check_words(rule_id, words)
    return words


def _load(stem: str, kind: type[_Kind]) -> _Kind:
    import yaml

    file = importlib.resources.files("rules") / "checks" / f"{stem}.yaml"
    if not file.is_file():
        raise WordsInvalid(f"{stem}.yaml is missing beside its check in rules/checks")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return msgspec.convert(yaml.load(file.read_bytes(), Loader=loader), kind)  # noqa: S506 - a safe loader, in C
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise WordsInvalid(f"{stem}.yaml: {error}") from error


def check_words(rule_id: str, words: RuleWords) -> None:
    """Raise :class:`WordsInvalid` when a text breaks its budget or names a value that the rule does not have."""
    known = {**shared_words().evidence, **words.evidence}
    texts = [("title", words.title), ("detail", words.detail)]
    texts += [(f"remedies.{key}", text) for key, text in words.remedies.items()]
    texts += [(f"notes.{key}", text) for key, text in words.notes.items()]
    _check_placeholders(rule_id, texts, known)
    if "default" not in words.remedies:
        raise WordsInvalid(f"{rule_id}: remedies need a default")
    for label, text, budget in (("name", words.name, NAME_BUDGET), ("title", words.title, TITLE_BUDGET)):
        for language in LANGUAGES:
            fixed = _PLACEHOLDER.sub("", text.in_(language))
            if len(fixed) > budget:
                raise WordsInvalid(f"{rule_id}: {label} in {language} is longer than {budget} characters")
    for name in words.values:
        if name not in known:
            raise WordsInvalid(f"{rule_id}: values.{name} is no evidence of the rule")


def _check_placeholders(rule_id: str, texts: Iterable[tuple[str, Text]], known: Mapping[str, Text]) -> None:
    for where, text in texts:
        for language in LANGUAGES:
            if not text.in_(language).strip():
                raise WordsInvalid(f"{rule_id}: {where} in {language} is empty")
            for name in placeholders(text.in_(language)):
                if name not in known:
                    raise WordsInvalid(f"{rule_id}: {where} in {language} names {name}, which is no evidence")


def without_placeholders(template: str) -> str:
    """What of a sentence is the same whatever the values are."""
    return _PLACEHOLDER.sub("", template)


def placeholders(template: str) -> Iterator[str]:
    """Names of the values that a sentence wants."""
    return (match.group(1) for match in _PLACEHOLDER.finditer(template))
