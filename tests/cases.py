"""What the audit says of each re-made bug report in ``tests/data/cases``: ``python -m tests.cases [NAME ...]``."""

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec
import yaml

from rules.findings import Finding, Report
from rules.words import Words, render
from tests.rules.checks.kit import DATA, sample

FOLDER = DATA / "cases"
NAMES = sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir())


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is expected of a case; see ``tests/data/cases_say.yaml``."""

    rules: dict[str, list[str]]
    never: list[str] = []
    say: list[str] = []
    not_say: list[str] = []


class Asked(msgspec.Struct, frozen=True):
    """An object that the case's owner wants named."""

    kind: str
    name: str
    namespace: str | None = None


class Expected(msgspec.Struct, frozen=True):
    title: str
    question: str
    finding: str
    objects: list[Asked]
    must_not: list[str] = []


@cache
def rows() -> dict[str, Row]:
    return msgspec.convert(yaml.safe_load((DATA / "cases_say.yaml").read_text("utf-8")), dict[str, Row])


@cache
def expected(name: str) -> Expected:
    return msgspec.convert(yaml.safe_load((FOLDER / name / "expected.yaml").read_text("utf-8")), Expected)


@cache
def report(name: str) -> Report:
    return sample(FOLDER / name)[1]


@cache
def words(name: str) -> dict[str, str]:
    """All English words of each finding, by fingerprint."""
    return {item.fingerprint: _text(render(item, "en")) for item in report(name).findings}


def _text(said: Words) -> str:
    return " ".join(f"{said.title} {said.detail} {said.remedy}".split())


def faults(name: str) -> Iterator[str]:
    """What the audit of a case does not say as it should, as sentences; empty when all is well."""
    row, result, said = rows()[name], report(name), words(name)
    found: dict[str, list[Finding]] = {}
    for item in result.findings:
        found.setdefault(item.rule, []).append(item)
    for failed in result.failed_rules:
        yield f"{failed.rule} failed: {failed.error}"
    for rule, names in row.rules.items():
        if rule not in found:
            yield f"{rule} does not speak"
            continue
        named = {ref.name for item in found[rule] for ref in item.objects}
        yield from (f"{rule} does not name {missing}" for missing in names if missing not in named)
    yield from (f"{rule} speaks" for rule in row.never if rule in found)
    expected_words = " ".join(said[item.fingerprint] for rule in row.rules for item in found.get(rule, ()))
    yield from (f"not said: {pattern}" for pattern in row.say if not re.search(pattern, expected_words))
    every = " ".join(said.values())
    for pattern in row.not_say:
        spoken = re.search(pattern, every)
        if spoken:
            yield f"said, and must not be: {spoken[0]}"
    named = {ref.name for item in result.findings for ref in item.objects}
    for asked in expected(name).objects:
        if asked.name not in named and asked.name not in every:
            yield f"{asked.kind} {asked.name} is named nowhere"


def table(names: Sequence[str]) -> Iterator[str]:
    """Case by case: the question, what the audit says, and what of it is not as it should be."""
    for name in names:
        wanted = expected(name)
        yield f"{name}: {wanted.question}"
        for item in report(name).findings:
            mark = "*" if item.rule in rows()[name].rules else " "
            yield f"  {mark} {item.severity:<8} {item.rule}"
            yield textwrap.fill(render(item, "en").title, 116, initial_indent=" " * 6, subsequent_indent=" " * 6)
            objects = ", ".join(map(str, item.objects))
            yield textwrap.fill(objects, 116, initial_indent=" " * 6, subsequent_indent=" " * 6) if objects else ""
        wrong = list(faults(name))
        yield "  as expected" if not wrong else "\n".join(f"  ! {fault}" for fault in wrong)
        yield ""


if __name__ == "__main__":
    print("\n".join(table(sys.argv[1:] or NAMES)))
    sys.exit(any(list(faults(name)) for name in sys.argv[1:] or NAMES))
