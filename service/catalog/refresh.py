"""Refreshing prices: each provider on its own, what is doubtful refused, what fails said and the old prices kept."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Literal

import msgspec
import structlog

from rules.errors import AdvisorError
from rules.facts.prices import bundled
from service.catalog.fetch import Fetched, fetch
from service.catalog.sanity import doubt
from service.catalog.settings import CatalogSettings
from service.catalog.sources import PUBLISHED_BY_GPUHUNT, known_sources
from service.clock import Clock, Ids
from service.errors import ProviderUnknown, redact
from service.store import Store, catalog
from service.store.catalog import Attempt, Snapshot

Outcome = Literal["updated", "unchanged", "refused", "failed"]
"""``refused``: fetched, but not believed (:mod:`service.catalog.sanity`)."""

AT_ONCE = 3

log = structlog.get_logger(__name__)

Fetch = Callable[[str, CatalogSettings, date], Awaitable[Fetched]]


class Refreshed(msgspec.Struct, frozen=True):
    """How the refresh of one provider went; ``rows`` is None when nothing was fetched."""

    provider: str
    outcome: Outcome
    rows: int | None = None
    version: str | None = None
    error_code: str | None = None
    error_detail: str | None = None


class Refresher:
    """Fetches prices and puts them on record.

    Args:
        store: migrated.
        fetching: how one provider is fetched.
    """

    def __init__(
        self, store: Store, settings: CatalogSettings, *, clock: Clock, ids: Ids, fetching: Fetch = fetch
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._fetch = fetching

    @property
    def providers(self) -> tuple[str, ...]:
        """Whose prices are fetched when nobody is named."""
        return tuple(PUBLISHED_BY_GPUHUNT) if self._settings.providers is None else self._settings.providers

    async def refresh(self, providers: Sequence[str] = (), *, accept: bool = False) -> list[Refreshed]:
        """Fetch the prices of these providers, or of all that the settings want.

        Args:
            accept: believe what is fetched, unless it is empty.

        Raises:
            ProviderUnknown: no prices can be fetched for one of them.
            StoreUnavailable: the database does not answer.
        """
        for name in providers:
            if name not in known_sources():
                raise ProviderUnknown(name, known_sources())
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> Refreshed:
            async with slots:
                return await self._one(name, accept=accept)

        return list(await asyncio.gather(*map(one, dict.fromkeys(providers or self.providers))))

    async def due(self) -> bool:
        """Whether the latest attempt at any provider of the settings is older than the settings want."""
        async with self._store.read() as session:
            known = await catalog.attempts(session)
        latest = [known[name].attempted_at for name in self.providers if name in known]
        hours = timedelta(hours=self._settings.refresh_hours)
        return len(latest) < len(self.providers) or self._clock() - min(latest) >= hours

    async def _one(self, provider: str, *, accept: bool) -> Refreshed:
        now = self._clock()
        try:
            fetched = await self._fetch(provider, self._settings, now.date())
            refreshed = await self._recorded(provider, fetched, now, accept=accept)
        except AdvisorError as error:
            refreshed = Refreshed(provider, "failed", error_code=error.code, error_detail=str(error))
        except Exception as error:
            # whatever a source makes gpuhunt stumble over is that source's trouble alone
            log.exception("prices could not be refreshed", provider=provider)
            said = redact(f"{type(error).__name__}: {error}")
            refreshed = Refreshed(provider, "failed", error_code="internal-fault", error_detail=said)
        attempt = Attempt(provider, now, refreshed.outcome, refreshed.error_code, refreshed.error_detail)
        async with self._store.write() as session:
            await catalog.note(session, attempt)
        write = log.info if refreshed.outcome in ("updated", "unchanged") else log.warning
        write(
            "prices refreshed",
            provider=provider,
            outcome=refreshed.outcome,
            rows=refreshed.rows,
            detail=refreshed.error_detail,
        )
        return refreshed

    async def _recorded(self, provider: str, fetched: Fetched, now: datetime, *, accept: bool) -> Refreshed:
        async with self._store.read() as session:
            before = await catalog.latest_of(session, provider)
        baseline = [offer for offer in bundled().offers if offer.provider == provider]
        why = doubt(fetched.offers, before.offers if before else (), baseline)
        rows = len(fetched.offers)
        if why is not None and not (accept and fetched.offers):
            detail = f"{provider}: the catalogue is not believed: {why}; the prices before it stay"
            return Refreshed(provider, "refused", rows, fetched.version, "catalog-doubtful", detail)
        snapshot = Snapshot(provider, fetched.source, fetched.version, now, now, fetched.offers)
        async with self._store.write() as session:
            new = await catalog.save(session, snapshot, id_=self._ids(), keep=self._settings.keep)
        return Refreshed(provider, "updated" if new else "unchanged", rows, fetched.version)
