"""Alembic's environment: migrates the connection that :mod:`service.store.migrate` hands over, never another one."""

from alembic import context

from service.store.tables import Row

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Row.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
