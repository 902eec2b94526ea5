"""``gpu-advisor offers``: machines with their prices."""

import argparse
from datetime import UTC, datetime
from typing import Any

from service.cli.catalog_arguments import add_catalog_arguments, add_filter_arguments, catalog_of, filters_of
from service.cli.exits import EXIT_CODES, Exit
from service.cli.output import write_json


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "offers",
        help="list GPU machines with their prices",
        description="Lists machines that fit the filters, cheapest per GPU first, each price with its age.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="rows (default: 50)")
    add_filter_arguments(parser)
    add_catalog_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List.

    Raises:
        FilterInvalid, ConfigInvalid: the arguments or settings cannot be used.
    """
    import msgspec

    from rules.facts.offers_search import find_offers
    from service.catalog.documents import offer_document, rate_document, rate_of
    from service.cli import catalog_labels as say
    from service.cli.catalog_text import offer_lines, rate_lines

    filters = filters_of(args)
    settings, catalog = catalog_of(args)
    rate, today = rate_of(filters, settings.catalog.rate), datetime.now(UTC).date()
    found = find_offers(catalog, filters, settings.catalog.rate)
    shown = [offer_document(one, today, rate) for one in found[: args.limit]]
    if args.format == "json":
        document = {"items": shown, "found": len(found), "rate": rate_document(rate)}
        write_json(msgspec.to_builtins(document))
        return Exit.FINE
    if not shown:
        print(say.NOTHING.in_(args.lang))
        return Exit.FINE
    for line in offer_lines(shown, rate_document(rate), args.lang):
        print(line)
    print()
    print(say.OFFERS_FOUND.in_(args.lang).format(shown=len(shown), found=len(found)))
    for line in rate_lines(rate_document(rate), args.lang):
        print(line)
    return Exit.FINE
