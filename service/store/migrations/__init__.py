"""Alembic's scripts; :mod:`service.store.migrate` runs them at start-up."""
