"""The re-made bug reports: the audit says what their owners needed to hear (the table: ``python -m tests.cases``)."""

import pytest

from rules.checks import RULES
from tests.cases import NAMES, expected, faults, rows, table


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_says_what_the_owner_needs_to_hear(name: str) -> None:
    assert list(faults(name)) == [], expected(name).finding


def test_every_case_has_a_row_of_rules_that_there_are() -> None:
    assert sorted(rows()) == NAMES
    known = {rule.id for rule in RULES}
    assert {rule for row in rows().values() for rule in (*row.rules, *row.never)} <= known
    assert all(row.rules and row.say and row.not_say for row in rows().values())


def test_the_table_lists_every_case_and_its_question() -> None:
    text = "\n".join(table(NAMES))
    assert all(expected(name).question in text for name in NAMES)
    assert text.count("as expected") == len(NAMES)
