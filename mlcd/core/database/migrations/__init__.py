"""Alembic migrations. A released migration is never changed."""
