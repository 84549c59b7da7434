"""Lists of names in options of `mlcd bench`."""

from __future__ import annotations

from collections.abc import Collection


def split_names(what: str, written: str, known: Collection[str]) -> list[str]:
    """Parse comma-separated known names, or 'all'."""
    from mlcd.core.errors import UnknownName

    names = list(known) if written == "all" else [name.strip() for name in written.split(",")]
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
    return names
