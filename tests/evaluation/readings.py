"""Scores readings, whatever is answered: kind, the one thing that helps the user (core), language, wrong and sure.

``python -m tests.evaluation.readings [FILE.yaml ...] [--misses]`` prints the tables for the development set (or the
given files of the same shape) and for the held-out lines of the corpus.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rules.questions import Reading, read
from rules.questions.corpus import Line
from rules.questions.entities import providers
from tests.evaluation.scoring import development, table


class Judged(NamedTuple):
    """Whether a reading has the right kind and core, and whether it is wrong and sure."""

    kind: bool
    core: bool
    wrong: bool


def norm(value: Any) -> str:
    """A value as it is compared: lower case, hyphens, single blanks."""
    return re.sub(r"\s+", " ", str(value).strip().lower().replace("_", "-"))


def as_list(value: Any) -> list[Any]:
    """The value, or the values, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _card(value: Any) -> str:
    text = norm(value).replace(" ", "-")
    for noise in ("nvidia-", "geforce-", "tesla-", "quadro-", "amd-", "instinct-", "gb"):
        text = text.replace(noise, "")
    return text.strip("-")


def _same_card(one: Any, other: Any) -> bool:
    short, long = sorted((_card(one), _card(other)), key=len)
    return bool(short) and long.startswith(short) and not long[len(short) :][:1].isalnum()


def _same_version(want: Any, got: Any) -> bool:
    one, other = str(want).split("."), str(got).split(".")
    least = min(len(one), len(other))
    return len(other) >= min(len(one), 2) and one[:least] == other[:least]


def _every(want: Any, got: Any, same: Callable[[Any, Any], bool]) -> bool:
    return got is not None and all(any(same(one, other) for other in as_list(got)) for one in as_list(want))


def _provider_id(name: Any) -> str:
    found = providers(norm(name))
    return found[0] if found else norm(name)


def value_ok(key: str, want: Any, got: Any) -> bool:
    """True when a filter or an entity holds what is expected."""
    if got is None:
        return False
    if key == "gpu":
        return _every(want, got, _same_card)
    if key in ("providers", "exclude"):
        return {_provider_id(name) for name in as_list(want)} <= {_provider_id(name) for name in as_list(got)}
    if isinstance(want, bool):
        return bool(got) is want
    if isinstance(want, list):
        return {norm(item) for item in want} <= {norm(item) for item in as_list(got)}
    if isinstance(want, int | float):
        try:
            return abs(float(want) - float(got)) <= 0.02 * max(1.0, abs(float(want)))
        except (TypeError, ValueError):
            return norm(want) == norm(got)
    return any(norm(want) == norm(item) for item in as_list(got))


def _kind(expect: dict[str, Any], kind: str) -> str:
    return "abstain" if expect.get("abstain") else "clarify" if expect.get("clarify") else kind


def _read_kind(reading: Reading) -> str:
    main = reading.main
    return main.label if main.kind == "out_of_scope" else main.kind


def core_ok(kind: str, expect: dict[str, Any], reading: Reading) -> bool:
    """True when what decides whether the user is helped was read."""
    main = reading.main
    named = reading.entities | main.entities
    if expect.get("abstain") or expect.get("clarify"):
        return True
    if kind in ("faq", "cluster", "error"):
        return bool(main.label == expect[{"faq": "topic", "cluster": "intent", "error": "cause"}[kind]])
    if kind == "provider":
        if "field" in expect:
            return bool(main.field == expect["field"] and main.provider == _provider_id(expect["provider"]))
        return all(value_ok(key, want, main.filters.get(key)) for key, want in expect["filters"].items())
    if kind == "compat":
        right = "driver" not in expect or _every(expect["driver"], named.get("driver"), _same_version)
        if "image" in expect:
            right = right and norm(expect["image"]) in norm(named.get("image"))
        elif "cuda" in expect:
            right = right and _every(expect["cuda"], named.get("cuda"), _same_version)
        return right and ("gpu" not in expect or _every(expect["gpu"], named.get("gpu"), _same_card))
    return all(value_ok(key, want, named.get(key)) for key, want in (expect.get("entities") or {}).items())


def judge(readings: Iterable[tuple[str, dict[str, Any]]], reading: Reading) -> Judged:
    """Judge a reading by the (kind, expect) pairs that count as right."""
    read_kind = _read_kind(reading)
    fitting = [(kind, expect) for kind, expect in readings if _kind(expect, kind) == read_kind]
    core = any(core_ok(kind, expect, reading) for kind, expect in fitting)
    return Judged(bool(fitting), core, not fitting and reading.main.sure and read_kind not in ("abstain", "clarify"))


def expected(question: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The right readings of a question of the development set."""
    yield question["kind"], question["expect"]
    for other in question.get("also_ok") or ():
        if isinstance(other, str):
            yield "faq", {"topic": other}
        else:
            yield other.get("kind", question["kind"]), other


def expected_of_line(line: Line) -> Iterator[tuple[str, dict[str, Any]]]:
    """The right readings of a line of the corpus."""
    for name in (line.label, *sorted(line.also)):
        kind, _, label = name.partition(":")
        key = {"faq": "topic", "cluster": "intent", "error": "cause"}.get(kind)
        if key:
            yield kind, {key: label}
        elif kind == "out_of_scope":
            yield kind, {label: True}
        elif name == line.label and kind in ("provider", "sizing"):
            yield kind, line.expect
        elif name == line.label:
            yield kind, line.expect.get("entities") or {}


Item = tuple[str, str, str, str, Sequence[tuple[str, dict[str, Any]]]]
"""id, kind, language, text, right readings."""


def questions(listed: Iterable[dict[str, Any]]) -> Iterator[Item]:
    """Items of the development set."""
    for question in listed:
        yield question["id"], question["kind"], question["lang"], question["text"], list(expected(question))


def corpus_lines(listed: Iterable[Line]) -> Iterator[Item]:
    """Items of the corpus."""
    for number, line in enumerate(listed):
        yield f"{line.label}/{number}", line.kind, line.language, line.text, list(expected_of_line(line))


def measure(items: Iterable[Item], show: bool = False) -> dict[tuple[str, str], Counter[str]]:
    """Counts per kind and language, and in all; ``show`` prints each miss."""
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for name, kind, language, text, right in items:
        reading = read(text)
        judged = judge(right, reading)
        spoken = reading.language.language == language
        for key in ((kind, "all"), ("all", language), ("all", "all")):
            rows[key].update(n=1, kind=judged.kind, core=judged.core, language=spoken, wrong=judged.wrong)
        if show and not (judged.core and spoken):
            main = reading.main
            ranked = " ".join(f"{score.kind}:{score.label}={score.share:.2f}" for score in main.scores[:4])
            more = main.filters if main.kind == "provider" else main.entities
            print(
                f"{name} [{language}/{reading.language.name}] {text[:240]!r}\n   want {right}\n   got {ranked} {more}"
            )
    return rows


COLUMNS = ("kind", "core", "language", "wrong")


def main() -> None:
    """Print the tables."""
    from rules.questions import corpus

    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--corpus", action="store_true", help="the held-out lines of the corpus only")
    args = parser.parse_args()
    if not args.corpus:
        listed = [question for path in args.files for question in yaml.safe_load(path.read_text(encoding="utf-8"))]
        print(table(measure(questions(listed or development()), args.misses), COLUMNS))
    if not args.files:
        held = [line for line in corpus.lines() if line.held_out]
        print(f"\nheld-out lines of the corpus: {len(held)}")
        print(table(measure(corpus_lines(held), args.misses and args.corpus), COLUMNS))


if __name__ == "__main__":
    main()
