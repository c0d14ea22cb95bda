"""Run by Alembic: applies the migrations on the connection that `schema.upgrade` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
