"""What other packages add to MLCD, as Python entry points: found by name, imported when asked for.

    [project.entry-points."mlcd.methods"]
    "train.cherrypick" = "mlcd_bench.baselines.train:cherrypick"

is the method that `mlcd train --method cherrypick` searches with, where that package is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

T = TypeVar("T")


class Plugins(Mapping[str, T]):
    """By name: `built_in` ones, and what installed packages register in `group`, under `kind.` if it has one.

    Packages are looked through only when a name is asked for that is not built in, or all names are.
    """

    def __init__(self, group: str, kind: str, built_in: Mapping[str, T]) -> None:
        self._group, self._kind, self.built_in = group, kind, dict(built_in)

    def __getitem__(self, name: str) -> T:
        if name in self.built_in:
            return self.built_in[name]
        loaded: Any = _registered(self._group, self._kind)[name].load()
        return loaded  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.built_in, *_registered(self._group, self._kind)]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in _registered(self._group, self._kind)


@cache
def _registered(group: str, kind: str) -> dict[str, EntryPoint]:
    prefix = f"{kind}." if kind else ""
    return {each.name.removeprefix(prefix): each for each in entry_points(group=group) if each.name.startswith(prefix)}
