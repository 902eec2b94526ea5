"""``gpu-advisor compare``: providers side by side."""

import argparse
from datetime import UTC, datetime
from typing import Any

from service.cli.catalog_arguments import add_catalog_arguments, add_filter_arguments, catalog_of, filters_of
from service.cli.exits import EXIT_CODES, Exit
from service.cli.output import write_json


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "compare",
        help="put providers side by side",
        description="Puts providers side by side, fact by fact; with filters, how each comes out under them.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids, names or aliases, such as coreweave nebius aws")
    add_filter_arguments(parser)
    add_catalog_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare.

    Raises:
        FilterInvalid, ProviderUnknown, ConfigInvalid: the arguments or settings cannot be used.
    """
    import msgspec

    from rules.facts.offers_search import compare
    from rules.facts.providers import find_provider
    from service.catalog.documents import provider_document, rate_document, rate_of
    from service.cli.catalog_text import comparison_lines, offer_lines, rate_lines
    from service.cli.text import width
    from service.errors import ProviderUnknown

    filters = filters_of(args)
    settings, catalog = catalog_of(args)
    for name in args.ids:
        if find_provider(name, catalog.providers) is None:
            raise ProviderUnknown(name, catalog.providers)
    rate = rate_of(filters, settings.catalog.rate)
    today = datetime.now(UTC).date()
    items = [
        provider_document(catalog, match, args.lang, today, fields=filters.fields or None, rate=rate)
        for match in compare(catalog, args.ids, filters, settings.catalog.rate)
    ]
    if args.format == "json":
        write_json({"items": msgspec.to_builtins(items), "rate": msgspec.to_builtins(rate_document(rate))})
        return Exit.FINE
    for line in comparison_lines(items, args.lang, width()):
        print(line)
    best = [one.offers[0] for one in items if one.offers]
    if best:
        print()
        for line in offer_lines(best, rate_document(rate), args.lang):
            print(line)
    for line in rate_lines(rate_document(rate), args.lang):
        print(line)
    return Exit.FINE
