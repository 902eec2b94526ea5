"""``gpu-advisor providers``: who rents GPUs, on what terms."""

import argparse
from datetime import UTC, datetime
from typing import Any

from rules.errors import InputInvalid
from service.cli.catalog_arguments import add_catalog_arguments, add_filter_arguments, catalog_of, filters_of
from service.cli.exits import EXIT_CODES, Exit
from service.cli.output import write_json

_EPILOG = f"""prices: per hour, in US dollars, without tax, of the machine that fits best: what is certain before what
is doubtful, what can be kept before spot. A * marks a price per GPU in a list, for which no such machine need exist.
What is not documented is never taken for a no; `?` is unknown.

{EXIT_CODES}"""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "providers",
        help="find GPU cloud providers, or show all that is known of one",
        description="Finds providers that meet filters, cheapest first; `show ID` shows one, with its sources.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("show", nargs="*", metavar="show ID", help="show one provider instead")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="rows of the table (default: 20)")
    add_filter_arguments(parser)
    add_catalog_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Search or show.

    Raises:
        InputInvalid, FilterInvalid, ProviderUnknown, ConfigInvalid: the arguments or settings cannot be used.
    """
    if args.show and (args.show[0] != "show" or len(args.show) != 2):
        raise InputInvalid("providers takes filters, or `show ID`, such as `gpu-advisor providers show coreweave`")
    import msgspec

    from rules.facts.offers_search import search
    from service.catalog.documents import search_document
    from service.cli.catalog_text import search_lines
    from service.cli.text import width

    filters = filters_of(args)
    settings, catalog = catalog_of(args)
    if args.show:
        return _show(args, args.show[1])
    result = search(catalog, filters, settings.catalog.rate)
    document = search_document(catalog, result, args.lang, datetime.now(UTC).date())
    if args.format == "json":
        write_json(msgspec.to_builtins(document))
    else:
        for line in search_lines(document, args.lang, width(), args.limit):
            print(line)
    return Exit.FINE


def _show(args: argparse.Namespace, name: str) -> int:
    import msgspec

    from rules.facts.offers_search import compare
    from rules.facts.providers import find_provider
    from service.catalog.documents import provider_document, rate_document, rate_of
    from service.cli.catalog_text import provider_lines, rate_lines
    from service.cli.text import width
    from service.errors import ProviderUnknown

    filters = filters_of(args)
    settings, catalog = catalog_of(args)
    if find_provider(name, catalog.providers) is None:
        raise ProviderUnknown(name, catalog.providers)
    rate = rate_of(filters, settings.catalog.rate)
    (match,) = compare(catalog, [name], filters, settings.catalog.rate)
    today = datetime.now(UTC).date()
    document = provider_document(catalog, match, args.lang, today, fields=filters.fields or None, rate=rate)
    if args.format == "json":
        write_json(msgspec.to_builtins(document))
        return Exit.FINE
    for line in provider_lines(document, rate_document(rate), args.lang, width()):
        print(line)
    for line in rate_lines(rate_document(rate), args.lang):
        print(line)
    return Exit.FINE
