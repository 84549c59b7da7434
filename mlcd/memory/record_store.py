"""The common interface to records that runs leave for later ones, stored by name in files or a database.

Planners define the records. Knowledge bases are folders of measurements, made by `mlcd learn` or shipped with MLCD.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from mlcd.core.errors import UnknownName, UserError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that this version cannot read, and why."""

    name: str
    because: str


class RecordStore(ABC, Generic[T]):
    """Records of one kind. `noun`: the name of a record in messages."""

    noun: ClassVar[str]

    @abstractmethod
    def readers(self) -> Mapping[str, Callable[[], T]]:
        """For each name, a function that reads its record; it raises `UserError` if it cannot."""

    def load(self, name: str) -> T:
        """The record of that name; `UserError` if there is none, or if it cannot be read."""
        readers = self.readers()
        if name not in readers:
            raise UnknownName(self.noun, name, readers)
        return readers[name]()

    def all(self) -> tuple[dict[str, T], list[UnreadableRecord]]:
        """All records by name, and the unreadable ones, such as those of a newer MLCD."""
        records, broken = {}, []
        for name, read in self.readers().items():
            try:
                records[name] = read()
            except UserError as error:
                broken.append(UnreadableRecord(name, str(error)))
        return records, broken


ABOUT = "knowledge.json"
"""The file that makes a folder a knowledge base."""
SHIPPED = Path(__file__).with_name("knowledge")
"""Measured by `mlcd learn` on a CPU and on an NVIDIA H200."""


@dataclass(frozen=True)
class KnowledgeBases(RecordStore[T]):
    """The knowledge bases that come with MLCD, and those of a folder. `read`: the planner's function to read one."""

    read: Callable[[Path], T]
    own: Path = SHIPPED
    noun: ClassVar[str] = "knowledge base"

    def readers(self) -> Mapping[str, Callable[[], T]]:
        """A reader for each knowledge base; one in `own` replaces a shipped one of the same name."""
        folders = [about.parent for place in (SHIPPED, self.own) for about in sorted(place.glob(f"*/{ABOUT}"))]
        return {folder.name: partial(self.read, folder) for folder in folders}

    def named(self, name: str) -> T:
        """The knowledge base of this name, or in the folder of this path."""
        for folder in (self.own / name, Path(name), SHIPPED / name):
            if (folder / ABOUT).is_file():
                return self.read(folder)
        names = ", ".join(self.readers())
        raise UserError(f"no knowledge base '{name}': expected a folder made by `mlcd learn`, or {names}")
