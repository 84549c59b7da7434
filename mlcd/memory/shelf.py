"""The one interface to what runs leave for later ones: records by name, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from mlcd.core.errors import UnknownName, UserError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that this version cannot read, and why."""

    name: str
    because: str


class Shelf(ABC, Generic[T]):
    """Records of one kind. `noun`: what messages call one of them."""

    noun: ClassVar[str]

    @abstractmethod
    def readers(self) -> Mapping[str, Callable[[], T]]:
        """For each name, what reads its record; `UserError`, in one line, if it cannot."""

    def load(self, name: str) -> T:
        """The record of that name; `UserError` if there is none, or if it cannot be read."""
        readers = self.readers()
        if name not in readers:
            raise UnknownName(self.noun, name, readers)
        return readers[name]()

    def all(self) -> tuple[dict[str, T], list[Unreadable]]:
        """All records by name, and the unreadable ones: a newer MLCD may have written them."""
        records, broken = {}, []
        for name, read in self.readers().items():
            try:
                records[name] = read()
            except UserError as error:
                broken.append(Unreadable(name, str(error)))
        return records, broken
