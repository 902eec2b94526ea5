"""The generated pages: current, complete, and readable as Markdown."""

import importlib.util
import re
from pathlib import Path

import pytest

from rules.checks import RULES
from rules.knowledge import topic, topics
from rules.manual import coverage, coverage_page, rules_page, statements
from service.main import main
from service.manual import pages, write

DOCS = Path(__file__).parents[2] / "docs"
IDS = [f"S{number}" for number in range(1, 30)]
REGENERATE = "docs are out of date; write them anew with: .venv/bin/gpu-advisor rules --docs docs"


@pytest.mark.parametrize("name", ["rules.md", "coverage.md"])
def test_the_pages_are_current(name: str) -> None:
    file = DOCS / name
    assert file.is_file(), REGENERATE
    if file.read_text("utf-8") != pages()[name]:
        pytest.fail(f"{name}: {REGENERATE}", pytrace=False)


def test_all_statements_are_listed_once_and_in_order() -> None:
    assert [item.id for item in statements()] == IDS
    assert all(len(item.text) < 140 for item in statements())


def test_every_statement_is_encoded_or_promised() -> None:
    missing = [item.statement.id for item in coverage(RULES) if item.open and not item.statement.later]
    assert missing == [], "no rule, topic or other part encodes these statements"


def test_rules_and_topics_name_statements_that_there_are() -> None:
    named = {seed for rule in RULES for seed in rule.seeds} | {
        seed for name in topics() for seed in topic(name, "en").seeds
    }
    assert named <= set(IDS)
    assert all(rule.seeds for rule in RULES)


def test_what_else_encodes_a_statement_exists() -> None:
    for statement in statements():
        for also in statement.also:
            assert importlib.util.find_spec(also.where) is not None, (statement.id, also.where)


def test_every_rule_is_on_the_page_with_all_of_its_parts() -> None:
    page = rules_page(RULES)
    _, *parts = re.split(r"^### (.+)$", page, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert set(sections) == {rule.id for rule in RULES}
    for rule, text in ((rule, sections[rule.id]) for rule in RULES):
        for part in (
            "**What.** ",
            "**Why.** ",
            "**Fix.** ",
            "**Source.** ",
            "*Spanish.*",
            "*Italian.*",
            "Found: ",
            "Not found: ",
        ):
            assert part in text, (rule.id, part)
        assert f"Severity {rule.severity}" in text
        assert text.count("```") == 4


def test_links_between_the_pages_lead_somewhere() -> None:
    texts = {"rules.md": rules_page(RULES), "coverage.md": coverage_page(RULES)}
    anchors = {name: set(map(str.lower, re.findall(r"^#+ (.+)$", text, re.MULTILINE))) for name, text in texts.items()}
    for name, text in texts.items():
        for target, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", text):
            assert anchor in anchors[target or name], (name, target, anchor)


def test_equal_rules_give_equal_pages_and_are_written_as_they_are(tmp_path: Path) -> None:
    written = write(tmp_path / "new" / "docs")
    assert {file.name: file.read_text("utf-8") for file in written} == dict(pages())


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--docs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "rules.md"), str(tmp_path / "coverage.md")]
    (tmp_path / "file").write_text("")
    assert main(["rules", "--docs", str(tmp_path / "file" / "docs")]) == 2
