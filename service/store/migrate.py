"""Migrations, run at start-up.

All of it happens in one transaction that is alone on its database: SQLite begins it as ``IMMEDIATE``, PostgreSQL takes
an advisory lock that ends with it. Of two replicas that start together one migrates and the other finds the work done.
"""

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from service.store import catalog_tables
from service.store.tables import Row

__all__ = ["catalog_tables", "differences", "upgrade"]  # the tables belong to the metadata that is compared

LOCK = 0x6770755F616476  # "gpu_adv"; any number does, as long as every version of gpu-advisor uses the same


def upgrade(connection: Connection) -> None:
    """Bring the database of ``connection``, which is in a transaction, to the newest revision."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    command.upgrade(_config(connection), "head")


def differences(connection: Connection) -> list[object]:
    """What the models have and the database lacks, or the other way round; empty when they agree."""
    return list(compare_metadata(MigrationContext.configure(connection), Row.metadata))


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
