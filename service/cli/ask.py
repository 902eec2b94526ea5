"""``gpu-advisor ask``: one question, or a file of them."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rules.errors import AdvisorError, InputInvalid
from rules.language import LANGUAGES, Language
from service.cli.exits import EXIT_CODES, Exit, exit_of
from service.cli.output import write_json

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts

_EPILOG = f"""batch files: one JSON object per line, {{"id": ..., "text": "...", "language"?: "en|es|it"}}; one answer
per line comes out in the same order, with the id. A line that cannot be used gives
{{"id", "line", "error": {{"code", "detail"}}}} in its place, and exit code 2 at the end; the others are answered.

{EXIT_CODES}"""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "ask",
        help="answer a question",
        description="Answers a question in English, Spanish or Italian, or explains a pasted error message.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", nargs="?", metavar="TEXT", help="the question; - reads it from standard input")
    parser.add_argument("--batch", metavar="FILE.jsonl", help="answer a file of questions; - reads standard input")
    parser.add_argument("--lang", choices=LANGUAGES, help="your language, used where the question is too short to tell")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of a single answer (default: text)")
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="output of `kubectl get nodes,pods,events -A -o json` (or yaml): answers say what is true there",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answer, and return the exit code.

    Raises:
        InputInvalid: neither or both of TEXT and --batch, an empty question, an unreadable file.
    """
    if (args.text is None) == (args.batch is None):
        raise InputInvalid(
            "ask needs either a question or --batch FILE.jsonl (a question goes before --snapshot, not after it)"
        )
    facts = _facts(args.snapshot) if args.snapshot else ()
    if args.batch is not None:
        return _batch(args.batch, args.lang, facts)
    text = sys.stdin.read() if args.text == "-" else args.text
    answer = _answer(text, args.lang, facts)
    if args.format == "json":
        write_json(answer)
    else:
        from service.cli.answer import answer_lines
        from service.cli.text import width

        for line in answer_lines(answer, width()):
            print(line)
    return Exit.FINE


def _facts(paths: list[str]) -> "tuple[ClusterFacts, ...]":
    from service.cli.targets import snapshot_facts

    return (snapshot_facts(paths),)


def _answer(text: str, language: Language | None, facts: "tuple[ClusterFacts, ...]") -> dict[str, Any]:
    import msgspec

    from rules.questions import answer

    if not text.strip():
        raise InputInvalid("the question is empty")
    document: dict[str, Any] = msgspec.to_builtins(answer(text, clusters=facts, language=language))
    del document["id"]  # nothing is on record here; in a batch it is the id of the line
    return document


def _batch(source: str, language: Language | None, facts: "tuple[ClusterFacts, ...]") -> int:
    worst = Exit.FINE
    for number, line in enumerate(_lines(source), start=1):
        if not line.strip():
            continue
        document, code = _batch_line(number, line, language, facts)
        worst = max(worst, code)
        write_json(document, indent=None)
        sys.stdout.flush()
    return worst


def _batch_line(
    number: int, line: bytes, language: Language | None, facts: "tuple[ClusterFacts, ...]"
) -> tuple[dict[str, Any], Exit]:
    """The answer to one line, or the error in its place: nothing in one line may cost another its answer."""
    known_id: Any = None
    try:
        question = _question(line)
        known_id = question.get("id")
        text, asked = _fields(question, language)
        return {"id": known_id, **_answer(text, asked, facts)}, Exit.FINE
    except AdvisorError as error:
        return _error_document(known_id, number, error.code, str(error)), exit_of(error)
    except Exception as error:
        return _error_document(known_id, number, "internal-fault", f"{type(error).__name__}: {error}"), Exit.FAULT


def _question(line: bytes) -> dict[str, Any]:
    import json

    try:
        question = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputInvalid(f"the line is not JSON: {error}") from error
    if not isinstance(question, dict):
        raise InputInvalid('the line is not an object such as {"id": "1", "text": "..."}')
    return question


def _fields(question: dict[str, Any], language: Language | None) -> tuple[str, Language | None]:
    if "id" not in question:
        raise InputInvalid('"id" is missing')
    text = question.get("text")
    if not isinstance(text, str):
        raise InputInvalid('"text" must be a string')
    asked = question.get("language")
    if asked is not None and asked not in LANGUAGES:
        raise InputInvalid(f'"language" must be one of {", ".join(LANGUAGES)}')
    return text, asked or language


def _error_document(line_id: Any, number: int, code: str, detail: str) -> dict[str, Any]:
    return {"id": line_id, "line": number, "error": {"code": code, "detail": detail}}


def _lines(source: str) -> Iterator[bytes]:
    if source == "-":
        yield from _without_mark(sys.stdin.buffer)
        return
    try:
        with Path(source).open("rb") as file:
            yield from _without_mark(file)
    except OSError as error:
        raise InputInvalid(f"{source}: the file cannot be read: {error.strerror}") from error


def _without_mark(lines: BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
