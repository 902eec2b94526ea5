"""``gpu-advisor audit``: look at clusters once, without a database."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from rules.findings import Severity
from rules.language import Language
from service.cli.arguments import add_target_arguments
from service.cli.exits import AUDIT_EXIT_CODES, Exit, exit_of
from service.cli.output import Style, write_json

if TYPE_CHECKING:
    from rules.errors import AdvisorError
    from rules.findings import Report
    from service.clusters import ClusterSettings, Connector
    from service.settings import Settings

_EPILOG = f"""which cluster: --snapshot, --context or --kubeconfig name one. Otherwise all clusters of the settings are
audited, or the one that --cluster names; without settings it is the current context of the kubeconfig, as for kubectl.
One cluster that cannot be read does not stop the others.

json: one object with cluster, observed_at, findings, unreadable, failed_rules, skipped_rules, undecided, exempted,
exemption_troubles and disabled_rules; for the clusters of settings without --cluster {{"audits": [...]}}. A cluster
that could not be read gives {{"cluster", "error": {{"code", "detail"}}}}.

{AUDIT_EXIT_CODES}"""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "audit",
        help="look for idle nodes, mismatches and what else is wrong, once",
        description="Reads clusters once (never writes) and prints what is wrong, heaviest first.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_arguments(parser, settings="settings: clusters, thresholds, contract prices")
    parser.add_argument(
        "--fail-on",
        type=Severity,
        choices=list(Severity),
        metavar="SEVERITY",
        help=f"exit with 1 when a finding is this heavy or heavier: {', '.join(Severity)}",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Audit, print, and return the exit code.

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
    outcomes = run_async(_audit_all(chosen, settings))
    if args.format == "json":
        documents = [
            _document(cluster.name, outcome, args.lang) for cluster, outcome in zip(chosen, outcomes, strict=True)
        ]
        several = chosen == settings.clusters and args.cluster is None
        write_json({"audits": documents} if several else documents[0])
    else:
        _print_text(chosen, outcomes, args.lang)
    return max(_exit(outcome, args.fail_on) for outcome in outcomes)


async def _audit_all(clusters: "tuple[ClusterSettings, ...]", settings: "Settings") -> "list[Report | AdvisorError]":
    from service.cli.several import for_each
    from service.clock import utc_now
    from service.once import run_audit_once
    from service.prices import price_book
    from service.rulebook import rulebook

    prices, rules = price_book(settings.prices), rulebook(settings)
    images = None
    if settings.registry.enabled:
        from service.registry.reader import ImageReader

        images = ImageReader(settings.registry)

    async def audit(connector: "Connector") -> "Report":
        _, report = await run_audit_once(
            connector,
            now=utc_now(),
            policy=settings.policy,
            prices=prices,
            rules=rules,
            deadline_seconds=settings.audit.deadline_seconds,
            images=images,
        )
        return report

    try:
        return await for_each(clusters, audit, parallel=settings.audit.parallel)
    finally:
        if images is not None:
            await images.close()


def _document(name: str, outcome: "Report | AdvisorError", language: Language) -> Any:
    import msgspec

    from rules.findings import Report
    from service.api.documents import ErrorDocument, report_document

    if isinstance(outcome, Report):
        return msgspec.to_builtins(report_document(outcome, language))
    return {"cluster": name, "error": msgspec.to_builtins(ErrorDocument(outcome.code, str(outcome)))}


def _print_text(
    clusters: "tuple[ClusterSettings, ...]", outcomes: "list[Report | AdvisorError]", language: Language
) -> None:
    from rules.findings import Report
    from service.cli.report import report_lines
    from service.cli.text import width
    from service.errors import ClusterTrouble

    style = Style(sys.stdout)
    first = True
    for cluster, outcome in zip(clusters, outcomes, strict=True):
        if not isinstance(outcome, Report):
            sys.stdout.flush()
            where = "" if len(clusters) == 1 or isinstance(outcome, ClusterTrouble) else f"cluster {cluster.name}: "
            print(f"gpu-advisor: {where}{outcome}", file=sys.stderr)
            continue
        if not first:
            print()
        first = False
        for line in report_lines(outcome, language, style, width()):
            print(line)


def _exit(outcome: "Report | AdvisorError", fail_on: Severity | None) -> Exit:
    from rules.findings import Report
    from service.api.documents import heaviest

    if not isinstance(outcome, Report):
        return exit_of(outcome)
    if outcome.failed_rules:
        return Exit.FAULT
    worst = heaviest(outcome.findings)
    if fail_on is not None and worst is not None and worst.rank >= fail_on.rank:
        return Exit.FINDINGS
    return Exit.FINE
