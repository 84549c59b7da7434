"""Knowledge bases: folders of measurements by name, those of `mlcd learn` and those that come with MLCD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from mlcd.core.errors import UserError
from mlcd.memory.shelf import Shelf, T

ABOUT = "knowledge.json"
"""The file that makes a folder a knowledge base."""
SHIPPED = Path(__file__).with_name("knowledge")
"""Measured by `mlcd learn` on a CPU and on an NVIDIA H200."""


@dataclass(frozen=True)
class Bases(Shelf[T]):
    """Those that come with MLCD, and those of a folder. `read`: what their planner makes of one."""

    read: Callable[[Path], T]
    own: Path = SHIPPED
    noun: ClassVar[str] = "knowledge base"

    def readers(self) -> Mapping[str, Callable[[], T]]:
        """One's own takes the place of a shipped one of the same name."""
        found = [about.parent for place in (SHIPPED, self.own) for about in sorted(place.glob(f"*/{ABOUT}"))]
        return {folder.name: partial(self.read, folder) for folder in found}

    def named(self, name: str) -> T:
        """The base of that name, or of the folder of that path."""
        for folder in (self.own / name, Path(name), SHIPPED / name):
            if (folder / ABOUT).is_file():
                return self.read(folder)
        names = ", ".join(self.readers())
        raise UserError(f"no knowledge base '{name}': expected a folder made by `mlcd learn`, or {names}")
