"""State: tables, transactions and migrations."""

from service.store.engine import Store

__all__ = ["Store"]
