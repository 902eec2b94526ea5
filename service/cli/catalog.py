"""``gpu-advisor catalog``: where prices come from and how old they are; fetch them anew."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from service.cli.catalog_arguments import add_catalog_arguments
from service.cli.exits import Exit
from service.cli.output import write_json

if TYPE_CHECKING:
    from rules.language import Language
    from service.catalog.desk import SourceStatus
    from service.catalog.refresh import Refreshed
    from service.settings import Settings

_EPILOG = """`catalog` shows, per provider, the origin and age of its prices and how the latest attempt to fetch them
went.
`catalog refresh` fetches them by gpuhunt and puts them on record in the database of the settings; a source that fails
or is not believed leaves the prices before it, and stops no other. `catalog history` lists what was fetched.

exit code: 0 fine, 2 bad input, 3 a source failed, was not believed, or the database does not answer, 4 a fault of
gpu-advisor itself"""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "catalog",
        help="show where prices come from and how old they are, or fetch them anew",
        description="Shows origin, age and number of prices per provider, or fetches them anew.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", nargs="?", choices=("status", "refresh", "history"), default="status")
    parser.add_argument("--provider", action="append", metavar="ID", help="only this one; may be repeated")
    parser.add_argument(
        "--accept", action="store_true", help="refresh: believe a catalogue that differs wildly from the one before"
    )
    add_catalog_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show or refresh, and return the exit code.

    Raises:
        ConfigInvalid, ProviderUnknown: the arguments or settings cannot be used.
        StoreUnavailable: the database does not answer.
    """
    from service.cli.logs import configure
    from service.settings import LogSettings, load

    settings = load(args.config, os.environ)
    configure(LogSettings(level="error"))
    work = {"status": _status, "refresh": _refresh, "history": _history}[args.action]
    return asyncio.run(work(args, settings))


async def _status(args: argparse.Namespace, settings: "Settings") -> int:
    import msgspec

    from service.catalog.at_hand import records
    from service.catalog.desk import status
    from service.cli.catalog_text import table

    found = await records(settings)
    if found.warning:
        print(f"gpu-advisor: {found.warning}", file=sys.stderr)
    rows = status(found.catalog, found.snapshots, found.attempts)
    if args.provider:
        rows = [row for row in rows if row.provider in args.provider]
    if args.format == "json":
        write_json({"items": msgspec.to_builtins(rows)})
        return Exit.FINE
    for line in table(*_status_table(rows, args.lang)):
        print(line)
    return Exit.FINE


def _status_table(rows: "list[SourceStatus]", language: "Language") -> tuple[list[str], list[list[str]]]:
    from service.cli import catalog_labels as say

    headings = (say.PROVIDER, say.ORIGIN, say.ROWS, say.PRICES_OF, say.CHECKED, say.LATEST)
    return [heading.in_(language) for heading in headings], [
        [
            row.provider,
            say.ORIGINS[row.origin].in_(language),
            str(row.rows),
            _dates(row.oldest, row.newest),
            _moment(row.checked_at),
            _latest(row, language),
        ]
        for row in rows
    ]


def _dates(oldest: str | None, newest: str | None) -> str:
    return "?" if oldest is None else oldest if oldest == newest else f"{oldest} .. {newest}"


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


def _latest(row: "SourceStatus", language: "Language") -> str:
    from service.cli import catalog_labels as say

    words = [say.CONTRACTS.in_(language).format(n=row.contracts)] if row.contracts else []
    if row.outcome is not None:
        words.append(f"{say.OUTCOME[row.outcome].in_(language)} {_moment(row.attempted_at)}")
    if row.error:
        words.append(row.error)
    return "; ".join(words)


async def _refresh(args: argparse.Namespace, settings: "Settings") -> int:
    import msgspec

    from service.catalog.refresh import Refresher
    from service.cli.catalog_text import table
    from service.clock import SortableIds, utc_now
    from service.store import Store

    store = Store(settings.database_url)
    try:
        await store.migrate()
        refresher = Refresher(store, settings.catalog, clock=utc_now, ids=SortableIds(utc_now))
        done = await refresher.refresh(tuple(args.provider or ()), accept=args.accept)
    finally:
        await store.close()
    if args.format == "json":
        write_json({"items": msgspec.to_builtins(done)})
    else:
        for line in table(*_refresh_table(done, args.lang)):
            print(line)
    fine = all(one.outcome in ("updated", "unchanged") for one in done)
    return Exit.FINE if fine else Exit.UNREACHABLE


def _refresh_table(done: "list[Refreshed]", language: "Language") -> tuple[list[str], Iterator[list[str]]]:
    from service.cli import catalog_labels as say

    headings = (say.PROVIDER, say.LATEST, say.ROWS, say.VERSION)
    rows = (
        [
            one.provider,
            say.OUTCOME[one.outcome].in_(language),
            "" if one.rows is None else str(one.rows),
            "; ".join(filter(None, (one.version, one.error_detail))),
        ]
        for one in done
    )
    return [heading.in_(language) for heading in headings], rows


async def _history(args: argparse.Namespace, settings: "Settings") -> int:
    import msgspec

    from service.catalog.at_hand import records
    from service.cli import catalog_labels as say
    from service.cli.catalog_text import table

    found = await records(settings)
    if found.warning:
        print(f"gpu-advisor: {found.warning}", file=sys.stderr)
    views = [view for view in found.history if not args.provider or view.provider in args.provider]
    if args.format == "json":
        write_json({"items": msgspec.to_builtins(views)})
        return Exit.FINE
    headings = (say.PROVIDER, say.VERSION, say.ROWS, say.FETCHED_AT, say.CHECKED)
    rows = [
        [view.provider, view.version or "", str(view.rows), _moment(view.fetched_at), _moment(view.checked_at)]
        for view in views
    ]
    for line in table([heading.in_(args.lang) for heading in headings], rows):
        print(line)
    return Exit.FINE
