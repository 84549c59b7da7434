"""Labels of runs: a project, tags, a note, and whether a run is archived.

Unlike entries, labels may change: they have a table of their own, with who changed each row last, and when.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, insert, select

from mlcd.core.database import Database
from mlcd.core.database.schema import labels as table
from mlcd.core.errors import UserError

LONGEST_WORD, MOST_TAGS, LONGEST_NOTE = 60, 20, 4_000
_ALLOWED = "\n\t\u200d"  # the only control characters in a note; the last one joins parts of an emoji


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one run."""

    project: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False


UNLABELLED = Labels()


@dataclass(frozen=True, slots=True)
class LabelUpdate:
    """A change of labels, checked when it is made. None changes nothing; an empty project or note removes it."""

    project: str | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    note: str | None = None
    archived: bool | None = None

    @classmethod
    def of(
        cls,
        project: str | None = None,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
        note: str | None = None,
        archived: bool | None = None,
    ) -> LabelUpdate:
        """From what a user wrote; `UserError` if a word is not allowed or a note too long."""
        return cls(
            project=word("project", project) if project else project,
            add_tags=tuple(word("tag", each) for each in add_tags),
            remove_tags=tuple(word("tag", each) for each in remove_tags),
            note=note if note is None else _text(note),
            archived=archived,
        )

    def applied_to(self, before: Labels) -> Labels:
        """The labels after this change."""
        removed = {*self.remove_tags} - {*self.add_tags}
        tags = dict.fromkeys(each for each in (*before.tags, *self.add_tags) if each not in removed)
        if len(tags) > MOST_TAGS:
            raise UserError(f"tags: {len(tags)} are too many; a run has at most {MOST_TAGS}")
        return Labels(
            before.project if self.project is None else self.project or None,
            tuple(tags),
            before.note if self.note is None else self.note,
            before.archived if self.archived is None else self.archived,
        )

    @property
    def words(self) -> str:
        """The change in one line, for the audit log."""
        changes = [
            "" if self.project is None else f"project {self.project or 'none'}",
            *(f"+{each}" for each in self.add_tags),
            *(f"-{each}" for each in self.remove_tags),
            "" if self.note is None else "note",
            {True: "archived", False: "not archived", None: ""}[self.archived],
        ]
        return " ".join(filter(None, changes))


UNCHANGED = LabelUpdate()


def word(what: str, text: str) -> str:
    """A valid project or tag, in Unicode's normal form: words that look the same are equal."""
    normal = unicodedata.normalize("NFC", text)
    invalid = " " in normal or "," in normal or normal.startswith("-") or not normal.isprintable()
    if not normal or invalid or len(normal) > LONGEST_WORD:
        rule = f"a word of 1 to {LONGEST_WORD} characters, without spaces or commas, not starting with a dash"
        raise UserError(f"{what} {normal[:LONGEST_WORD]!a}: expected {rule}")
    return normal


def _text(note: str) -> str:
    normal = unicodedata.normalize("NFC", note.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(normal) > LONGEST_NOTE:
        raise UserError(f"note: {len(normal):,} characters; at most {LONGEST_NOTE:,} are allowed")
    control = next((each for each in normal if unicodedata.category(each)[0] == "C" and each not in _ALLOWED), None)
    if control is not None:
        raise UserError(f"note: contains a control character: {control!a}")
    return normal


class LabelStore:
    """Reads and writes the labels of a database's runs."""

    database: Database

    def labels(self) -> dict[str, Labels]:
        """The labels of all runs that ever had any."""
        return {run: labels for _, run, labels in self.labels_since(0)}

    def labels_since(self, revision: int) -> list[tuple[int, str, Labels]]:
        """Changes after this revision: for each changed run, its newest revision, name and labels."""
        with self.database.read() as connection:
            rows = connection.execute(select(table).where(table.c.revision > revision).order_by(table.c.revision)).all()
        return [(row.revision, row.run, _read(row)) for row in rows]

    def labels_of(self, run: str) -> Labels:
        """The labels of one run."""
        with self.database.read() as connection:
            row = connection.execute(select(table).where(table.c.run == run)).one_or_none()
        return UNLABELLED if row is None else _read(row)

    def _relabel(self, run: str, change: LabelUpdate, who: str | None, now: datetime) -> Labels:
        """Change the labels in one transaction, so that no concurrent change is lost or has the same revision."""
        with self.database.write() as connection:
            before = self.labels_of(run)
            after = change.applied_to(before)
            if after == before:
                return before
            newest = connection.execute(select(func.coalesce(func.max(table.c.revision), 0))).scalar_one()
            row = {
                "run": run,
                "revision": newest + 1,
                "project": after.project,
                "tags": json.dumps(after.tags),
                "note": after.note,
                "archived": after.archived,
                "changed_by": who,
                "changed_at": now.astimezone(UTC).isoformat(),
            }
            connection.execute(delete(table).where(table.c.run == run))
            connection.execute(insert(table), row)
        return after


def _read(row: Any) -> Labels:
    return Labels(row.project, tuple(json.loads(row.tags)), row.note, row.archived)
