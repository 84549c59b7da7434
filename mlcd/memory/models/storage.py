"""Storage of learned models: a user's in files, a team's in its database, for all workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy import delete, insert, select

from mlcd.core.database import Database
from mlcd.core.database.schema import models as table
from mlcd.core.errors import UnknownName
from mlcd.memory.models.files import Unreadable, all_models, forget, newest_first, parsed, save, unusable, written
from mlcd.memory.models.stored import StoredModel


class Shelf(Protocol):
    """Stores models by name."""

    def all(self) -> tuple[dict[str, StoredModel], list[Unreadable]]:
        """All models, the newest first, and the unreadable ones."""
        ...

    def save(self, stored: StoredModel) -> None:
        """Store a model, replacing one of the same run and job; `ValueError` for NaN or infinity."""
        ...

    def forget(self, name: str) -> None:
        """Delete a model, readable or not."""
        ...


@dataclass(frozen=True)
class InFiles:
    """A file for each model, in a folder."""

    folder: Path

    def all(self) -> tuple[dict[str, StoredModel], list[Unreadable]]:
        """All models, the newest first, and the unreadable files."""
        return all_models(self.folder)

    def save(self, stored: StoredModel) -> None:
        """Store a model."""
        save(self.folder, stored)

    def forget(self, name: str) -> None:
        """Delete a file."""
        forget(self.folder, name)


@dataclass(frozen=True)
class InDatabase:
    """A row for each model."""

    database: Database

    def all(self) -> tuple[dict[str, StoredModel], list[Unreadable]]:
        """All models, the newest first, and the unreadable rows: a newer MLCD may have written them."""
        with self.database.read() as connection:
            rows = connection.execute(select(table.c.name, table.c.body).order_by(table.c.name)).all()
        models, broken = {}, []
        for name, body in rows:
            try:
                models[name] = parsed(body)
            except ValueError as error:
                broken.append(Unreadable(name, str(unusable(f"stored model '{name}'", name, str(error)))))
        return newest_first(models), broken

    def save(self, stored: StoredModel) -> None:
        """Store a model."""
        row = {"name": stored.name, "saved_at": stored.saved_at.isoformat(), "body": written(stored)}
        with self.database.write() as connection:
            connection.execute(delete(table).where(table.c.name == stored.name))
            connection.execute(insert(table).values(row))

    def forget(self, name: str) -> None:
        """Delete a row."""
        with self.database.write() as connection:
            names = connection.execute(select(table.c.name)).scalars().all()
            if name not in names:  # compared here: PostgreSQL does not accept every text
                raise UnknownName("stored model", name, names)
            connection.execute(delete(table).where(table.c.name == name))


def shelf_of(database: Database, folder: Path) -> Shelf:
    """The storage for a ledger's database: `folder` for SQLite, otherwise the database itself."""
    return InFiles(folder) if database.dialect == "sqlite" else InDatabase(database)
