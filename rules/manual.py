"""The pages of ``docs``: every rule, and which statement of the mission is encoded where.

Pure: no clock, no files but the packaged words; equal rules give equal bytes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from rules import words
from rules.engine import Rule
from rules.knowledge import topic, topics
from rules.language import LANGUAGES

_GENERATED = "<!-- Written by `gpu-advisor rules --docs docs`; do not edit by hand. -->"
_HEADING = re.compile(r"^(What|Why|Fix|Source|Seeds):[ \t]*(.*)$", re.MULTILINE)
_LANGUAGE_NAMES = {"en": "English", "es": "Spanish", "it": "Italian"}


class Also(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something besides rules and topics that encodes a statement: what it is, and the module it lies in."""

    what: str
    where: str


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement of the mission.

    Attributes:
        id: S1 to S29.
        text: in our own words.
        later: what will encode it, where that is not here yet.
    """

    id: str
    group: str
    text: str
    also: tuple[Also, ...] = ()
    later: str | None = None


class Encoded(msgspec.Struct, frozen=True):
    """A statement and what encodes it: ids of rules and topics."""

    statement: Statement
    rules: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def open(self) -> bool:
        """True when nothing encodes it."""
        return not (self.rules or self.topics or self.statement.also)


def statements() -> tuple[Statement, ...]:
    """All statements, in order."""
    text = files("rules.data").joinpath("statements.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml.safe_load(text), tuple[Statement, ...])


def coverage(rules: Iterable[Rule]) -> tuple[Encoded, ...]:
    """Every statement with what encodes it; rules and topics say it themselves."""
    of_rules = [(rule.id, set(rule.seeds)) for rule in rules]
    of_topics = [(name, set(topic(name, "en").seeds)) for name in topics()]
    return tuple(
        Encoded(
            statement,
            tuple(name for name, seeds in of_rules if statement.id in seeds),
            tuple(name for name, seeds in of_topics if statement.id in seeds),
        )
        for statement in statements()
    )


def rules_page(rules: Sequence[Rule]) -> str:
    """``docs/rules.md``: all rules, by family, each in full."""
    return _page(_rules_lines(rules))


def coverage_page(rules: Sequence[Rule]) -> str:
    """``docs/coverage.md``: every statement with the rules, topics and other parts that encode it."""
    return _page(_coverage_lines(coverage(rules)))


def _page(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join([_GENERATED, "", *lines])).rstrip() + "\n"


def _rules_lines(rules: Sequence[Rule]) -> Iterator[str]:
    families = sorted({rule.family for rule in rules})
    yield "# Rules"
    yield ""
    yield (
        f"What an audit looks for: {len(rules)} rules. `gpu-advisor rules ID` and `GET /v1/rules/ID` show one of them. "
        "The severity is the usual one; a finding may carry another. A rule whose kinds could not be read is skipped, "
        "and the report says so. The two examples of a rule run as tests."
    )
    for family in families:
        inside = [rule for rule in rules if rule.family == family]
        yield ""
        yield f"## {family.capitalize()}"
        yield ""
        yield "| rule | severity | what it finds |"
        yield "|---|---|---|"
        for rule in inside:
            yield f"| [`{rule.id}`](#{rule.id}) | {rule.severity} | {_cell(words.rule_words(rule.id).name.en)} |"
        for rule in inside:
            yield ""
            yield from _rule_lines(rule)


def _rule_lines(rule: Rule) -> Iterator[str]:
    about = words.rule_words(rule.id)
    parts = _parts(rule.doc)
    yield f"### {rule.id}"
    yield ""
    yield f"**{parts['']}**"
    yield ""
    yield (
        f"Severity {rule.severity} · needs {', '.join(rule.needs)} · "
        f"statements {', '.join(f'[{seed}](coverage.md#{seed.lower()})' for seed in rule.seeds) or 'none'}"
    )
    for heading in ("What", "Why", "Fix", "Source"):
        yield ""
        yield f"**{heading}.** {parts.get(heading, '')}"
    yield ""
    yield "<details><summary>Words</summary>"
    for language in LANGUAGES:
        yield ""
        yield f"*{_LANGUAGE_NAMES[language]}.* {_plain(about.title.in_(language))}"
        yield ""
        yield f"> {_plain(about.detail.in_(language))}"
    yield ""
    yield "Remedies:"
    yield ""
    for key, remedy in about.remedies.items():
        yield f"- `{key}`: {_plain(remedy.en)}"
    yield ""
    yield "</details>"
    for heading, example in (("Found", about.examples.fails), ("Not found", about.examples.passes)):
        yield ""
        yield f"<details><summary>{heading}: {_html(' '.join(example.why.split()))}</summary>"
        yield ""
        yield "```yaml"
        yield _yaml(example.objects)
        yield "```"
        yield ""
        yield "</details>"


def _coverage_lines(encoded: Sequence[Encoded]) -> Iterator[str]:
    yield "# What of the mission is encoded where"
    yield ""
    missing = [item.statement.id for item in encoded if item.open]
    yield (
        f"The {len(encoded)} statements of the mission, in our own words, each with the rules (what audits find), the "
        "topics (what questions are answered with) and other parts that encode it. "
        + (f"Still open: {', '.join(missing)}." if missing else "None is open.")
    )
    group = None
    for item in encoded:
        statement = item.statement
        if statement.group != group:
            group = statement.group
            yield ""
            yield f"## {group}"
        yield ""
        yield f"### {statement.id}"
        yield ""
        yield statement.text
        yield ""
        if item.rules:
            yield f"- rules: {', '.join(f'[`{rule}`](rules.md#{rule})' for rule in item.rules)}"
        if item.topics:
            yield f"- topics: {', '.join(f'`{name}`' for name in item.topics)}"
        for also in statement.also:
            yield f"- {also.what} (`{also.where}`)"
        if statement.later:
            yield f"- later: {statement.later}"


def _parts(doc: str) -> dict[str, str]:
    """The sections of a rule's docstring as paragraphs; its first line under the empty name."""
    found = list(_HEADING.finditer(doc))
    parts = {"": _plain(doc[: found[0].start()] if found else doc)}
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(doc)
        parts[match[1]] = _plain(f"{match[2]} {doc[match.end() : end]}")
    return parts


def _plain(text: str) -> str:
    """One paragraph; roles of Sphinx become code, and ``code`` Markdown's `code`."""
    text = re.sub(r":[a-z]+:`~?([^`<]+)`", r"`\1`", " ".join(text.split()))
    return _angles(text.replace("``", "`"))


def _angles(text: str) -> str:
    """Angle brackets outside of code escaped: Markdown would take them for HTML."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _yaml(objects: Sequence[Any]) -> str:
    plain = msgspec.to_builtins(objects)
    text = yaml.safe_dump_all(plain, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return str(text).rstrip()
