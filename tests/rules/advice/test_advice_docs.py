"""The examples of docs/advice.md are true."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.advice.report import document
from tests.rules.advice.catalogue import advice

PAGE = (Path(__file__).parents[3] / "docs/advice.md").read_text("utf-8")
EXAMPLES = re.findall(r"### (.+?)\n.*?```yaml request\n(.*?)```.*?```yaml answer\n(.*?)```", PAGE, re.DOTALL)


def told(found: dict[str, Any]) -> dict[str, Any]:
    """All that an example may show of an answer."""
    providers, sharing, budget, demand = (found[name] for name in ("providers", "sharing", "budget", "demand"))
    first = providers[0] if providers else None
    cheapest = next((one for one in providers if any(r["key"] == "cheapest" for r in one["reasons_for"])), None)
    return {
        "kubernetes": {name: found["kubernetes"][name] for name in ("verdict", "score")},
        "changes": {change["key"]: change["verdict"] for change in found["kubernetes"]["changes"]},
        "control": {"choice": found["control"]["choice"]},
        "demand": demand and {"gpu": demand["gpu"], "gpus": demand["gpus"]},
        "modes": sharing and sorted({use["mode"] for use in sharing["uses"]}),
        "whole_gpus": sharing and sharing["whole_gpus"],
        "first": first and {name: first[name] for name in ("id", "usd_month", "not_documented")},
        "cheapest": cheapest and {name: cheapest[name] for name in ("id", "usd_month")},
        "wishes": first and [check["filter"] for check in first["checks"]],
        "purchase": sorted({one["purchase"] for one in providers if one["purchase"]}),
        "gaps": {one["id"]: one["not_documented"] for one in providers},
        "ruled_out": len(found["ruled_out"]),
        "budget": budget
        and {"over_usd_month": budget["over_usd_month"], "ways": [way["text"] for way in budget["ways"]]},
        **{name: [item["key"] for item in found[name]] for name in ("remarks", "defaults")},
        "manifests": [item["file"] for item in found["manifests"]],
        "needs_more": found["needs_more"],
    }


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```yaml request") >= 20


@pytest.mark.parametrize(("title", "request_text", "answer"), EXAMPLES, ids=[title for title, *_ in EXAMPLES])
def test_example(title: str, request_text: str, answer: str) -> None:
    found = told(document(advice(**yaml.safe_load(request_text)), "en"))
    expected = yaml.safe_load(answer)
    assert expected, title
    assert {name: found[name] for name in expected} == expected
