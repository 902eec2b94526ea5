"""The pages about rules of a team: current, and every example on them runs."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from rules.custom import CustomRule
from rules.custom.reference import facts_page
from rules.custom.rule import compile_rule
from rules.custom.shapes import CLUSTER, NODE, POD, SHAPES, WORKLOAD
from rules.custom.types import ListOf, Shape
from rules.engine import evaluate
from rules.exemptions import EXEMPT, REASON, UNTIL
from rules.facts.cluster import build
from rules.facts.decode import decode_objects
from rules.facts.prices import bundled
from rules.facts.workloads import workloads_of
from rules.policy import Policy
from tests.rules.custom.test_facts import BARE, FULL, cluster_of, everything
from tests.rules.facts.make import DATA, NOW
from tests.service.cli.running import COMMAND, environment

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "custom-rules.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {match["file"]: match["text"] for match in _BLOCK.finditer(PAGE) if match["file"]}
CONSOLES = [match["text"] for match in _BLOCK.finditer(PAGE) if match["kind"] == "console"]


def test_the_page_of_facts_is_current() -> None:
    if (DOCS / "facts.md").read_text("utf-8") != facts_page():
        pytest.fail("docs/facts.md is out of date: python -m rules.custom.reference > docs/facts.md", pytrace=False)


def test_every_block_of_the_page_is_one_that_the_tests_know() -> None:
    kinds = [(match["kind"], match["file"]) for match in _BLOCK.finditer(PAGE)]
    assert PAGE.count("\n```") == 2 * len(kinds)
    assert all(kind == "console" or file for kind, file in kinds)


@pytest.mark.parametrize("text", CONSOLES, ids=[text.splitlines()[0][2:60] for text in CONSOLES])
def test_every_command_of_the_page_prints_what_the_page_says(text: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    command, _, expected = text.partition("\n")
    assert command.startswith("$ gpu-advisor ")
    done = subprocess.run(
        [*COMMAND, *command.split()[2:]],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    pattern = re.escape(expected.rstrip("\n")).replace(re.escape("..."), r"[\s\S]*?")
    assert re.fullmatch(pattern, done.stdout.rstrip("\n")), done.stdout


def examples() -> Iterator[Any]:
    """Rules of the page that name what they find in a comment beside their id."""
    for rule_id, found in re.findall(r"- id: (\S+) +# finds (.+)", FILES["more-rules.yaml"]):
        spec = next(item for item in yaml.safe_load(FILES["more-rules.yaml"])["rules"] if item["id"] == rule_id)
        yield pytest.param(spec, found, id=rule_id)


@pytest.mark.parametrize(("spec", "expected"), list(examples()))
def test_every_rule_of_the_page_finds_what_the_page_says(spec: dict[str, Any], expected: str) -> None:
    objects = decode_objects(FILES["cluster.yaml"].encode(), "cluster.yaml")
    facts = build("cluster", NOW, nodes=objects.nodes, pods=objects.pods, read_kinds=objects.kinds, prices=bundled())
    report = evaluate(facts, Policy(), [compile_rule(msgspec.convert(spec, CustomRule))])
    assert (report.failed_rules, report.undecided) == ((), ())
    found = [str(item.objects[0]) if item.objects else "the cluster" for item in report.findings]
    assert found == [expected]


def test_all_rules_of_the_page_that_are_not_meant_to_be_wrong_are_examples() -> None:
    rules = yaml.safe_load(FILES["more-rules.yaml"])["rules"]
    assert len(rules) == len(list(examples()))


def test_the_annotations_of_the_page_are_those_that_are_read() -> None:
    assert set(re.findall(r"gpu-advisor\.io/[a-z-]+", PAGE)) == {EXEMPT, REASON, UNTIL}


def test_every_key_of_a_rule_is_explained() -> None:
    table = PAGE[PAGE.index("| key |") : PAGE.index("Texts may name")]
    assert set(re.findall(r"`([a-z]+)`", table)) >= set(CustomRule.__struct_fields__)


def absent(shape: Shape, seen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Facts that are not known, with their shape."""
    for name, fact in shape.facts.items():
        if name not in seen:
            yield shape.name, name
        elif isinstance(fact.type, Shape):
            yield from absent(fact.type, seen[name])
        elif isinstance(fact.type, ListOf) and isinstance(fact.type.item, Shape):
            for item in seen[name]:
                yield from absent(fact.type.item, item)


def test_only_facts_that_are_marked_so_are_ever_unknown() -> None:
    marked = {(shape.name, name) for shape in SHAPES for name, fact in shape.facts.items() if fact.maybe}
    clusters = [FULL, BARE, cluster_of({"metadata": {"name": "g", "labels": {"nvidia.com/gpu.present": "true"}}})]
    for file in sorted((DATA / "clusters").glob("*.json")):
        objects = decode_objects(file.read_bytes(), file.name)
        clusters.append(
            build(
                file.stem,
                NOW,
                nodes=objects.nodes,
                pods=objects.pods,
                others=objects.others,
                read_kinds=objects.kinds,
                prices=bundled(),
            )
        )
    assert len(clusters) > 10
    unknown: set[tuple[str, str]] = set()
    for facts in clusters:
        for shape, things in (
            (NODE, facts.nodes),
            (POD, [pod for pod in facts.pods if not pod.terminal]),
            (WORKLOAD, tuple(workloads_of(facts))),
            (CLUSTER, (None,)),
        ):
            for thing in things:
                unknown.update(absent(shape, everything(facts, shape, thing)))
    assert unknown <= marked
