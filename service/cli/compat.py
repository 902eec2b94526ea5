"""``gpu-advisor compat``: would this image run on this driver and GPU?"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rules.errors import AdvisorError, InputInvalid
from rules.language import LANGUAGES, Language
from service.cli.exits import Exit, exit_of
from service.cli.output import write_json

_RUNS = ("ok", "ok_minor_compat")
_HEADINGS: dict[Language, tuple[str, str, str, str, str]] = {
    "en": ("driver", "Why:", "Mind:", "not known", "as of"),
    "es": ("controlador", "Por qué:", "Ten en cuenta:", "se desconoce", "a fecha de"),
    "it": ("driver", "Perché:", "Da tenere presente:", "non noto", "al"),
}
_EPILOG = """batch files: one JSON object per line, {"id", "driver", "cuda" | "image", "gpu"?, "vendor"?}; one verdict
per line comes out in the same order, with the id. A line that cannot be used gives
{"id", "line", "error": {"code", "detail"}} in its place, and exit code 2 at the end; the others are judged.

exit code: 0 it runs (ok, ok_minor_compat), 1 it does not, or not as it is (every other verdict), 2 bad input.
A batch that was judged completely ends with 0, whatever the verdicts are."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compat",
        help="tell whether an image runs on a driver and GPU",
        description="Tells whether a CUDA or ROCm version, or an image that holds one, runs on a driver and a GPU.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--driver", metavar="V", help="driver of the node: 535.183.01, 535; of AMD 6.3.2, 30.10")
    parser.add_argument(
        "--cuda", metavar="V", help="CUDA of the software (ROCm for an AMD GPU): 12.8, cu128, 12.4.1, 12"
    )
    parser.add_argument("--image", metavar="REF", help="image reference; its tag tells the CUDA or ROCm version")
    parser.add_argument("--gpu", metavar="NAME", help="any name of the GPU: h100, NVIDIA-A100-SXM4-80GB, mi300x")
    parser.add_argument("--vendor", metavar="NAME", help="maker of the GPU (nvidia, amd, ...) where no GPU is named")
    parser.add_argument(
        "--registry",
        action="store_true",
        help="ask the registry of --image for its configuration, which decides over the tag; credentials as the "
        "settings name them, else none",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings: registry and its credentials")
    parser.add_argument("--batch", metavar="FILE.jsonl", help="judge a file of cases; - reads standard input")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the reasons (default: en)")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="of a single verdict (default: text)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge, and return the exit code.

    Raises:
        InputInvalid: no software is named, a case beside ``--batch``, an unreadable file.
        ConfigInvalid: the settings or credentials for ``--registry``.
    """
    from rules.compat.report import document, judge

    case = {name: getattr(args, name) for name in ("driver", "cuda", "image", "gpu", "vendor")}
    today = datetime.now(UTC).date()
    if args.batch is not None:
        if any(value is not None for value in case.values()) or args.registry:
            raise InputInvalid("compat takes either --batch FILE.jsonl or one case, not both")
        return _batch(args.batch, args.lang, today)
    if not (args.cuda or args.image):
        raise InputInvalid("compat needs --cuda V or --image REF (or --batch FILE.jsonl)")
    if args.registry and not args.image:
        raise InputInvalid("--registry asks for an image: give --image REF")
    verdict = judge({**case, "image_config": _image_config(args) if args.registry else None}, today=today)
    answer = document(verdict, args.lang)
    if args.format == "json":
        write_json(answer)
    else:
        for line in _lines(answer, args.lang):
            print(line)
    return Exit.FINE if verdict.verdict in _RUNS else Exit.FINDINGS


def _image_config(args: argparse.Namespace) -> Any:
    """The configuration that the registry keeps; None, with a warning, when it does not give it."""
    import asyncio

    from service.errors import RegistryTrouble
    from service.registry.reader import ImageReader
    from service.settings import load

    settings = load(args.config, os.environ).registry

    async def read() -> Any:
        reader = ImageReader(settings)
        try:
            return await reader.config(args.image)
        finally:
            await reader.close()

    try:
        return asyncio.run(read())
    except RegistryTrouble as trouble:
        print(f"gpu-advisor: {trouble}; the tag decides", file=sys.stderr)
        return None


def _lines(answer: dict[str, Any], language: Language) -> Iterator[str]:
    driver, why, mind, unknown, as_of = _HEADINGS[language]
    yield f"{answer['verdict']}: {answer['summary']}"
    software = "ROCm" if answer["rocm"] else "CUDA"
    yield f"{driver} {answer['driver'] or unknown} · {software} {answer['rocm'] or answer['cuda'] or unknown}" + (
        f" · {answer['gpu']}" if answer["gpu"] else ""
    )
    for heading, reasons in ((why, answer["reasons"]), (mind, answer["warnings"])):
        if reasons:
            yield ""
            yield heading
        for reason in reasons:
            yield f"- {reason['text']}"
            if reason["source"]:
                yield f"  {reason['source']}" + (f" ({as_of} {reason['as_of']})" if reason["as_of"] else "")


def _batch(source: str, language: Language, today: date) -> int:
    worst = Exit.FINE
    for number, line in enumerate(_records(source), start=1):
        if not line.strip():
            continue
        answer, code = _batch_line(number, line, language, today)
        worst = max(worst, code)
        write_json(answer, indent=None)
    return worst


def _batch_line(number: int, line: bytes, language: Language, today: date) -> tuple[dict[str, Any], Exit]:
    """The verdict on one line, or the error in its place: nothing in one line may cost another its verdict."""
    from rules.compat.report import document, judge

    known_id: Any = None
    try:
        record = _record(line)
        known_id = record.get("id")
        return {"id": known_id, **document(judge(record, today=today), language)}, Exit.FINE
    except AdvisorError as error:
        return {"id": known_id, "line": number, "error": {"code": error.code, "detail": str(error)}}, exit_of(error)
    except Exception as error:
        fault = {"code": "internal-fault", "detail": f"{type(error).__name__}: {error}"}
        return {"id": known_id, "line": number, "error": fault}, Exit.FAULT


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputInvalid(f"the line is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputInvalid('the line is not an object such as {"id": "1", "driver": "535.183.01", "cuda": "12.8"}')
    return record


def _records(source: str) -> Iterator[bytes]:
    if source == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(source).open("rb") as file:
            yield from file
    except OSError as error:
        raise InputInvalid(f"{source}: the file cannot be read: {error.strerror}") from error
