"""Tables of the price catalogue: what was fetched when, and how the latest attempt per provider went."""

from datetime import datetime

from sqlalchemy import Column, Index, LargeBinary, Text
from sqlmodel import Field

from service.store.tables import Row
from service.store.types import UtcDateTime


class CatalogSnapshotRow(Row, table=True):
    """The prices of one provider as a source had them; unchanged prices make no new row.

    ``offers``: compressed JSON of :class:`rules.facts.prices.Offer`. ``digest``: of the prices, whatever their date.
    ``checked_at``: when the source was last seen to have these prices still.
    """

    __tablename__ = "catalog_snapshots"
    __table_args__ = (Index("ix_catalog_snapshots_provider_id", "provider", "id"),)

    id: str = Field(primary_key=True)
    provider: str
    source: str
    version: str | None = None
    fetched_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    checked_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    rows: int
    digest: str
    offers: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class CatalogAttemptRow(Row, table=True):
    """The latest attempt to fetch the prices of a provider; ``outcome`` as in :mod:`service.catalog.refresh`."""

    __tablename__ = "catalog_attempts"

    provider: str = Field(primary_key=True)
    attempted_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    outcome: str
    error_code: str | None = None
    error_detail: str | None = Field(default=None, sa_column=Column(Text, nullable=True))
