"""The catalogue as a command finds it: with what a service has put on record, where its database can be read."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rules.facts.offers import Catalog
from service.catalog.assemble import assemble
from service.prices import contract_rows
from service.settings import Settings

if TYPE_CHECKING:
    from service.store.catalog import Attempt, Snapshot, SnapshotView


class AtHand(msgspec.Struct, frozen=True):
    """The catalogue, and what it was made of.

    Attributes:
        warning: why fetched prices are not in it although there may be some.
    """

    catalog: Catalog
    snapshots: "dict[str, Snapshot]" = {}
    attempts: "dict[str, Attempt]" = {}
    history: "list[SnapshotView]" = []
    warning: str | None = None


def catalog_at_hand(settings: Settings) -> AtHand:
    """:func:`records` for a command without an event loop; a database that holds nothing is not even imported."""
    if not _may_hold_prices(settings.database_url):
        return AtHand(_assembled({}, settings))
    return asyncio.run(records(settings))


async def records(settings: Settings) -> AtHand:
    """Bundled offers, those on record, and the team's own on top. Nothing is created or written; a database that cannot
    be read costs the fetched prices only."""
    if not _may_hold_prices(settings.database_url):
        return AtHand(_assembled({}, settings))
    from sqlalchemy.exc import SQLAlchemyError

    from service.errors import redact
    from service.store import Store, catalog

    store = Store(settings.database_url)
    try:
        async with store.read() as session:
            snapshots = await catalog.latest(session)
            attempts = await catalog.attempts(session)
            history = await catalog.history(session)
    except (SQLAlchemyError, OSError) as error:
        reason = redact(" ".join(str(getattr(error, "orig", None) or error).split()))
        said = f"fetched prices cannot be read from the database ({reason}); those of the package are used"
        return AtHand(_assembled({}, settings), warning=said)
    finally:
        await store.close()
    fetched = {name: snapshot.offers for name, snapshot in snapshots.items()}
    return AtHand(_assembled(fetched, settings), snapshots, attempts, history)


def _assembled(fetched: dict[str, Any], settings: Settings) -> Catalog:
    return assemble(fetched, settings.providers, contract_rows(settings.prices))


def _may_hold_prices(url: str) -> bool:
    """Whether looking is worth the import: a SQLite file that is not there holds nothing."""
    if not url.startswith("sqlite"):
        return True
    path = url.partition("///")[2].partition("?")[0]
    return bool(path) and path != ":memory:" and Path(path).is_file()
