"""``gpu-advisor elsewhere``: what would this cluster cost at other providers?"""

import argparse
import os
from typing import TYPE_CHECKING, Any

from rules.errors import InputInvalid
from service.cli.arguments import add_target_arguments
from service.cli.exits import Exit
from service.cli.output import write_json

if TYPE_CHECKING:
    from rules.facts.cluster import ClusterFacts
    from service.clusters import Connector

_EPILOG = """priced are the GPU nodes, by shape: same GPU and at least as many per machine, spot where they are spot
now, managed if the cluster is, with a fast interconnect if pods ask for one. Which cluster: as for
audit, but one at a time.

exit code: 0 it was compared, 2 bad input, 3 the cluster could not be read, 4 a fault of gpu-advisor."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "elsewhere",
        help="price the GPU nodes of a cluster at other providers",
        description="Reads a cluster once (never writes) and prices its GPU nodes at every provider that would do.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_target_arguments(parser, settings="settings with the clusters, contract prices and private providers")
    parser.add_argument("--region", metavar="WORD", help="country code, eu, us, latam, or a provider's region")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, and return the exit code.

    Raises:
        InputInvalid, AdviceInvalid, ConfigInvalid, ClusterUnknown, ClusterTrouble: see their words.
    """
    from rules.advice.elsewhere import document, elsewhere
    from rules.advice.lines import elsewhere_lines
    from service.catalog.at_hand import catalog_at_hand
    from service.cli.loop import run as run_async
    from service.cli.several import for_each
    from service.cli.targets import targets
    from service.cli.text import width, wrapped
    from service.clock import utc_now
    from service.once import run_audit_once
    from service.settings import load

    settings = load(args.config, os.environ)
    chosen = targets(args, settings, os.environ)
    if len(chosen) != 1:
        raise InputInvalid(f"elsewhere takes one cluster: name it with --cluster {chosen[0].name}")
    catalog = catalog_at_hand(settings).catalog

    async def read(connector: "Connector") -> "ClusterFacts":
        facts, _ = await run_audit_once(
            connector,
            now=utc_now(),
            policy=settings.policy,
            prices=catalog.book,
            rules=(),
            deadline_seconds=settings.audit.deadline_seconds,
        )
        return facts

    (outcome,) = run_async(for_each(chosen, read, parallel=1))
    if isinstance(outcome, Exception):
        raise outcome
    answer = document(elsewhere(outcome, catalog, args.region), args.lang)
    if args.format == "json":
        write_json(answer)
    else:
        for line in wrapped("\n".join(elsewhere_lines(answer, args.lang)), width()):
            print(line)
    return Exit.FINE
