"""The catalogue of a running service: assembled from what is on record, fetched anew when it is due."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from rules.facts.offers import Catalog, EuroRate
from service.catalog.assemble import assemble
from service.catalog.refresh import Refreshed, Refresher
from service.catalog.sources import known_sources
from service.clock import Clock, Ids
from service.prices import contract_rows
from service.settings import Settings
from service.store import Store, catalog
from service.store.catalog import Attempt, Snapshot

Origin = Literal["bundled", "fetched", "private", "none"]


class SourceStatus(msgspec.Struct, frozen=True):
    """Where the prices of a provider come from, and how old they are.

    Attributes:
        origin: ``bundled`` with the package, ``fetched`` (with bundled ones of GPU models that were not fetched),
            ``private``, or ``none``: no price is known.
        rows: offers in use; contracts: those of them at a contract price.
        oldest, newest: dates of list prices; None when none is dated.
        fetched_at, checked_at: when the prices were first and last seen at their source; None unless fetched.
        outcome: of the latest attempt to fetch; None when there was none.
        error: why it failed or was refused.
        fetchable: whether prices can be fetched at all.
    """

    provider: str
    name: str
    origin: Origin
    rows: int
    contracts: int
    oldest: str | None
    newest: str | None
    fetched_at: datetime | None
    checked_at: datetime | None
    attempted_at: datetime | None
    outcome: str | None
    error: str | None
    fetchable: bool


def status(known: Catalog, snapshots: dict[str, Snapshot], attempts: dict[str, Attempt]) -> list[SourceStatus]:
    """How the prices of every provider stand, in the order of the catalogue."""
    fetchable = frozenset(known_sources())
    found = []
    for provider in known.providers.values():
        offers = [row.offer for row in known.rows.get(provider.id, ())]
        dates = [offer.as_of for offer in offers if offer.as_of]
        snapshot = None if provider.private else snapshots.get(provider.id)
        attempt = attempts.get(provider.id)
        origin: Origin = "private" if provider.private else "fetched" if snapshot else "bundled" if offers else "none"
        found.append(
            SourceStatus(
                provider=provider.id,
                name=provider.name,
                origin=origin,
                rows=len(offers),
                contracts=sum(offer.contract for offer in offers) if not provider.private else 0,
                oldest=min(dates, default=None),
                newest=max(dates, default=None),
                fetched_at=snapshot.fetched_at if snapshot else None,
                checked_at=snapshot.checked_at if snapshot else None,
                attempted_at=attempt.attempted_at if attempt else None,
                outcome=attempt.outcome if attempt else None,
                error=attempt.error_detail if attempt else None,
                fetchable=provider.id in fetchable,
            )
        )
    return found


class CatalogDesk:
    """Holds the catalogue. Before :meth:`load` it is that of the package, the settings' own prices included.

    Args:
        store: migrated before :meth:`load`.
    """

    def __init__(self, store: Store, settings: Settings, *, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._settings = settings
        self._snapshots: dict[str, Snapshot] = {}
        self.refresher = Refresher(store, settings.catalog, clock=clock, ids=ids)
        self.catalog = self._assembled()

    @property
    def rate(self) -> EuroRate:
        """US dollars per euro."""
        return self._settings.catalog.rate

    async def load(self) -> bool:
        """Take up what is on record, also by another replica; True when that is something new.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        async with self._store.read() as session:
            snapshots = await catalog.latest(session)
        if {name: one.fetched_at for name, one in snapshots.items()} == {
            name: one.fetched_at for name, one in self._snapshots.items()
        }:
            self._snapshots = snapshots
            return False
        self._snapshots = snapshots
        self.catalog = await asyncio.to_thread(self._assembled)
        return True

    async def refresh(self, providers: Sequence[str] = (), *, accept: bool = False) -> list[Refreshed]:
        """Fetch, put on record and take up. See :meth:`service.catalog.refresh.Refresher.refresh`."""
        done = await self.refresher.refresh(providers, accept=accept)
        await self.load()
        return done

    async def keep_fresh(self) -> bool:
        """What the schedule does: refresh where that is wanted and due, and take up what is new; True when something
        is."""
        if self._settings.catalog.refresh and await self.refresher.due():
            await self.refresher.refresh()
        return await self.load()

    async def status(self) -> list[SourceStatus]:
        """How the prices of every provider stand."""
        async with self._store.read() as session:
            attempts = await catalog.attempts(session)
        return status(self.catalog, self._snapshots, attempts)

    def _assembled(self) -> Catalog:
        fetched = {name: snapshot.offers for name, snapshot in self._snapshots.items()}
        return assemble(fetched, self._settings.providers, contract_rows(self._settings.prices))
