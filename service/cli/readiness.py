"""``gpu-advisor readiness``: is a cluster ready for training over several nodes?"""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rules.language import Language
from service.cli.arguments import add_target_arguments
from service.cli.exits import Exit, exit_of
from service.cli.output import Style, write_json

if TYPE_CHECKING:
    from rules.advice.readiness import Readiness, State
    from rules.errors import AdvisorError
    from service.clusters import ClusterSettings, Connector
    from service.settings import Settings

_EPILOG = """asked for are a fast interconnect, gang scheduling, a training operator and shared storage; each is met,
not met or unknown. Which cluster: as for audit.

json: {"cluster", "observed_at", "state", "requirements": [{"topic", "state", "name", "reasons", "next_step", "objects",
"missing", "evidence"}]}; for the clusters of settings without --cluster {"clusters": [...]}.

exit code: 0 the report was made, 1 with --require something is not met or unknown, 2 bad input, 3 a cluster could not
be read, 4 a fault of gpu-advisor."""
_COLOURS = {"met": "low", "not_met": "high", "unknown": "medium"}
_INDENT = "  "


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "readiness",
        help="tell whether a cluster is ready for training over several nodes",
        description="Reads a cluster once (never writes) and tells what training over several nodes would lack there.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_arguments(parser, settings="settings with the clusters")
    parser.add_argument("--require", action="store_true", help="exit with 1 unless everything is met")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Report, and return the exit code.

    Raises:
        InputInvalid, ConfigInvalid, ClusterUnknown: the arguments or settings cannot be used.
    """
    from service.cli.logs import configure
    from service.cli.loop import run as run_async
    from service.cli.targets import targets
    from service.settings import LogSettings, load

    settings = load(args.config, os.environ)
    configure(LogSettings(level="warning", format=settings.log.format))
    chosen = targets(args, settings, os.environ)
    outcomes = run_async(_all(chosen, settings))
    if args.format == "json":
        documents = [
            _document(cluster.name, outcome, args.lang) for cluster, outcome in zip(chosen, outcomes, strict=True)
        ]
        several = chosen == settings.clusters and args.cluster is None
        write_json({"clusters": documents} if several else documents[0])
    else:
        _print_text(outcomes, args.lang)
    return max(_exit(outcome, required=args.require) for outcome in outcomes)


async def _all(clusters: "tuple[ClusterSettings, ...]", settings: "Settings") -> "list[Readiness | AdvisorError]":
    from rules.advice.readiness import readiness
    from service.cli.several import for_each
    from service.clock import utc_now
    from service.once import run_audit_once
    from service.prices import price_book

    prices = price_book(settings.prices)

    async def judge(connector: "Connector") -> "Readiness":
        facts, _ = await run_audit_once(
            connector,
            now=utc_now(),
            policy=settings.policy,
            prices=prices,
            rules=(),
            deadline_seconds=settings.audit.deadline_seconds,
        )
        return readiness(facts)

    return await for_each(clusters, judge, parallel=settings.audit.parallel)


def _document(name: str, outcome: "Readiness | AdvisorError", language: Language) -> Any:
    import msgspec

    from rules.errors import AdvisorError
    from service.api.documents import ErrorDocument, readiness_document

    if isinstance(outcome, AdvisorError):
        return {"cluster": name, "error": msgspec.to_builtins(ErrorDocument(outcome.code, str(outcome)))}
    return msgspec.to_builtins(readiness_document(outcome, language))


def _print_text(outcomes: "list[Readiness | AdvisorError]", language: Language) -> None:
    from rules.errors import AdvisorError
    from service.cli.text import width

    style = Style(sys.stdout)
    first = True
    for outcome in outcomes:
        if isinstance(outcome, AdvisorError):
            sys.stdout.flush()
            print(f"gpu-advisor: {outcome}", file=sys.stderr)
            continue
        if not first:
            print()
        first = False
        for line in lines(outcome, language, style, width()):
            print(line)


def lines(report: "Readiness", language: Language, style: Style, columns: int) -> Iterator[str]:
    """The report as text for people."""
    from rules import words
    from rules.advice.readiness import say
    from rules.advice.readiness import words as readiness_words
    from service.cli import labels
    from service.cli.text import wrapped

    known = readiness_words()
    when = words.format_value(report.observed_at.isoformat(), "date", language)
    yield f"{style.bold(f'{labels.CLUSTER.in_(language)} {report.cluster}')} · {labels.OBSERVED.in_(language)} {when}"
    yield f"{known.title.in_(language)}: {_state(report.state, known.states[report.state].in_(language), style)}"
    for item in report.requirements:
        said = say(item, language)
        yield ""
        yield f"{style.bold(said.name)}: {_state(item.state, said.state, style)}"
        for reason in said.reasons:
            yield from wrapped(reason, columns, _INDENT)
        if item.objects:
            shown = [str(ref) for ref in item.objects[:5]]
            left = len(item.objects) - len(shown)
            listed = ", ".join([*shown, f"+{left}"] if left > 0 else shown)
            yield f"{_INDENT}{known.objects.in_(language)}: {listed}"
        if said.step:
            yield f"{_INDENT}{style.bold(known.next.in_(language))}"
            yield from wrapped(said.step, columns, _INDENT * 2)


def _state(state: "State", text: str, style: Style) -> str:
    from rules.findings import Severity

    return style.severity(Severity(_COLOURS[state]), text)


def _exit(outcome: "Readiness | AdvisorError", *, required: bool) -> Exit:
    from rules.errors import AdvisorError

    if isinstance(outcome, AdvisorError):
        return exit_of(outcome)
    return Exit.FINDINGS if required and outcome.state != "met" else Exit.FINE
