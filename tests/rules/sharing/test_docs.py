"""The examples of docs/sharing.md are true."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.sharing.checked import read
from rules.sharing.plan import plan
from rules.sharing.report import document

PAGE = (Path(__file__).parents[3] / "docs/sharing.md").read_text("utf-8")
EXAMPLES = re.findall(r"### (.+?)\n.*?```yaml request\n(.*?)```.*?```yaml answer\n(.*?)```", PAGE, re.DOTALL)


def holds(expected: Any, found: Any, where: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            holds(value, found[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(expected) == len(found), where
        for index, (value, other) in enumerate(zip(expected, found, strict=True)):
            holds(value, other, f"{where}[{index}]")
    else:
        assert found == expected, where


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```yaml request") == 8


@pytest.mark.parametrize(("title", "request_text", "answer"), EXAMPLES, ids=[title for title, *_ in EXAMPLES])
def test_example(title: str, request_text: str, answer: str) -> None:
    holds(yaml.safe_load(answer), document(plan(read(yaml.safe_load(request_text))), "en"), title)
