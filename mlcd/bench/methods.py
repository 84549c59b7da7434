"""Names of entrants: NAME is the method as it is, NAME+guard the same method under the product's guard."""

from __future__ import annotations

from mlcd.assemble import METHODS
from mlcd.errors import UnknownName

GUARDED = "+guard"


def entrants() -> list[str]:
    """Every method, raw and guarded."""
    return [written for name in METHODS for written in (name, name + GUARDED)]


def parse_methods(written: str) -> list[str]:
    """The entrants that a comma-separated list names; 'all' is every one."""
    known = entrants()
    names = known if written == "all" else [name.strip() for name in written.split(",")]
    for name in names:
        if name not in known:
            raise UnknownName("method", name, known)
    return list(dict.fromkeys(names))


def is_guarded(name: str) -> bool:
    """Whether the guard watches this entrant."""
    return name.endswith(GUARDED)
