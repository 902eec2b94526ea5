"""``gpu-advisor plan``: how many GPUs do these models take, and shared how?"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rules.errors import InputInvalid
from rules.language import LANGUAGES, Language
from service.cli.exits import Exit
from service.cli.output import write_json

_EPILOG = """a model is [NAME=]SIZE[xREPLICAS]: 3GiBx12, chat=18GB, llm=70B@fp16, embed=0.6B@int8x4. GiB and GB are
memory of the process at its peak; B is billions of parameters, with their precision (fp32, fp16, bf16, fp8, int8,
int4 ...).

--file takes what POST /v1/plan/sharing takes, as YAML or JSON: {"models": [{"name", "replicas", "memory_gib" |
"parameters_b" and "precision", "load", "isolation", "latency_sensitive", ...}], "gpus", "prices", "objective", ...}.

exit code: 0 everything has its place, 1 something is missing or fits nowhere, 2 bad input."""
_MODEL = re.compile(
    r"(?:(?P<name>[^=]+)=)?(?P<size>[0-9]+(?:\.[0-9]+)?)(?P<unit>GiB|GB|B)(?:@(?P<precision>[a-z0-9]+?))?"
    r"(?:x(?P<replicas>[0-9]{1,4}))?\Z",
    re.IGNORECASE,
)
_UNITS = {"gib": "memory_gib", "gb": "memory_gb", "b": "parameters_b"}


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "plan",
        help="plan how models share GPUs, and how many that takes",
        description="Places models on whole GPUs, MIG slices, MPS parts or time-slices with the fewest GPUs or the "
        "lowest price, and prints the GPU Operator configuration that does it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", action="append", metavar="MODEL", help="a model; may be repeated")
    parser.add_argument(
        "--gpu", action="append", metavar="GPU", help="a GPU that may be used; may be repeated (default: any)"
    )
    parser.add_argument("--price", action="append", metavar="GPU=USD", help="dollars per GPU-hour; may be repeated")
    parser.add_argument(
        "--mode",
        action="append",
        choices=("whole", "mig", "mps", "time-slicing"),
        help="a way of sharing that may be used",
    )
    parser.add_argument("--isolation", choices=("none", "memory", "fault"), help="what the models must not share")
    parser.add_argument("--cheapest", action="store_true", help="the lowest price instead of the fewest GPUs")
    parser.add_argument("--minimum", action="store_true", help="let estimated models just load, without head-room")
    parser.add_argument("--file", metavar="FILE", help="the whole request as YAML or JSON; - reads standard input")
    parser.add_argument("--manifests", action="store_true", help="print the configuration as YAML and nothing else")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="default: en")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan, and return the exit code.

    Raises:
        InputInvalid: the arguments or the request cannot be used.
    """
    from rules.sharing.checked import read
    from rules.sharing.plan import plan
    from rules.sharing.report import document

    found = plan(read(_from_file(args) if args.file else _from_arguments(args)))
    answer = document(found, args.lang)
    if args.manifests:
        print(_manifests(answer), end="")
    elif args.format == "json":
        write_json(answer)
    else:
        for line in _lines(answer, args.lang):
            print(line)
    return Exit.FINE if found.complete else Exit.FINDINGS


def _from_file(args: argparse.Namespace) -> Any:
    beside = [name for name in ("model", "gpu", "price", "mode", "isolation") if getattr(args, name)]
    beside += [name for name in ("cheapest", "minimum") if getattr(args, name)]
    if beside:
        raise InputInvalid(f"--file holds the whole request; leave out --{', --'.join(beside)}")
    return read_request(args.file)


def read_request(file: str) -> Any:
    """The plain data of a request in a file; ``-`` is standard input.

    Raises:
        InputInvalid: it cannot be read, or is neither YAML nor JSON.
    """
    import sys

    import yaml

    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InputInvalid(f"{file}: the file cannot be read: {error.strerror}") from error
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputInvalid(f"{file}: not YAML or JSON: {error}") from error


def _from_arguments(args: argparse.Namespace) -> dict[str, Any]:
    if not args.model:
        raise InputInvalid("plan needs --model MODEL (such as 3GiBx12) or --file FILE")
    models = [model_of(text, number) for number, text in enumerate(args.model, start=1)]
    if args.isolation:
        models = [{**model, "isolation": args.isolation} for model in models]
    request: dict[str, Any] = {"models": models, "gpus": args.gpu or ["any"]}
    if args.price:
        request["prices"] = dict(_price(text) for text in args.price)
    if args.mode:
        request["modes"] = args.mode
    request["objective"] = "cheapest" if args.cheapest else "fewest"
    request["headroom"] = "minimum" if args.minimum else "comfortable"
    return request


