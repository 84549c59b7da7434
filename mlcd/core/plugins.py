"""Plugins of other packages, as Python entry points: found by name, imported on first use.

    [project.entry-points."mlcd.methods"]
    "train.cherrypick" = "mlcd_bench.baselines.train:cherrypick"

adds the search method of `mlcd train --method cherrypick`, if that package is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

T = TypeVar("T")


class Plugins(Mapping[str, T]):
    """Plugins by name: the `built_in` ones, and entry points of `group` whose names start with `kind.`, if given.

    Installed packages are searched only for a name that is not built in, or for all names.
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