def model_of(text: str, number: int) -> dict[str, Any]:
    """A model of ``--model``; ``number`` names it where the text does not.

    Raises:
        InputInvalid: it is not written so.
    """
    match = _MODEL.match(text.strip())
    if match is None:
        raise InputInvalid(f"--model {text}: write [NAME=]SIZE[xREPLICAS], such as 3GiBx12, chat=18GB or llm=70B@fp16")
    field = _UNITS[match["unit"].lower()]
    model: dict[str, Any] = {"name": match["name"] or f"model-{number}", field: float(match["size"])}
    if match["replicas"]:
        model["replicas"] = int(match["replicas"])
    if match["precision"]:
        model["precision"] = match["precision"].lower()
    return model


def _price(text: str) -> tuple[str, float]:
    name, _, amount = text.rpartition("=")
    if not name or not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", amount):
        raise InputInvalid(f"--price {text}: write GPU=USD, such as L4=0.71")
    return name, float(amount)


def _manifests(answer: dict[str, Any]) -> str:
    files = answer["configuration"]["manifests"] + answer["configuration"]["pods"]
    return "".join(f"---\n# {item['file']}\n{item['yaml']}" for item in files)


def _lines(answer: dict[str, Any], language: Language) -> Iterator[str]:
    from rules.sharing.words import label

    yield answer["summary"]
    yield ""
    yield f"{label('models', language)}:"
    for item in answer["sizings"]:
        yield f"- {_sizing(item, language)}"
    if answer["uses"]:
        yield ""
        yield f"{label('placement', language)}:"
        yield from _uses(answer["uses"], language)
    if answer["caveats"]:
        yield ""
        yield f"{label('caveats', language)}:"
        yield from (f"- {item['text']}" for item in answer["caveats"])
    if answer["alternatives"]:
        yield ""
        yield f"{label('alternatives', language)}:"
        yield from (f"- {_alternative(item, language)}" for item in answer["alternatives"])
    steps = answer["configuration"]["steps"]
    if steps:
        yield ""
        yield f"{label('steps', language)}:"
    for number, step in enumerate(steps, start=1):
        yield f"{number}. {step['text']}"
        if step["command"]:
            yield f"   {step['command']}"


def _sizing(item: dict[str, Any], language: Language) -> str:
    from rules.sharing.words import label, mode_name
    from rules.words import format_value

    said = f"{item['name']} x{item['replicas']}"
    if item["need_gib"] is not None:
        said += f": {label('needs', language)} {format_value(round(item['need_gib'], 1), 'GiB', language)}"
    if item["weights_gb"] is not None:
        said += f" ({label('weights', language)} {format_value(item['weights_gb'], '', language)} GB)"
    if item["gpu"] is not None:
        profile = f" {item['profile']}" if item["profile"] else ""
        said += f" · {item['gpu']} {mode_name(item['mode'], language)}{profile}"
        if item["per_gpu"]:
            said += f" · {item['per_gpu']} {label('per_gpu', language)}"
        said += f" · {format_value(item['gpus'], 'GPU', language)}"
        if item["min_gpus"] != item["gpus"]:
            said += f" ({label('at_least', language)} {item['min_gpus']})"
    return said


def _uses(uses: list[dict[str, Any]], language: Language) -> Iterator[str]:
    from rules.sharing.words import label, mode_name
    from rules.words import format_value

    for use in uses:
        held: dict[tuple[str, str | None], list[str]] = {}
        for item in use["placed"]:
            held.setdefault((item["model"], item["profile"]), []).append(str(item["start"]))
        placed = ", ".join(
            f"{len(starts)}x {model}"
            + (f" ({profile} {label('start', language)} {', '.join(starts)})" if profile else "")
            for (model, profile), starts in held.items()
        )
        free = ", ".join(use["free_profiles"]) or format_value(round(use["free_gib"], 1), "GiB", language)
        where = f"{use['number']}. {use['gpu']} {mode_name(use['mode'], language)}"
        yield f"{where}: {placed} · {label('free', language)}: {free}"


def _alternative(item: dict[str, Any], language: Language) -> str:
    from rules.sharing.words import label, mode_name
    from rules.words import format_money, format_value

    gpus = label("not_possible", language) if item["gpus"] is None else format_value(item["gpus"], "GPU", language)
    price = "" if item["usd_hour"] is None else f", {format_money(item['usd_hour'], language)}/h"
    reasons = " ".join(reason["text"] for reason in item["reasons"])
    return f"{item['gpu']} {mode_name(item['mode'], language)}: {gpus}{price}. {reasons}"
